"""Batch normalisation by running statistics, folded into the convolution before it.

With the mean m, the variance v, the scale γ and the shift β of each output channel, and s =
γ/√(v + ε),

    (W * x - m)·s + β = (W·s) * x + (β - m·s).

W·s and β - m·s are computed in float64 and rounded once to the dtype of the network. So each folded
number w is off by at most ρ|w| (for the bias relative to |β| + |m·s|: it is a difference), and by
the smallest normal number where it is not a normal number itself. In float32 ρ = 2⁻²⁴(1 + 2⁻²⁰),
the second factor for the roundings in float64; in float64 these are all there is: sum, root,
quotient, product and, for the bias, a product and a difference more, so ρ = γ_6. Hence, for every
x, the folded convolution in exact arithmetic differs from the normalised one by at most

    ρ(|W·s| * |x| + |β| + |m·s|),

as much as a few more roundings of each number would do.
"""

from dataclasses import dataclass

import numpy as np
from jax.typing import DTypeLike
from jaxtyping import Float

from convattn.operators.roundoff import gamma, unit_roundoff

FOLDING = 6  # roundings in float64


@dataclass(frozen=True)
class FoldedConvolution:
    """A kernel and a bias with the normalisation in them.

    Attributes:
        kernel, bias: W·s and β - m·s.
        magnitude: |β| + |m·s|, in float64, to which the roundings of the bias are relative.
    """

    kernel: Float[np.ndarray, "rows columns in_channels out_channels"]
    bias: Float[np.ndarray, "out_channels"]
    magnitude: Float[np.ndarray, "out_channels"]


def folding_error(dtype: DTypeLike) -> float:
    """ρ.

    >>> folding_error("float32") * 2**24 - 1 == 2**-20
    True
    """
    if np.dtype(dtype) == np.float64:
        return gamma(FOLDING, unit_roundoff(np.float64))
    return unit_roundoff(dtype) * (1 + 2.0**-20)


def fold_batch_norm(
    kernel: Float[np.ndarray, "rows columns in_channels out_channels"],
    mean: Float[np.ndarray, "out_channels"],
    variance: Float[np.ndarray, "out_channels"],
    scale: Float[np.ndarray, "out_channels"],
    shift: Float[np.ndarray, "out_channels"],
    epsilon: float,
    dtype: DTypeLike = np.float32,
) -> FoldedConvolution:
    """W·s and β - m·s.

    Args:
        mean, variance: The running ones, variance ≥ 0.
        scale, shift: γ and β.
        epsilon: ε > 0.
        dtype: Of the network, float32 or float64.

    Raises:
        ValueError: For statistics that are not finite, a negative variance, and where the folded
            numbers leave the dtype.

    >>> one = np.ones(1)
    >>> found = fold_batch_norm(np.full((1, 1, 1, 1), 3.0), 5 * one, 3 * one, 4 * one, one, 1.0)
    >>> found.kernel.item(), found.bias.item(), found.magnitude.item()
    (6.0, -9.0, 11.0)
    """
    parts = {"kernel": kernel, "mean": mean, "variance": variance, "scale": scale, "shift": shift}
    wide = {name: np.asarray(part, np.float64) for name, part in parts.items()}
    for name, part in wide.items():
        if not np.isfinite(part).all():
            raise ValueError(
                f"the {name} of a batch normalisation is not finite; did the training diverge?"
            )
    if (wide["variance"] < 0).any() or not epsilon > 0:
        raise ValueError(
            f"variance has the entry {wide['variance'].min()} and epsilon={epsilon}, but a running "
            "variance is ≥ 0 and epsilon > 0; are mean and variance exchanged?"
        )
    factor = wide["scale"] / np.sqrt(wide["variance"] + epsilon)
    with np.errstate(over="ignore"):
        folded = (wide["kernel"] * factor).astype(dtype)
        bias = (wide["shift"] - wide["mean"] * factor).astype(dtype)
    if not (np.isfinite(folded).all() and np.isfinite(bias).all()):
        raise ValueError(
            f"the folded kernel overflows {np.dtype(dtype)}: a channel's variance is nearly zero "
            "while its scale is large; such a channel carries nothing, so set its scale to zero"
        )
    magnitude = np.abs(wide["shift"]) + np.abs(wide["mean"] * factor)
    return FoldedConvolution(folded, bias, magnitude)
