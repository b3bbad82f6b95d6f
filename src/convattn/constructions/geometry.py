"""What a construction must know of a convolution besides its weights, worked out once.

C20 §3, the remarks after Theorem 1, says how padding, stride, dilation and sequences are served.

**Padding.** C20 says that attention uses "SAME" padding by default. That is true of the shape.
The values differ: on the bare grid a constant image is mapped to a constant output by every
softmax layer, because rows sum to one, while the zero-padded convolution loses the taps that
fall outside. Repair: lay a ring of zero tokens around the image. A zero token stands for P zero
pixels on each axis, so the convolution of the ringed image, read at the image's own pixels, is
the zero-padded convolution; and with a ring as wide as the furthest offset, every key q + δ of
an image token q exists, so that Lemma 2 applies at every query. (`zero_ring`)

**Stride.** Conv_s(X)_i = Conv_1(X)_(s·i), by definition. So a fixed subsampling after the layer
gives any stride. Where s divides P, the pixels that are kept are the same ones in every patch,
{0, s, 2s, …}, and the output map can leave the others out. (`strided_output_pixels`) Where s
does not divide P this fails: for P = 2, s = 3 the pixels kept in successive patches are {0},
{1}, {}.

**Dilation.** Conv reads X_(q + d·t) for the taps t. A head may look at any shift, so it looks at
d·t; nothing else changes. The ring must be d·(K-1)/2 wide instead of (K-1)/2.
(`axis_token_offsets`)

**Sequences.** On one axis r_δ = (δ², δ) and v = -α(1, -2Δ), D_p = 2: the proof of Lemma 2 reads the
same with the second coordinate left out. (`QuadraticEncoding` with one coordinate)
"""

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import product

import numpy as np
from jaxtyping import Int

from convattn.operators.integers import per_axis
from convattn.operators.patches import Ring, check_ring
from convattn.operators.shifts import Shift, axis_taps, axis_token_offsets

# Pixels on an axis: beyond these sizes a layer would be too large to be made, or serve no image.
MAX_STEPS = {"patch_size": 2**12, "stride": 2**20, "dilation": 2**20}


@dataclass(frozen=True)
class ConvolutionGeometry:
    """Kernel size, patches, stride and dilation of a convolution on patches.

    Attributes:
        For each axis `kernel_size` K, `patch_size` P, `stride` s and `dilation` d.

    >>> geometry = ConvolutionGeometry.of((3, 3), patch_size=2)
    >>> geometry.heads, geometry.ring
    (9, ((1, 1), (1, 1)))
    """

    kernel_size: tuple[int, ...]
    patch_size: tuple[int, ...]
    stride: tuple[int, ...]
    dilation: tuple[int, ...]

    @classmethod
    def of(
        cls,
        kernel_size: Sequence[int],
        patch_size: int | Sequence[int] = 1,
        stride: int | Sequence[int] = 1,
        dilation: int | Sequence[int] = 1,
    ) -> "ConvolutionGeometry":
        """Read sizes given as one integer or as one for each axis.

        Raises:
            ValueError: For sizes that are not positive integers up to `MAX_STEPS`, one for each
                axis, and for a ring that is too wide.
        """
        axes = len(kernel_size)
        options = {"patch_size": patch_size, "stride": stride, "dilation": dilation}
        sizes = [per_axis(options[name], axes, name, most=MAX_STEPS[name]) for name in MAX_STEPS]
        geometry = cls(tuple(kernel_size), *sizes)
        check_ring(geometry.ring, axes)
        return geometry

    @property
    def axis_offsets(self) -> tuple[tuple[int, ...], ...]:
        """On each axis, the token offsets that the convolution reads."""
        sizes = zip(self.kernel_size, self.patch_size, self.dilation, strict=True)
        return tuple(axis_token_offsets(k, p, d) for k, p, d in sizes)

    @property
    def offsets(self) -> tuple[Shift, ...]:
        """Every token offset, row-major over the axes; one head looks at each."""
        return tuple(product(*self.axis_offsets))

    @property
    def heads(self) -> int:
        """T = (2m + 1)² for odd square kernels without dilation; K² for pixels."""
        return len(self.offsets)

    @property
    def ring(self) -> Ring:
        """The zero tokens that make the layer's result the zero-padded convolution."""
        return zero_ring(self.axis_offsets)

    @property
    def writes_stride_to_tokens(self) -> bool:
        """Whether the output map leaves out the pixels that the stride drops."""
        return all(p % s == 0 for p, s in zip(self.patch_size, self.stride, strict=True))

    @property
    def output_pixels(self) -> tuple[range, ...]:
        """On each axis, the pixels of a patch that the layer computes."""
        ranges = [
            strided_output_pixels(p, s) for p, s in zip(self.patch_size, self.stride, strict=True)
        ]
        if any(pixels is None for pixels in ranges):
            return tuple(range(p) for p in self.patch_size)
        return tuple(pixels for pixels in ranges if pixels is not None)

    @cached_property
    def tap_index(self) -> tuple[Int[np.ndarray, "offsets outputs inputs"], ...]:
        """On each axis, the tap that joins an output pixel to an input pixel of another patch.

        Entry [δ, p, q] is the index of the tap t with P·δ + q - p = d·t, or -1 where there is none:
        the (x, y)(r, s, t) of L21's remark on W^O, with -1 rather than 0 for "absent", since (0, 0)
        is the centre tap in L21 eq. 1.
        """
        indices = []
        sizes = zip(self.kernel_size, self.patch_size, self.dilation, strict=True)
        for (k, p, d), offsets, outputs in zip(
            sizes, self.axis_offsets, self.output_pixels, strict=True
        ):
            distance = (
                p * np.array(offsets)[:, None, None]
                + np.arange(p)[None, None, :]
                - np.array(outputs)[None, :, None]
            )
            tap = distance // d - axis_taps(k).start
            present = (distance % d == 0) & (tap >= 0) & (tap < k)
            indices.append(np.where(present, tap, -1))
        return tuple(indices)


def zero_ring(axis_offsets: Sequence[Sequence[int]]) -> Ring:
    """The zero tokens that make every offset of every image token exist.

    On each axis 0 is one of the offsets.

    Source: C20 §3, "Padding"; L21 leaves the border to the reader.

    >>> zero_ring([(-1, 0, 1), (0, 2)])
    ((1, 1), (0, 2))
    """
    return tuple((-min(axis), max(axis)) for axis in axis_offsets)


def strided_output_pixels(patch_size: int, stride: int) -> range | None:
    """On one axis, the pixels of a patch that a stride keeps, or None if patches differ in that.

    Source: C20 §3, "Stride"; L21 §3.1, "generalised to other forms of convolution".

    >>> strided_output_pixels(4, 2), strided_output_pixels(2, 3)
    (range(0, 4, 2), None)
    """
    return None if patch_size % stride else range(0, patch_size, stride)
