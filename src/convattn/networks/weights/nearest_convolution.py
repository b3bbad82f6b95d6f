"""How near the stored kernel is to the layer that it was taken from, and how near it must be.

On images of one size the layer is a linear map L, the stored kernel another, C. `distance` computes
|L - C|_F/|L|_F with the kernel as it will be written. C is read off the one-hot layer of that
kernel, whose entries are the kernel's own, so it holds no rounding.

*What rounding accounts for.* Let L be the computed map of a layer that was made from a kernel W.
By `convattn.bounds.rounding`, |L - C_W| ≤ ρ·G entry by entry, G being the linear map of the
majorant. The least-squares kernel is an orthogonal projection, so the distance is at most
|L - C_W|_F ≤ ρ|G|_F; taking the mean of m entries adds γ_m|L|_F and storing it in a dtype of
roundoff u another u|L|_F. G needs W; with the recovered kernel in its place it changes by a factor
1 + O(ρ), for which there is a factor of two:

    tolerance = 2ρ|G|_F/|L|_F + γ_m + u.
"""

from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from convattn.bounds.majorant import majorant_layer
from convattn.bounds.rounding import relative_error
from convattn.bounds.score_error import gamma, score_error, unit_roundoff
from convattn.constructions.conversion import conv_to_attention
from convattn.constructions.recovery import linear_map
from convattn.encodings.layer import AttentionLayer
from convattn.encodings.scalar import ScalarEncoding
from convattn.networks.weights.verification import is_exact_form
from convattn.operators.arrays import accumulation_dtype
from convattn.operators.shifts import TokenGrid


def distance(layer: AttentionLayer, kernel: Any, image_size: tuple[int, ...]) -> float:
    """|L - C|_F/|L|_F for a kernel as it is stored; 0 if both vanish.

    >>> import convattn as ca
    >>> kernel = jnp.array([[[1.0]], [[2.0]], [[3.0]]])
    >>> layer = ca.conv_to_attention(kernel, encoding="quadratic")
    >>> distance(layer, kernel, (5,)), distance(layer, 2 * kernel, (5,))
    (0.0, 1.0)
    """
    linear = np.asarray(linear_map(layer, image_size), np.float64)
    same = conv_to_attention(
        kernel,
        patch_size=layer.patch_size,
        encoding="quadratic",
        stride=layer.stride,
        dilation=layer.dilation,
    )
    gap = np.linalg.norm(linear - np.asarray(linear_map(same, image_size), np.float64))
    norm = np.linalg.norm(linear)
    return float(gap / norm) if norm > 0 else float(gap)


def rounding_tolerance(layer: AttentionLayer, kernel: Any, image_size: tuple[int, ...]) -> float:
    """The distance that rounding accounts for, for a layer from `conv_to_attention`.

    Args:
        kernel: The recovered one.

    Raises:
        ValueError: For a layer of which nothing is derived: with content scores, with other
            encodings or offsets than that kernel's.

    >>> import convattn as ca
    >>> kernel = jnp.array([[[1.0]], [[2.0]], [[3.0]]])
    >>> 0 < rounding_tolerance(ca.conv_to_attention(kernel), kernel, (5,)) < 1e-3
    True
    """
    if layer.content is not None:
        raise ValueError("the layer has content scores, so it is a convolution at most at X = 0")
    sides = zip(image_size, layer.patch_size, strict=True)
    grid = TokenGrid(tuple(n // p for n, p in sides), layer.ring)
    dtype = accumulation_dtype(layer.dtype)  # type: ignore[arg-type]
    pairs = int(np.prod([n // s for n, s in zip(image_size, layer.stride, strict=True)]) + 1)
    total = gamma(pairs, unit_roundoff(dtype)) + unit_roundoff(layer.dtype)  # type: ignore[arg-type]
    if not is_exact_form(layer):
        if isinstance(layer.encoding, ScalarEncoding):
            raise ValueError("no tolerance is derived for the limit form of a scalar encoding")
        return total
    scores = score_error(layer.encoding, grid)
    exponent = scores.absolute + unit_roundoff(scores.dtype) * (scores.range + 2 * scores.absolute)
    rho = relative_error(layer, grid, scores, exponent, dtype, dtype, False)
    with jax.enable_x64(True):
        wide = jax.tree.map(jnp.asarray, majorant_layer(layer, np.asarray(kernel), None))
        majorant = float(np.linalg.norm(np.asarray(linear_map(wide, image_size))))
    norm = float(np.linalg.norm(np.asarray(linear_map(layer, image_size), np.float64)))
    return 2 * rho * majorant / norm + total if norm > 0 else total
