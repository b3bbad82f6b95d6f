"""What stands outside an image: a fill, and how many pixels of it on each side.

A convolution of stride s and dilation d with b pixels before the image reads, at output i,

    X_(s·i + d·t - b),    t = 0, …, K - 1.

Every padding of the frameworks is a fill and a pair of widths (before, after) for each axis. With
w = (⌊d(K-1)/2⌋, ⌈d(K-1)/2⌉), which keeps the size at stride 1:

| name           | fill    | widths      | elsewhere                                          |
|----------------|---------|-------------|----------------------------------------------------|
| `"SAME"`       | zeros   | see below   | XLA, Flax, Keras and TensorFlow `"SAME"`           |
| `"SAME_LOWER"` | zeros   | see below   | XLA and Flax `"SAME_LOWER"`                        |
| `"SAME_TORCH"` | zeros   | w           | PyTorch `padding="same"`, `padding=k//2` for odd K |
| `"VALID"`      | zeros   | 0           | `"VALID"`                                          |
| `"CAUSAL"`     | zeros   | (d(K-1), 0) | Flax `"CAUSAL"`, Keras `"causal"`; on sequences    |
| `"CIRCULAR"`   | wraps   | w           | Flax `"CIRCULAR"`, PyTorch `"circular"`            |
| `"REFLECT"`    | mirrors | w           | Flax `"REFLECT"`, PyTorch `"reflect"`              |
| `"EDGE"`       | nearest | w           | PyTorch `"replicate"`                              |
| `"MEAN"`       | mean    | w           | the border of S.boundary                           |

XLA's rule makes ⌈n/s⌉ outputs of n pixels: it lays p = max(0, (⌈n/s⌉ - 1)s + d(K-1) + 1 - n) zeros,
⌊p/2⌋ of them before, or after for `"SAME_LOWER"`. At stride 1 that is w, or w turned round. At
stride 2 and even n it is one pixel off from `"SAME_TORCH"`.

A kernel reaches r = (d·⌊(K-1)/2⌋, d·⌊K/2⌋) from its centre, the tap at ⌊(K-1)/2⌋. That is w, but
for even K with d > 1: there output q has its centre at pixel q - ⌊d/2⌋.
"""

from collections.abc import Sequence
from typing import Any, NamedTuple

import jax.numpy as jnp
from jax import Array, lax
from jax.core import max_dim
from jax.errors import InconclusiveDimensionOperation
from jax.export import is_symbolic_dim
from jaxtyping import Int, Num

from convattn.operators.arrays import accumulation_dtype
from convattn.operators.integers import as_integer
from convattn.operators.shifts import Queries, axis_queries

Widths = tuple[tuple[int, int], ...]  # for each axis (before, after)

NAMED_PADDINGS = (
    "SAME",
    "SAME_LOWER",
    "SAME_TORCH",
    "VALID",
    "CIRCULAR",
    "REFLECT",
    "EDGE",
    "MEAN",
    "CAUSAL",
)
FILLS = {"ZEROS": "constant", "EDGE": "edge", "CIRCULAR": "wrap", "REFLECT": "reflect", "MEAN": ""}


