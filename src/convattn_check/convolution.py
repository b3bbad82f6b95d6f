"""The convolution, from its definition, seen from the tokens.

    out[x] = Σ_t in[x + t·d] W[t]        (pixels outside the image are 0)

over the taps t of the kernel: -(K-1)//2, …, K//2 on each axis, so -r, …, r for odd K. Here d is the
dilation. Tap t has the index t + (K-1)//2 in the kernel. Stride s keeps the outputs at 0, s, 2s, ….

A token is a patch of P pixels a side: pixel x = P·n + p is pixel p of token n. Output pixel p of
token n reads pixel P·n + p + t·d = P·(n + δ) + q, which is pixel q of token n + δ, with

    δ = ⌊(p + t·d) / P⌋,        P·δ + q - p = t·d.

The first, over all pixels p of a token, is the list of token offsets; the second, solved for t, is
the pattern: which tap stands between pixel q of token n + δ and output pixel p of token n. Neither
depends on n. A stride that goes straight to the tokens drops output pixels from the pattern but no
offset from the list, so that there are as many heads as without it; an offset that no pixel needs
any more has an empty pattern.
"""

from collections.abc import Sequence
from itertools import product
from math import prod
from typing import NamedTuple

ABSENT = -1  # in a pattern: no tap stands between these pixels


class Axis(NamedTuple):
    """One axis of a convolution; `skip` is the step between the output pixels of a token.

    The skip is the stride if the stride goes straight to the tokens (it divides P then), and 1 if
    every pixel is computed, as for stride 1.
    """

    kernel: int
    patch: int
    dilation: int = 1
    skip: int = 1

    def taps(self) -> range:
        """The taps.

        >>> list(Axis(3, 1).taps()), list(Axis(4, 1).taps())
        ([-1, 0, 1], [-1, 0, 1, 2])
        """
        return range(-((self.kernel - 1) // 2), self.kernel // 2 + 1)

    def outputs(self) -> range:
        """The output pixels of a token: 0, s, 2s, …."""
        return range(0, self.patch, self.skip)

    def offsets(self) -> list[int]:
        """The tokens that a token reads, relative to it: {⌊(p + t·d)/P⌋}, sorted.

        >>> Axis(5, 16).offsets(), Axis(3, 2, dilation=5).offsets()
        ([-1, 0, 1], [-3, -2, 0, 2, 3])
        """
        reads = product(range(self.patch), self.taps())
        return sorted({(pixel + tap * self.dilation) // self.patch for pixel, tap in reads})

    def tap_index(self, offset: int, output: int, pixel: int) -> int:
        """The index of the tap t with P·δ + q - p = t·d, or `ABSENT`."""
        tap, rest = divmod(self.patch * offset + pixel - output, self.dilation)
        return tap - self.taps().start if rest == 0 and tap in self.taps() else ABSENT

    def pattern(self) -> list[list[list[int]]]:
        """[offset][output pixel][input pixel] → index of the tap, or `ABSENT`.

        >>> Axis(3, 2).pattern()[0]  # the token on the left: only its pixel 1 is read, by tap -1
        [[-1, 0], [-1, -1]]
        """
        return [
            [[self.tap_index(offset, p, q) for q in range(self.patch)] for p in self.outputs()]
            for offset in self.offsets()
        ]


def kernel_entry(
    axes: Sequence[Axis],
    kernel: Sequence[int],
    out_channels: int,
    row: Sequence[int],
    offset: Sequence[int],
) -> int:
    """W_(Pδ+q-p)[i, j], 0 if there is no such tap, for the row (p.., q.., i, j).

    The kernel is flat, in the order [K.., in, out] (HWIO).

    >>> kernel_entry([Axis(3, 2)], [5, 7, 11], 1, (0, 1, 0, 0), (-1,))  # tap 2·(-1) + 1 - 0 = -1
    5
    """
    *pixels, channel_in, channel_out = row
    position = 0
    for number, axis in enumerate(axes):
        index = axis.tap_index(offset[number], pixels[number], pixels[number + len(axes)])
        if index == ABSENT:
            return 0
        position = position * axis.kernel + index
    in_channels = len(kernel) // (prod(axis.kernel for axis in axes) * out_channels)
    return kernel[(position * in_channels + channel_in) * out_channels + channel_out]


def response_to_ones(
    axes: Sequence[Axis], kernel: Sequence[int], image: Sequence[int], token: Sequence[int]
) -> list[int]:
    """The outputs of one token, row-major, for the image of ones: the sums of the taps inside."""
    weights = dict(zip(product(*(axis.taps() for axis in axes)), kernel, strict=True))
    sums = []
    for pixels in product(*(axis.outputs() for axis in axes)):
        inside = (
            [tap for tap in axis.taps() if 0 <= axis.patch * n + pixel + tap < side]
            for axis, n, pixel, side in zip(axes, token, pixels, image, strict=True)
        )
        sums.append(sum(weights[tap] for tap in product(*inside)))
    return sums
