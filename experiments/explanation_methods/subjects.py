"""Vision transformers of the suite in timm, and what is to be explained of them.

A *target* is a number for each image of a batch: a logit, or a feature that a token stores. Every
method explains targets of both kinds in the same way. Maps, fields and derivatives are over the
tokens of the grid, row by row: what belongs to pixels is added up within a patch.
"""

import json
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
import timm
import torch
from safetensors import safe_open
from safetensors.torch import load_file
from torch import Tensor


@dataclass(frozen=True, eq=False)
class Subject:
    """A model of the suite.

    Attributes:
        name: `NN-name`, of its files.
        model: timm's, in evaluation.
        truth: The arrays of its truth file.
        facts: What is no array there.
    """

    name: str
    model: Any
    truth: dict[str, Tensor]
    facts: Any

    @property
    def patch_size(self) -> int:
        """Pixels of a patch, on each axis."""
        return self.facts["arguments"]["patch_size"]

    @property
    def grid(self) -> tuple[int, int]:
        """Rows and columns of tokens."""
        return self.model.patch_embed.grid_size


@dataclass(frozen=True, eq=False)
class Target:
    """Numbers to be explained, one an image.

    Attributes:
        outputs: From images to `[images, outputs]`.
        index: `[images]`, which output of each.
        rows: `[images]`, the token of the sequence that holds it; 0 is the class token.
    """

    outputs: Callable[[Tensor], Tensor]
    index: Tensor
    rows: Tensor

    def numbers(self, images: Tensor) -> Tensor:
        """`[images]`."""
        return self.outputs(images).gather(1, self.index[:, None])[:, 0]


@dataclass(frozen=True, eq=False)
class Cases:
    """What is explained, and what is known of it; cases whose derivatives are all 0 are left out.

    Attributes:
        group: `"logits"`, or `"tokens after block N"`.
        target: A number for each case.
        images: `[cases, channels, rows, columns]`.
        field: `[cases, tokens]`, those of which a pixel can matter.
        jacobian: `[cases, tokens]`, the exact derivatives' absolute values.
        product: `[cases, tokens]`, those of derivative × input.
        exact: `[cases, channels, rows, columns]`, the derivatives.
        left_out: How many were.
    """

    group: str
    target: Target
    images: Tensor
    field: np.ndarray
    jacobian: np.ndarray
    product: np.ndarray
    exact: Tensor
    left_out: int


def load_subject(folder: Path, name: str) -> Subject:
    """Read a model of the suite and its truth."""
    path = folder / f"{name}.safetensors"
    model = timm.models.VisionTransformer(**_metadata(path, "arguments")).eval()
    model.load_state_dict(load_file(path), strict=True)
    model.requires_grad_(False)
    for block in model.blocks:
        block.attn.fused_attn = False  # so that its attention passes through attn_drop
    truth = path.with_suffix(".truth.safetensors")
    return Subject(name, model, load_file(truth), _metadata(truth, "truth"))


def _metadata(path: Path, key: str) -> Any:
    with safe_open(path, "pt") as file:
        return json.loads(file.metadata()[key])


def all_cases(subject: Subject) -> list[Cases]:
    """The logits, and every value that tokens store; without those that have no case."""
    values = (value_cases(subject, name) for name in subject.facts["values"])
    return [cases for cases in (logit_cases(subject), *values) if len(cases.images)]


def logit_cases(subject: Subject) -> Cases:
    """The largest logit of each image."""
    truth = subject.truth
    images, best = truth["images"], truth["logits"].argmax(1)
    jacobian = truth["logits.jacobian"][torch.arange(len(best)), best]
    field = truth["logits.field"].expand(len(images), -1, -1)
    target = Target(subject.model, best, torch.zeros_like(best))
    return _cases(subject, "logits", target, images, jacobian, field)


def value_cases(subject: Subject, name: str) -> Cases:
    """Of each token that stores this value its feature of largest size, on the first image."""
    truth, after = subject.truth, int(subject.facts["values"][name])
    tokens, channels = truth[f"{name}.tokens"], truth[f"{name}.channels"]
    best = truth[name][0].abs().argmax(1)
    every = torch.arange(len(tokens))
    jacobian = truth[f"{name}.jacobian"][every, best]

    def outputs(images: Tensor) -> Tensor:
        return stored_value(subject, name, images).flatten(1)

    target = Target(outputs, every * len(channels) + best, tokens)
    images = truth["images"][:1].expand(len(tokens), -1, -1, -1)
    field = truth[f"{name}.field"]
    return _cases(subject, f"tokens after block {after}", target, images, jacobian, field)


def stored_value(subject: Subject, name: str, images: Tensor) -> Tensor:
    """A value `[images, tokens, features]` as the tokens that store it hold it."""
    truth, after = subject.truth, subject.facts["values"][name]
    stream = stream_after(subject.model, images, after)[:, truth[f"{name}.tokens"]]
    half, channels = stream.shape[-1] // 2, truth[f"{name}.channels"]
    return (stream[..., channels] - stream[..., half + channels]) / 2


def stream_after(model: Any, images: Tensor, blocks: int) -> Tensor:
    """All tokens `[images, tokens, width]` after so many blocks, the class token first."""
    ((grid, prefix),) = model.forward_intermediates(
        images,
        indices=[blocks - 1],
        return_prefix_tokens=True,
        stop_early=True,
        output_fmt="NLC",
        intermediates_only=True,
    )
    return torch.cat([prefix, grid], dim=1)


def _cases(
    subject: Subject, group: str, target: Target, images: Tensor, jacobian: Tensor, field: Tensor
) -> Cases:
    size = subject.patch_size
    nonzero = jacobian.flatten(1).any(1)
    images, jacobian = images[nonzero], jacobian[nonzero]
    return Cases(
        group,
        replace(target, index=target.index[nonzero], rows=target.rows[nonzero]),
        images,
        by_token(field[nonzero][:, None], size) > 0,
        by_token(jacobian, size),
        by_token(jacobian * images, size),
        jacobian,
        int((~nonzero).sum()),
    )


def by_token(pixels: Tensor, patch_size: int) -> np.ndarray:
    """Absolute values `[cases, channels, rows, columns]` added up within patches.

    Returns:
        `[cases, tokens]` in float64.

    >>> by_token(torch.tensor([[[[1.0, -2.0], [0.0, 4.0]]]]), 2).tolist()
    [[7.0]]
    """
    sums = pixels.detach().double().abs().sum(1).numpy()
    cases, rows, columns = sums.shape
    parts = sums.reshape(cases, rows // patch_size, patch_size, columns // patch_size, patch_size)
    return parts.sum((2, 4)).reshape(cases, -1)


@contextmanager
def recorded_attention(model: Any) -> Iterator[list[Tensor]]:
    """A list that takes the attention `[images, heads, queries, keys]` of each block that runs."""
    maps: list[Tensor] = []
    handles = [
        block.attn.attn_drop.register_forward_hook(
            lambda module, inputs, result: maps.append(result)
        )
        for block in model.blocks
    ]
    try:
        yield maps
    finally:
        for handle in handles:
            handle.remove()
