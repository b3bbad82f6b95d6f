"""The mean attention distance of each head and block, beside the true one.

The measured distance is that of Dosovitskiy et al. 2021, in tokens, between tokens of the grid
(`convattn.diagnosis.measures`). The true one is the length of the head's offset; a head that passes
nothing on between tokens of the grid has none, whatever it attends to.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import torch

from convattn.diagnosis.measures import measure_heads
from explanation_methods.methods import OF_GRID
from explanation_methods.subjects import Subject, recorded_attention


@dataclass(frozen=True)
class HeadDistance:
    """A head's mean attention distance in tokens; None where there is none."""

    kind: str
    border: str
    measured: float | None
    true: float | None


def head_distances(subject: Subject) -> list[list[HeadDistance]]:
    """By block, its heads, on the images of the truth file."""
    with recorded_attention(subject.model) as attention, torch.no_grad():
        subject.model(subject.truth["images"])
    return [
        [
            HeadDistance(head["kind"], head["border"], number(measured), true)
            for head, measured, true in zip(
                heads, _measured(each, subject.grid), true_distances(heads), strict=True
            )
        ]
        for heads, each in zip(subject.facts["heads"], attention, strict=True)
    ]


def _measured(attention: torch.Tensor, grid: tuple[int, int]) -> Sequence[float]:
    return measure_heads(attention.double().numpy(), grid).distance.tolist()


def true_distances(heads: Sequence[Any]) -> list[float | None]:
    """The lengths of the offsets of a block's heads.

    A block with a head of the class token serves that token alone.

    >>> true_distances([{"kind": "offset", "where": [3, -4]}, {"kind": "unused", "where": [0, 0]}])
    [5.0, None]
    >>> true_distances([{"kind": "mean", "where": [0, 0]}, {"kind": "self", "where": [0, 0]}])
    [None, None]
    """
    serves_grid = not any(head["kind"] in ("mean", "point") for head in heads)
    return [
        float(np.hypot(*head["where"])) if serves_grid and head["kind"] in OF_GRID else None
        for head in heads
    ]


def number(value: float) -> float | None:
    """None for NaN."""
    return None if np.isnan(value) else float(value)


def block_distances(heads: Sequence[HeadDistance]) -> tuple[float, float] | None:
    """The mean over all heads that have one, and the true mean; None if no head has a true one."""
    true = [head.true for head in heads if head.true is not None]
    measured = [head.measured for head in heads if head.measured is not None]
    return (float(np.mean(measured)), float(np.mean(true))) if true and measured else None
