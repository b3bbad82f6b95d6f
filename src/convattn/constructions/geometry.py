"""What a construction must know of a convolution besides its weights, worked out once."""

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import product

import numpy as np
from jaxtyping import Int

from convattn.constructions.cordonnier_remarks import strided_output_pixels, zero_ring
from convattn.operators.patches import Ring
from convattn.operators.shifts import Shift, axis_taps, axis_token_offsets, per_axis


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
            ValueError: For sizes that are not positive integers, one for each axis.
        """
        axes = len(kernel_size)
        return cls(
            tuple(kernel_size),
            per_axis(patch_size, axes, "patch_size"),
            per_axis(stride, axes, "stride"),
            per_axis(dilation, axes, "dilation"),
        )

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
        kept = [
            strided_output_pixels(p, s) for p, s in zip(self.patch_size, self.stride, strict=True)
        ]
        if any(pixels is None for pixels in kept):
            return tuple(range(p) for p in self.patch_size)
        return tuple(pixels for pixels in kept if pixels is not None)

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