class Padding(NamedTuple):
    """The padding of a convolution whose kernel size and dilation are known.

    Attributes:
        fill: `"ZEROS"`, `"EDGE"`, `"CIRCULAR"`, `"REFLECT"` or `"MEAN"`.
        widths: The pixels (before, after) on each axis; empty for XLA's rule.
        reach: For each axis how far the kernel reaches from its centre, (before, after).
        lower: Whether XLA's rule lays an odd zero before the image.
    """

    fill: str
    widths: Widths
    reach: Widths
    lower: bool = False

    def __str__(self) -> str:
        """The rule of XLA by its name, zeros by their widths, what is filled in by its name."""
        if not self.widths:
            return "SAME_LOWER" if self.lower else "SAME"
        return str(self.widths) if self.fill == "ZEROS" else self.fill

    @property
    def is_zero_ring(self) -> bool:
        """Whether it is zeros as far as the kernel reaches: SAME at stride 1, odd K or d = 1."""
        return self.fill == "ZEROS" and self.widths == self.reach

    @property
    def is_too_wide(self) -> bool:
        """Whether there would be more outputs than pixels before a stride drops any."""
        sides = zip(self.widths, self.reach, strict=False)  # XLA's rule has no widths
        return any(sum(width) > sum(reach) for width, reach in sides)

    def at(self, image_size: Sequence[int], stride: Sequence[int]) -> Widths:
        """The widths at one image size, which XLA's rule depends on.

        >>> read_padding("SAME", (3,), (1,), (2,)).at((8,), (2,))
        ((0, 1),)
        """
        if self.widths:
            return self.widths
        widths = []
        for size, step, (before, after) in zip(image_size, stride, self.reach, strict=True):
            total = max_dim(0, (-(-size // step) - 1) * step + before + after + 1 - size)
            pair = (total // 2, total - total // 2)
            widths.append(pair[::-1] if self.lower else pair)
        return tuple(widths)

    def output_size(self, image_size: Sequence[int], stride: Sequence[int]) -> tuple[int, ...]:
        """How many pixels the convolution makes of an image, on each axis.

        >>> read_padding("VALID", (3,), (1,), (2,)).output_size((8,), (2,))
        (3,)
        """
        sides = zip(image_size, stride, self.at(image_size, stride), self.reach, strict=True)
        sizes = tuple(
            (n + sum(width) - sum(reach) - 1) // step + 1 for n, step, width, reach in sides
        )
        if not all(_is_at_least(size, 1) for size in sizes):
            raise ValueError(
                f"images of {tuple(image_size)} pixels leave no position for a kernel that reaches "
                f"over {tuple(1 + sum(pair) for pair in self.reach)}, padded by "
                f"{self.at(image_size, stride)}; use padding='SAME', pad more, or take a smaller "
                "kernel or larger images"
            )
        return sizes


def read_padding(
    padding: Any, kernel_size: Sequence[int], dilation: Sequence[int], stride: Sequence[int]
) -> Padding:
    """A padding as `conv` takes it.

    Args:
        padding: One of `NAMED_PADDINGS`; an integer, so many zeros on every side; or for each axis
            an integer or a pair (before, after).

    >>> read_padding("SAME", (3, 3), (1, 2), (1, 1)).widths
    ((1, 1), (2, 2))
    >>> read_padding([1, (0, 2)], (3, 3), (1, 1), (2, 2)).widths
    ((1, 1), (0, 2))
    """
    if isinstance(padding, Padding):
        return padding
    axes = len(kernel_size)
    sizes = tuple(zip(kernel_size, dilation, strict=True))
    reach = centred_padding(kernel_size, dilation).reach
    same = tuple((d * (k - 1) // 2, -(-d * (k - 1) // 2)) for k, d in sizes)
    if isinstance(padding, str) and padding == "CAUSAL" and axes != 1:
        raise ValueError(
            f"padding='CAUSAL' with {axes} spatial axes, but expected a sequence, which has an "
            "order; write the pairs (before, after) of each axis"
        )
    upper, lower = Padding("ZEROS", (), reach), Padding("ZEROS", (), reach, lower=True)
    if set(stride) == {1}:  # then the widths do not depend on the image
        upper = Padding("ZEROS", same, reach)
        lower = Padding("ZEROS", tuple(pair[::-1] for pair in same), reach)
    named = {
        "SAME": upper,
        "SAME_LOWER": lower,
        "SAME_TORCH": Padding("ZEROS", same, reach),
        "VALID": Padding("ZEROS", ((0, 0),) * axes, reach),
        "CAUSAL": Padding("ZEROS", tuple((sum(pair), 0) for pair in reach), reach),
    } | {fill: Padding(fill, same, reach) for fill in ("CIRCULAR", "REFLECT", "EDGE", "MEAN")}
    if isinstance(padding, str) and padding in named:
        return named[padding]
    try:
        sides = padding if isinstance(padding, Sequence) else (padding,) * axes
        pairs = [side if isinstance(side, Sequence) else (side, side) for side in sides]
        if not isinstance(padding, str) and len(pairs) == axes:
            before, after = zip(*pairs, strict=True)
            widths = [[as_integer(w, "padding", 0) for w in sides] for sides in (before, after)]
            return Padding("ZEROS", tuple(zip(*widths, strict=True)), reach)
    except (TypeError, ValueError):
        pass
    hint = ""
    if isinstance(padding, str) and padding.upper() in NAMED_PADDINGS:
        hint = f"; write {padding.upper()!r}"
    raise ValueError(
        f"padding={padding!r}, but expected one of {', '.join(NAMED_PADDINGS)}, an integer ≥ 0, "
        f"the zeros on every side, or {axes} of them, one integer or pair (before, after) for "
        f"each axis{hint}"
    )


def centred_padding(kernel_size: Sequence[int], dilation: Sequence[int]) -> Padding:
    """Zeros as far as the kernel reaches from its centre: what a ring of zero tokens stands for.

    >>> centred_padding((4,), (2,)).widths, read_padding("SAME", (4,), (2,), (1,)).widths
    (((2, 4),), ((3, 3),))
    """
    sizes = zip(kernel_size, dilation, strict=True)
    reach = tuple((d * ((k - 1) // 2), d * (k // 2)) for k, d in sizes)
    return Padding("ZEROS", reach, reach)


def _is_at_least(size: Any, minimum: int) -> bool:
    """Whether an axis is at least that long; of a symbol of `jax.export` its constraints decide.

    >>> import jax
    >>> (size,) = jax.export.symbolic_shape("n", constraints=["n >= 5"])
    >>> _is_at_least(3, 2), _is_at_least(size - 3, 2)
    (True, True)
    """
    try:
        return bool(size >= minimum)
    except InconclusiveDimensionOperation as error:
        raise ValueError(
            f"size={size} of an axis, but expected a symbolic size that is known to be at least "
            f"{minimum}, as the kernel needs it; constrain it, as in "
            "jax.export.symbolic_shape('height', constraints=['height >= 8'])"
        ) from error


def fill_around(
    images: Num[Array, "batch *space channels"], fill: str, widths: Widths
) -> Num[Array, "batch *filled channels"]:
    """Images with so many pixels of the fill around them; with a mean, in at least float32.

    >>> image = jnp.array([[[1], [2], [6]]])
    >>> fill_around(image, "REFLECT", ((1, 2),)).ravel().tolist()
    [2, 1, 2, 6, 2, 1]
    >>> fill_around(image, "MEAN", ((1, 0),)).ravel().tolist()
    [3.0, 1.0, 2.0, 6.0]
    """
    around = [(0, 0), *widths, (0, 0)]
    if fill != "MEAN":
        if fill in ("CIRCULAR", "REFLECT") and any(map(is_symbolic_dim, images.shape[1:-1])):
            for axis, width in enumerate(widths, start=1):
                indices = outside_places(images.shape[axis], width, fill)
                images = jnp.take(images, indices, axis)
            return images
        return jnp.pad(images, around, mode=FILLS[fill])
    spatial = tuple(range(1, images.ndim - 1))
    wide = images.astype(accumulation_dtype(images.dtype, jnp.float32))
    mean = wide.mean(spatial, keepdims=True)
    inside = jnp.pad(jnp.ones(images.shape[1:-1], bool), widths)[None, ..., None]
    return jnp.where(inside, jnp.pad(wide, around), mean)


def outside_places(size: int, width: tuple[int, int], fill: str) -> Int[Array, " filled"]:
    """Which pixel of an axis stands at each place of it and of the fill (before, after) around it.

    `jnp.pad` decides from the size how often it wraps or mirrors: it refuses a symbolic one.

    >>> outside_places(3, (2, 4), "CIRCULAR").tolist()
    [1, 2, 0, 1, 2, 0, 1, 2, 0]
    >>> outside_places(3, (2, 4), "REFLECT").tolist()
    [2, 1, 0, 1, 2, 1, 0, 1, 2]
    """
    indices = jnp.arange(width[0] + size + width[1]) - width[0]
    if fill == "CIRCULAR":
        return indices % size
    period = max_dim(2 * size - 2, 1)
    return jnp.minimum(indices % period, period - indices % period) % size


class FilledAxis(NamedTuple):
    """One axis of an image around which a ring of tokens is filled.

    Attributes:
        fill: The pixels of the padding (before, after).
        lay: Zeros laid around that, or pixels cut off where negative (before, after): what no
            query reads.
        tokens: How many tokens there are then.
        queries: Those whose outputs are computed.
        outputs: How many pixels of output there are.
    """

    fill: tuple[int, int]
    lay: tuple[int, int]
    tokens: int
    queries: Queries
    outputs: int


def filled_axes(
    padding: Padding,
    image_size: Sequence[int],
    stride: Sequence[int],
    patch_size: Sequence[int],
    ring: Widths,
) -> tuple[FilledAxis, ...]:
    """How an image is filled, axis by axis, before patches are cut from it.

    With b pixels before the image, and c from the kernel's first tap to its centre, output 0 has
    its centre at pixel c - b of the image, which becomes the first pixel of the first token behind
    the ring. So the outputs begin with a patch at every stride, and the image's own patches stay
    whole where b = c.

    Args:
        ring: The tokens (before, after) that a token reads on each axis.

    >>> padding = read_padding("SAME", (3,), (1,), (2,))
    >>> filled_axes(padding, (8,), (2,), (1,), ((1, 1),))
    (FilledAxis(fill=(0, 1), lay=(0, 0), tokens=9, queries=range(1, 8, 2), outputs=4),)
    """
    widths, outputs = padding.at(image_size, stride), padding.output_size(image_size, stride)
    axes = []
    for axis, (size, patch, step) in enumerate(zip(image_size, patch_size, stride, strict=True)):
        (before, after), (ring_before, ring_after) = widths[axis], ring[axis]
        holding = (outputs[axis] - 1) * step // patch + 1
        tokens = ring_before + holding + ring_after
        start = ring_before * patch - padding.reach[axis][0]
        lay = (start, tokens * patch - start - before - size - after)
        queries = axis_queries(ring_before, ring_before + holding, step if patch == 1 else 1)
        axes.append(FilledAxis((before, after), lay, tokens, queries, outputs[axis]))
    return tuple(axes)


def fill_ring(
    images: Num[Array, "batch *space channels"], fill: str, axes: Sequence[FilledAxis]
) -> Num[Array, "batch *filled channels"]:
    """Images with the ring of `filled_axes` around them.

    >>> axes = filled_axes(read_padding("EDGE", (3,), (1,), (2,)), (3,), (1,), (2,), ((1, 1),))
    >>> fill_ring(jnp.array([[[1], [2], [3]]]), "EDGE", axes).ravel().tolist()
    [0, 1, 1, 2, 3, 3, 0, 0]
    """
    filled = fill_around(images, fill, tuple(axis.fill for axis in axes))
    around = [(0, 0, 0), *((*axis.lay, 0) for axis in axes), (0, 0, 0)]
    return lax.pad(filled, jnp.zeros((), filled.dtype), around)
