"""Six ways of explaining a vision transformer, as maps over its tokens; and baselines.

Attention methods take the attention A_1, …, A_B of the blocks before the target, `[heads, queries,
keys]` each, and show the row of the token that holds it, the class token's column left out. 𝔼 is
the mean over heads.

    raw attention   𝔼 A_B
    rollout         Π (𝔼 A_b + I)/2, the first block on the right (Abnar and Zuidema 2020,
                    "Quantifying attention flow in transformers")
    relevance       R_b = R_(b-1) + 𝔼 [(∇A_b ⊙ A_b)⁺] R_(b-1), R_0 = I, ∇ of the target (Chefer,
                    Gur and Wolf, ICCV 2021, "Generic attention-model explainability", equations 5
                    and 6)

Two variants are told what no method knows: over which heads the mean is to be taken.
"""

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
import torch
from captum.attr import InputXGradient, IntegratedGradients
from torch import Tensor

from explanation_methods.subjects import Cases, Subject, Target, by_token, recorded_attention

STEPS = 50  # of integrated gradients
LARGEST_BATCH = 128
SEED = 0
OF_GRID, OF_CLASS_TOKEN = ("offset", "self"), ("mean", "point", "self")  # whose queries heads serve


def mean_attention(attention: Tensor) -> Tensor:
    """𝔼 A, of `[images, heads, queries, keys]`."""
    return attention.mean(1)


def used_attention(attention: Tensor, kinds: Sequence[str]) -> Tensor:
    """The mean over the heads that pass something on to a query; none: the query itself."""
    served = torch.ones(len(kinds), attention.shape[2], dtype=attention.dtype)
    for head, kind in enumerate(kinds):
        served[head, 0] = kind in OF_CLASS_TOKEN
        served[head, 1:] = kind in OF_GRID
    counts = served.sum(0)
    total = torch.einsum("ihqk,hq->iqk", attention, served) / counts.clamp(min=1)[:, None]
    return total + torch.diag((counts == 0).to(attention.dtype))


def rollout(steps: Sequence[Tensor], identity: float = 0.5) -> Tensor:
    """The product of (1 - identity) A + identity I, the first block on the right.

    Args:
        steps: Of each block `[images, queries, keys]`, rows of sum 1.
        identity: Abnar and Zuidema's is 0.5.
    """
    joint = _identity(steps[0])
    for step in steps:
        joint = ((1 - identity) * step + identity * _identity(step)) @ joint
    return joint


def relevance(attention: Sequence[Tensor], gradients: Sequence[Tensor]) -> Tensor:
    """Chefer, Gur and Wolf's equations 5 and 6.

    Args:
        attention: Of each block `[images, heads, queries, keys]`.
        gradients: Of the target by each.
    """
    joint = _identity(attention[0][:, 0])
    for step, gradient in zip(attention, gradients, strict=True):
        joint = joint + (gradient * step).clamp(min=0).mean(1) @ joint
    return joint


def _identity(matrices: Tensor) -> Tensor:
    return torch.eye(matrices.shape[-1], dtype=matrices.dtype).expand_as(matrices)


def gradient_times_input(target: Target, images: Tensor) -> Tensor:
    """captum's, `[images, channels, rows, columns]`."""
    return InputXGradient(target.outputs).attribute(_with_gradient(images), target=target.index)


def integrated_gradients(target: Target, images: Tensor, baseline: float = 0.0) -> Tensor:
    """captum's, by Gauss-Legendre from an image of one colour; `[images, channels, rows, …]`."""
    return IntegratedGradients(target.outputs).attribute(
        _with_gradient(images),
        baselines=baseline,
        target=target.index,
        n_steps=STEPS,
        internal_batch_size=max(LARGEST_BATCH, len(images)),
    )


def _with_gradient(images: Tensor) -> Tensor:
    return images.clone().requires_grad_()


def attention_and_gradients(
    model: Any, target: Target, images: Tensor
) -> tuple[list[Tensor], list[Tensor]]:
    """The attention of each block before the target, and the target's gradient by it."""
    with recorded_attention(model) as attention:
        numbers = target.numbers(_with_gradient(images))
    gradients = torch.autograd.grad(numbers.sum(), attention)
    return [each.detach() for each in attention], list(gradients)


def explain(subject: Subject, cases: Cases) -> dict[str, np.ndarray]:
    """What each method says of the cases: nonnegative maps `[cases, tokens]` by its name."""
    target, images = cases.target, cases.images
    attention, gradients = attention_and_gradients(subject.model, target, images)
    means = [mean_attention(each) for each in attention]
    kinds = [[head["kind"] for head in block] for block in subject.facts["heads"]]
    used = [used_attention(*pair) for pair in zip(attention, kinds, strict=False)]

    def row(matrices: Tensor) -> np.ndarray:
        return matrices[torch.arange(len(images)), target.rows, 1:].double().numpy()

    def pixels(attribution: Tensor) -> np.ndarray:
        return by_token(attribution, subject.patch_size)

    makers: dict[str, Callable[[], np.ndarray]] = {
        "raw attention": lambda: row(means[-1]),
        "rollout": lambda: row(rollout(means)),
        "relevance": lambda: row(relevance(attention, gradients)),
        "gradient × input": lambda: pixels(gradient_times_input(target, images)),
        "integrated gradients": lambda: pixels(integrated_gradients(target, images)),
        "random": lambda: random_maps(subject, cases),
        "the image": lambda: pixels(images),
        "raw attention, used heads": lambda: row(used[-1]),
        "rollout, used heads": lambda: row(rollout(used)),
        "rollout, used heads, no identity": lambda: row(rollout(used, 0.0)),
        "integrated gradients from grey": lambda: pixels(integrated_gradients(target, images, 0.5)),
    }
    return {name: make() for name, make in makers.items()}


METHODS = (
    *("raw attention", "rollout", "relevance", "gradient × input", "integrated gradients"),
    *("random", "the image"),
)
VARIANTS = (
    *("raw attention, used heads", "rollout, used heads", "rollout, used heads, no identity"),
    "integrated gradients from grey",
)


def random_maps(subject: Subject, cases: Cases) -> np.ndarray:
    """Uniform in [0, 1), the same each time, others for each model and group of cases."""
    seed = [SEED, *f"{subject.name} {cases.group}".encode()]
    return np.random.default_rng(seed).random(cases.field.shape)
