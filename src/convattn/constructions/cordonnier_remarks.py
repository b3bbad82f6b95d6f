"""C20 §3, the remarks after Theorem 1: padding, stride, dilation, sequences.

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

from convattn.operators.patches import Ring


def zero_ring(axis_offsets: Sequence[Sequence[int]]) -> Ring:
    """The zero tokens that make every offset of every image token exist.

    Source: C20 §3, "Padding"; L21 leaves the border to the reader.

    >>> zero_ring([(-1, 0, 1), (0, 2)])
    ((1, 1), (0, 2))
    """
    return tuple((max(0, -min(axis)), max(0, *axis)) for axis in axis_offsets)


def strided_output_pixels(patch_size: int, stride: int) -> range | None:
    """On one axis, the pixels of a patch that a stride keeps, or None if patches differ in that.

    Source: C20 §3, "Stride"; L21 §3.1, "generalised to other forms of convolution".

    >>> strided_output_pixels(4, 2), strided_output_pixels(2, 3)
    (range(0, 4, 2), None)
    """
    return None if patch_size % stride else range(0, patch_size, stride)
