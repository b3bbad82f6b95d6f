"""What the heads of a layer do beyond the images on which it is compared with a convolution.

A layer that is a convolution on one image need not be one on a larger one: a table may have an
entry for a shift that does not occur in the smaller image, and the scores of rotary positions come
back after a period. Where scores depend on the shift alone, one query says it for all: with keys at
all shifts δ up to S the layer has at δ the map

    R_δ = Σ_h a_hδ g_h W_h,    a_h the softmax of head h over these shifts, g_h its gain,

and of a convolution R_δ is zero beyond the kernel. So |R| beyond the shifts that were seen,
relative to |R| of all, tells whether anything new happens there. That needs one number for each
head and shift, where attention on the image has one for each head and pair of pixels.
"""

import math
from collections.abc import Sequence
from fractions import Fraction
from typing import Any, NamedTuple

import numpy as np

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
from convattn.networks.recovered_kernel import working_maps
from convattn.operators.roundoff import unit_roundoff

MAX_SCORES = 2**24  # scores that are looked at
_AT_ONCE = 2**18


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
