"""What the heads of a layer do beyond the images on which it is compared with a convolution.

A layer that is a convolution on one image need not be one on a larger one: a table may have an
entry for a shift that does not occur in the smaller image, and the scores of rotary positions come
back after a period. Where scores depend on the shift alone, one query says it for all: with keys at
all shifts δ up to S the layer has at δ the map

    R_δ = Σ_h a_hδ g_h W_h,    a_h the softmax of head h over these shifts, g_h its gain,

and of a convolution R_δ is zero beyond the kernel. So |R| beyond the shifts that were seen,
relative to |R| of all, tells whether anything new happens there. That needs one number for each
head and shift, where attention on the image has one for each head and pair of pixels.

A head of finite scores also gives each other key a little, which adds up as their number grows:
`size_within`.
"""

import math
from collections.abc import Sequence
from fractions import Fraction
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jax import Array

from convattn.encodings import (
    AxialRotaryEncoding,
    GaussianEncoding,
    LearnedEncoding,
    OffsetTable,
    QuadraticEncoding,
    QuadraticGridEncoding,
    RelativeEncoding,
    RelativePosition,
    RotaryEncoding,
)
from convattn.encodings.layer import AttentionLayer
from convattn.networks.recovered_kernel import frobenius_norm, working_maps
from convattn.operators.roundoff import unit_roundoff

MAX_SCORES = 2**24  # scores that are looked at
_AT_ONCE = 2**18
_MOST_KEYS = 2**32  # of an image that anybody has
_HIGHEST = 700.0  # a score ahead of the others that exp takes in float64


class FarShifts(NamedTuple):
    """What stands beyond the shifts of an image.

    Attributes:
        distance: |R| beyond them, relative to |R| of all shifts that were looked at.
        rounding: What the layer's own numbers leave of it, rounded to their dtype.
        largest_image: The sides in pixels of the largest image whose shifts were all looked at;
            None where larger images have nothing new, or are refused.
    """

    distance: float
    rounding: float
    largest_image: tuple[int, ...] | None


