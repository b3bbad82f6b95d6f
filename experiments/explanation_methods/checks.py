"""Whether a model in timm is what its truth file says: logits, values, derivatives, attention.

Values and derivatives are computed in float64. What they differ by is then the rounding of the
parameters to float32: a path goes through at most eight parameters a block, in six blocks at most,
so that 48 u of the largest number are enough where paths do not cancel, u = 2⁻²⁴; the largest
difference that was seen is 9 u. Logits are compared in float32, by the bound of the file.

A one-hot head must be so exactly, as exp(-128/2) is below the rounding of 1 in float32. Where a
query attends to N tokens alike, its scores are 0 up to the rounding of sums of `width` products
that cancel, of size S at most, S = 128 (src/convattn/compile/parameters.py); so its weights are
within exp(2 width u S) - 1 of 1/N, relatively.
"""

import copy
from dataclasses import replace
from math import expm1
from typing import Any

import numpy as np
import torch

from explanation_methods.subjects import Subject, all_cases, recorded_attention, stored_value

SHARPNESS = 128.0
ROUNDED = 48  # parameters on a path
UNIT_ROUNDOFF = 2.0**-24


def problems(subject: Subject) -> list[str]:
    """What is not as the truth says, a line each; empty if all is."""
    exact = replace(subject, model=copy.deepcopy(subject.model).double(), truth=_doubled(subject))
    return [
        *_wrong_logits(subject),
        *_wrong_values(exact),
        *_wrong_derivatives(exact),
        *_wrong_attention(subject),
    ]


def _doubled(subject: Subject) -> dict[str, torch.Tensor]:
    return {
        name: each.double() if each.is_floating_point() else each
        for name, each in subject.truth.items()
    }


def _wrong_logits(subject: Subject) -> list[str]:
    with torch.no_grad():
        logits = subject.model(subject.truth["images"])
    difference = float((logits - subject.truth["logits"]).abs().max())
    bound = subject.facts["bound"]
    if difference <= bound:
        return []
    return [f"{subject.name}: a logit is off by {difference:.3g}, but the bound is {bound:.3g}"]


def _wrong_values(subject: Subject) -> list[str]:
    truth, wrong = subject.truth, []
    for name, after in subject.facts["values"].items():
        with torch.no_grad():
            numbers = stored_value(subject, name, truth["images"])
        if not agree(numbers.numpy(), truth[name].numpy()):
            wrong.append(f"{subject.name}: {name} differs after block {after}")
    return wrong


def _wrong_derivatives(subject: Subject) -> list[str]:
    """Of every logit, and of the largest feature of each token."""
    truth, wrong = subject.truth, []
    images = truth["images"].clone().requires_grad_()
    logits = subject.model(images)
    for label in range(logits.shape[1]):
        (gradient,) = torch.autograd.grad(logits[:, label].sum(), images, retain_graph=True)
        if not agree(gradient.numpy(), truth["logits.jacobian"][:, label].numpy()):
            wrong.append(f"{subject.name}: the derivatives of logit {label} differ")
    for cases in all_cases(subject)[1:]:
        inputs = cases.images.clone().requires_grad_()
        (gradient,) = torch.autograd.grad(cases.target.numbers(inputs).sum(), inputs)
        if not agree(gradient.numpy(), cases.exact.numpy()):
            wrong.append(f"{subject.name}: the derivatives of {cases.group} differ")
    return wrong


def agree(computed: np.ndarray, exact: np.ndarray) -> bool:
    """Whether numbers are equal up to the rounding of parameters.

    >>> agree(np.array([0.25, 3.0]), np.array([0.25, 3.000001]))
    True
    >>> agree(np.array([0.25, 3.0]), np.array([0.2501, 3.0]))
    False
    """
    return bool((np.abs(computed - exact) <= ROUNDED * UNIT_ROUNDOFF * np.abs(exact).max()).all())


def _wrong_attention(subject: Subject) -> list[str]:
    with recorded_attention(subject.model) as attention, torch.no_grad():
        subject.model(subject.truth["images"])
    wrong = []
    for block, (heads, maps) in enumerate(zip(subject.facts["heads"], attention, strict=True), 1):
        for number, head in enumerate(heads):
            own = maps[:, number].double().numpy()
            if not _attends(subject, block, heads, head, own):
                where = f"block {block}, head {number}"
                wrong.append(f"{subject.name}: {where} is not {head['kind']} {head['where']}")
    return wrong


def _attends(subject: Subject, block: int, heads: Any, head: Any, maps: np.ndarray) -> bool:
    """Whether the attention `[images, queries, keys]` of a head is of its kind."""
    if head["kind"] == "unused":
        return _is_uniform(subject, maps, np.arange(maps.shape[2]))
    if head["kind"] == "mean":
        stored = [subject.truth[f"{name}.tokens"].numpy() for name in subject.facts["values"]]
        return any(_is_uniform(subject, maps[:, :1], tokens) for tokens in stored)
    targets = _targets(subject, head)
    if head["kind"] == "point":
        return _is_one_hot(maps[:, :1], np.array([1 + _place(subject, head["where"])]))
    if any(other["kind"] in ("mean", "point") for other in heads):  # serves the class token alone
        return _is_one_hot(maps[:, :1], np.zeros(1, int))
    sure = np.zeros(len(targets), bool)  # queries whose value this block makes
    for name, after in subject.facts["values"].items():
        if after == block:
            sure[subject.truth[f"{name}.tokens"].numpy()] = True
    either = np.where(maps[0, :, 0] == 1, 0, targets)  # others may look at a token without a value
    return _is_one_hot(maps, np.where(sure, targets, either))


def _targets(subject: Subject, head: Any) -> np.ndarray:
    """Of each query of the sequence the key at the head's offset; 0 where there is none."""
    rows, columns = subject.grid
    row, column = np.divmod(np.arange(rows * columns), columns)
    row, column = row + head["where"][0], column + head["where"][1]
    if head["border"] == "circular":
        row, column = row % rows, column % columns
    inside = (row >= 0) & (row < rows) & (column >= 0) & (column < columns)
    return np.concatenate([[0], np.where(inside, 1 + row * columns + column, 0)])


def _place(subject: Subject, where: Any) -> int:
    return int(where[0] * subject.grid[1] + where[1])


def _is_one_hot(maps: np.ndarray, targets: np.ndarray) -> bool:
    return bool((maps[:, np.arange(len(targets)), targets] == 1).all())


def _is_uniform(subject: Subject, maps: np.ndarray, keys: np.ndarray) -> bool:
    expected = np.zeros(maps.shape[2])
    expected[keys] = 1 / len(keys)
    width = subject.facts["arguments"]["embed_dim"]
    limit = expm1(2 * width * UNIT_ROUNDOFF * SHARPNESS) * expected
    return bool((np.abs(maps - expected) <= limit).all())
