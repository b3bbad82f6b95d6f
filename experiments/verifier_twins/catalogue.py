"""The twenty pairs: which network, which twin, which property."""

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import Any, Literal

from verifier_twins.networks import Network, blob, corners, drawn, edges


@dataclass(frozen=True)
class Pair:
    """What a pair is made from.

    Attributes:
        name: Of its folder.
        network: The CNN, whose bias a property of classes changes.
        twin: A vision transformer, or every convolution as attention.
        asks: Of a class whether it is the largest, or of the first logit whether it is above a
            threshold.
        expected: Whether the property holds.
        radius: ε, in 256ths.
        seed: Of the image in the middle of the box.
        options: Of `to_vision_transformer`.
    """

    name: str
    network: Network
    twin: Literal["transformer", "attention"]
    asks: Literal["class", "threshold"]
    expected: Literal["holds", "violated"]
    radius: int
    seed: int = 0
    options: Mapping[str, Any] = field(default_factory=dict)


_PLAIN: dict[str, Any] = {}
_STRIDE: dict[str, Any] = {"stride": 2}
_DILATED: dict[str, Any] = {"dilation": 2}
_SHORT: dict[str, Any] = {"size": 1}
_VALID: dict[str, Any] = {"padding": "VALID"}
_ADDS: dict[str, Any] = {"adds_input": True}


def _numbered(*pairs: Pair) -> tuple[Pair, ...]:
    return tuple(
        replace(pair, name=f"{number:02d}-{pair.name}", seed=number)
        for number, pair in enumerate(pairs, 1)
    )


PAIRS = _numbered(
    Pair("edges", edges(4), "transformer", "class", "holds", 8),
    Pair("edges-wider", edges(8, -0.125), "transformer", "class", "violated", 16),
    Pair("corners", corners(), "transformer", "threshold", "holds", 8),
    Pair("blob", blob(), "transformer", "class", "violated", 16),
    Pair(
        "one-by-one", drawn(1, (3, 4, 4), (4,), 3, (_SHORT,)), "transformer", "class", "holds", 16
    ),
    Pair(
        "stride",
        drawn(2, (1, 8, 8), (3,), 2, (_STRIDE,)),
        "transformer",
        "threshold",
        "violated",
        16,
    ),
    Pair("dilation", drawn(3, (1, 8, 8), (3,), 3, (_DILATED,)), "transformer", "class", "holds", 8),
    Pair(
        "residual",
        drawn(4, (1, 4, 4), (3, 3), 2, (_PLAIN, _ADDS)),
        "transformer",
        "class",
        "violated",
        8,
    ),
    Pair("valid", drawn(5, (2, 6, 6), (3,), 2, (_VALID,)), "transformer", "threshold", "holds", 8),
    Pair(
        "two-layers",
        drawn(6, (1, 4, 4), (3, 2), 3, (_PLAIN, _PLAIN)),
        "transformer",
        "class",
        "violated",
        8,
    ),
    Pair(
        "stride-then-plain",
        drawn(7, (1, 8, 8), (2, 3), 2, (_STRIDE, _PLAIN)),
        "transformer",
        "class",
        "holds",
        4,
    ),
    Pair(
        "linear-classifier",
        drawn(8, (1, 4, 4), (2,), 4, (_PLAIN,), True),
        "transformer",
        "class",
        "holds",
        8,
    ),
    Pair(
        "patches-of-2",
        drawn(9, (1, 4, 4), (2, 2), 2, (_PLAIN, _SHORT)),
        "transformer",
        "threshold",
        "violated",
        8,
        options={"patch_size": 2},
    ),
    Pair(
        "three-layers",
        drawn(10, (1, 4, 4), (2, 2, 2), 2, (_PLAIN, _PLAIN, _PLAIN)),
        "transformer",
        "threshold",
        "holds",
        2,
    ),
    Pair(
        "three-layers-mixed",
        drawn(11, (1, 8, 8), (2, 2, 2), 2, (_DILATED, _SHORT, _STRIDE)),
        "transformer",
        "class",
        "violated",
        4,
    ),
    Pair("edges-attention", edges(4), "attention", "class", "violated", 16),
    Pair("blob-attention", blob(), "attention", "threshold", "holds", 16),
    Pair(
        "colour-attention",
        drawn(12, (3, 4, 4), (3,), 3, (_PLAIN,)),
        "attention",
        "class",
        "holds",
        8,
    ),
    Pair(
        "stride-attention",
        drawn(13, (1, 8, 8), (2, 2), 2, (_STRIDE, _PLAIN)),
        "attention",
        "class",
        "violated",
        8,
    ),
    Pair(
        "residual-attention",
        drawn(14, (2, 4, 4), (2, 2), 3, (_PLAIN, _ADDS)),
        "attention",
        "class",
        "holds",
        4,
    ),
)