def beyond_image(layer: AttentionLayer, image_size: Sequence[int]) -> FarShifts:
    """Look at the shifts that an image of that size does not have.

    Args:
        layer: Without content; its ring counts as image.
        image_size: Pixels on each axis, of the image that was looked at.

    >>> import jax.numpy as jnp
    >>> from dataclasses import replace
    >>> from convattn.constructions.conversion import conv_to_attention
    >>> layer = conv_to_attention(jnp.ones((3, 1, 1)), form="limit")
    >>> beyond_image(layer, (20,))
    FarShifts(distance=0.0, rounding=0.0, largest_image=None)
    >>> far = replace(layer.encoding, offsets=((-1,), (0,), (60,)))
    >>> round(beyond_image(replace(layer, encoding=far), (20,)).distance ** 2, 5)
    0.33333
    """
    ranges = layer.token_grid(image_size).shift_ranges
    observed = [min(-shifts.start, shifts.stop - 1) for shifts in ranges]  # both ways
    if not isinstance(layer.encoding, RelativePosition):
        return FarShifts(0.0, 0.0, tuple(image_size))
    reach = _largest_new_shift(layer.encoding, len(observed))
    sides = [
        max(pair) for pair in zip(observed, reach or [MAX_SCORES] * len(observed), strict=True)
    ]
    requested = list(sides)
    combine = sum if isinstance(layer.encoding, AxialRotaryEncoding) else math.prod
    while layer.heads * combine(2 * side + 1 for side in sides) > MAX_SCORES and sides != observed:
        longest = max((side, axis) for axis, side in enumerate(sides) if side > observed[axis])[1]
        sides[longest] = max(observed[longest], 7 * sides[longest] // 8)
    distance, rounding = _relative_norm(layer, observed, sides) if sides != observed else (0.0, 0.0)
    if sides == requested and reach is not None:
        return FarShifts(distance, rounding, None)
    grown = [side - near for side, near in zip(sides, observed, strict=True)]
    patches = zip(image_size, grown, layer.patch_size, strict=True)
    return FarShifts(distance, rounding, tuple(n + more * p for n, more, p in patches))


def size_within(
    layer: AttentionLayer, kernel: Array, image_size: Sequence[int], tolerance: float
) -> tuple[int, ...] | None:
    """Sides up to which the layer stays the convolution within a tolerance, in these proportions.

    On N keys head h of a table has a weight a_hδ at each of its T offsets, the same weight u_h at
    every other key, and the gain g_h. So the layer is the convolution of kernel Σ_h g_h(a_hδ -
    u_h)W_h, and N·Σ_h g_h u_h W_h of the mean of all keys. In a limit form of scores that are M
    ahead the first falls and the second grows, both by about N·e^-M; no head cancels this. Beside a
    register with the score r, heads whose target lies outside have u_h = 1/(N + e^r).

    Args:
        layer: Without content.
        kernel: The nearest one.
        image_size: From `recovery_size`.
        tolerance: Of the second, and of the change of the first from its value on `image_size`,
            relative to |kernel|, beyond what rounding of the scores makes of them.

    Returns:
        The sides in pixels, `image_size` at least; None if it holds up to 2^32 keys, if the other
        scores fall with the distance, or if a uniform head is there to cancel.

    >>> from convattn.constructions.conversion import conv_to_attention
    >>> layer = conv_to_attention(jnp.ones((3, 1, 1)), form="limit", sharpness=17.0)
    >>> size_within(layer, jnp.ones((3, 1, 1)), (9,), 1e-3)  # keys: 1e-3·√3/3·e^17 = 13,946
    (10959,)
    """
    encoding = layer.encoding
    if layer.is_exact_form or not isinstance(encoding, OffsetTable):
        return None
    keys = layer.token_grid(image_size).number_of_keys
    offsets = np.array(encoding.offsets)
    shifts = np.concatenate([offsets, np.abs(offsets).max(axis=0, keepdims=True) + 1])
    flat = np.asarray(working_maps(layer), np.float64).reshape(layer.heads, -1)
    triangle = np.linalg.qr(flat.T).R.T  # |a W| = |a triangle|, in fewer columns
    lengths = np.linalg.norm(flat, axis=1)
    norm = (
        float(frobenius_norm(np.asarray(kernel, np.float64)))
        * math.prod(layer.output_patch_size) ** 0.5
    )
    registers = None if layer.register is None else np.asarray(layer.register.at(keys), np.float64)
    rounding = 4 * layer.heads * unit_roundoff(layer.dtype or jnp.float32)

    @jax.jit
    def scores_and_gains(number: Array) -> tuple[Array, Array]:
        gains = encoding.head_gains(number)
        ones = jnp.ones(layer.heads, number.dtype)
        return encoding.shift_scores(shifts, number), ones if gains is None else gains

    def parts(number: float) -> tuple[np.ndarray, float, float]:
        """The kernel's rows, the uniform part, and what rounding makes of either."""
        scores, gains = (
            np.asarray(array, np.float64)
            for array in scores_and_gains(jnp.asarray(number, layer.dtype or jnp.float32))
        )
        far = scores[:, -1:]
        table = np.exp(np.minimum(scores[:, :-1] - far, _HIGHEST))
        sums = table.sum(axis=1) + number - len(offsets)
        beside = 0.0
        if registers is not None:
            register = np.exp(np.minimum(registers - far[:, 0], _HIGHEST))
            sums = sums + register
            beside = float((number * gains / (number + register)) @ lengths)
        rows = ((gains / sums)[:, None] * (table - 1)).T @ triangle
        weights = number * gains / sums
        terms = float((weights + gains * table.sum(axis=1) / sums) @ lengths)
        return rows, max(float(np.linalg.norm(weights @ triangle)), beside), rounding * terms

    first, _, _ = parts(keys)
    within = 1.0
    for growth in 2.0 ** np.arange(0, math.log2(_MOST_KEYS / keys), 1 / 8):
        rows, uniform, rounded = parts(keys * growth)
        if max(float(np.linalg.norm(rows - first)), uniform) > tolerance * (norm or 1.0) + rounded:
            patches = zip(image_size, layer.patch_size, strict=True)
            scale = within ** (1 / len(image_size))
            return tuple(p * int(side * scale // p) for side, p in patches)
        within = growth
    return None


def _largest_new_shift(encoding: RelativePosition, axes: int) -> list[int] | None:
    """On each axis a shift beyond which a head does nothing new; None where there is none."""
    if isinstance(encoding, OffsetTable):
        return np.abs(np.array(encoding.offsets)).max(axis=0).tolist()
    if isinstance(encoding, QuadraticEncoding | GaussianEncoding):
        return np.ceil(np.abs(np.asarray(encoding.centers, float)).max(axis=0)).astype(int).tolist()
    if isinstance(encoding, QuadraticGridEncoding):
        return [math.ceil(np.abs(np.asarray(part, float)).max()) for part in encoding.centers]
    if isinstance(encoding, LearnedEncoding):
        return [len(table) // 2 for table in encoding.tables]
    if isinstance(encoding, RelativeEncoding) and encoding.table is not None:
        return [n // 2 for n in encoding.table.shape[:-1]]
    if isinstance(encoding, RotaryEncoding):
        turns: Sequence[Any] = [encoding.turns[..., axis] for axis in range(axes)]
    elif isinstance(encoding, AxialRotaryEncoding):
        turns = encoding.turns
    else:
        return None
    if encoding.largest_shift:
        return list(encoding.largest_shift)
    periods = [_period(np.asarray(part)) for part in turns]
    return None if max(periods) > MAX_SCORES else periods


def _period(turns: np.ndarray) -> int:
    """After how many tokens all pairs have made whole turns: floating point is dyadic.

    >>> _period(np.array([[0.5, 0.125]]))
    8
    """
    return math.lcm(*(Fraction(float(turn)).denominator for turn in turns.ravel()))


def _relative_norm(
    layer: AttentionLayer, observed: list[int], sides: list[int]
) -> tuple[float, float]:
    """|R| at shifts beyond `observed` and within `sides`, relative to all, and its rounding."""
    number = math.prod(2 * side + 1 for side in sides)
    gains = layer.encoding.head_gains(number)
    flat = np.asarray(working_maps(layer), np.float64).reshape(layer.heads, -1)
    flat = flat * (1.0 if gains is None else np.asarray(gains, np.float64)[:, None])
    ranges = [np.arange(-side, side + 1) for side in sides]
    encoding: Any = layer.encoding
    if isinstance(encoding, AxialRotaryEncoding):
        return _relative_norm_of_product(encoding, flat, ranges, observed), 0.0
    shifts = np.stack([part.ravel() for part in np.meshgrid(*ranges, indexing="ij")], axis=1)
    weights = _softmax(encoding, shifts, number)
    triangle = np.linalg.qr(flat.T).R.T  # |a W| = |a triangle|, in fewer columns
    squares = ((weights.T @ triangle) ** 2).sum(axis=1)
    beyond = (np.abs(shifts) > observed).any(axis=1)
    total = squares.sum()
    if total == 0:
        return 0.0, 0.0
    terms = float(np.linalg.norm(np.linalg.norm(flat, axis=1) @ weights[:, beyond]))
    exact = getattr(layer.encoding, "is_exact_form", False)  # its uniform head is to cancel
    rounding = 4 * layer.heads * unit_roundoff(layer.dtype or np.float32) * exact
    fraction = math.sqrt(squares[beyond].sum() / total)
    return fraction, float(rounding * terms / math.sqrt(total))


def _relative_norm_of_product(
    encoding: AxialRotaryEncoding, maps: np.ndarray, ranges: list[np.ndarray], observed: list[int]
) -> float:
    """Of weights that are a product over the axes: |R|² = Σ_hh' ⟨W_h, W_h'⟩ Π_a Σ_δ a_h a_h'."""
    near, far = maps @ maps.T, np.zeros(())
    for axis, shifts in enumerate(ranges):
        weights = _softmax(encoding.along(axis), shifts[:, None], 1)
        blocks = [
            weights[:, part]
            for part in (abs(shifts) <= observed[axis], abs(shifts) > observed[axis])
        ]
        within, beyond = (part @ part.T for part in blocks)
        near, far = near * within, near * beyond + far * (within + beyond)
    total, distant = (near + far).sum(), far.sum()
    return math.sqrt(max(distant, 0.0) / total) if total > 0 else 0.0


def _softmax(encoding: RelativePosition, shifts: np.ndarray, number: int) -> np.ndarray:
    """The weights of each head over these shifts, in float64."""
    scores = np.concatenate(
        [
            np.asarray(encoding.shift_scores(shifts[start : start + _AT_ONCE], number), np.float64)
            for start in range(0, len(shifts), _AT_ONCE)
        ],
        axis=1,
    )
    weights = np.exp(scores - scores.max(axis=1, keepdims=True))
    return weights / weights.sum(axis=1, keepdims=True)
