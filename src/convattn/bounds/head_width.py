"""What a head dimension d_H costs: widths of the maps, and bounds on N_H·d_H.

A head of dimension d_H has a value map W_h = V_h U_h of rank at most d_H. Write M_δ for the map of
the convolution from the token at q + δ to the token at q, a patch of d_in = P²·D_in numbers to one
of d_out = P²·D_out, and N_H for the number of heads; n = min(D_in, D_out).

**Enough.** The map M_δ uses only the input pixels from which some tap reaches patch q, and only the
output pixels that these reach. Its rank is at most its width, the smaller of the two numbers of
coordinates, and ⌈width/d_H⌉ heads that look at δ take it coordinate by coordinate
(`convattn.constructions.head_dimension`). Σ_δ ⌈width_δ/d_H⌉ heads suffice in the limit; at finite
parameters the uniform head of S.finite has a map of width P²·n, split likewise. Without dilation
the width is the rank of M_δ for a generic kernel.

**Needed, by the other two matricisations.** The columns of all M_δ lie in the span of those of all
V_h, so N_H·d_H ≥ rk_in, the rank of the matrix [M_δ]_δ with d_in rows; likewise ≥ rk_out. Both are
closed conditions and hold in every limit. With finite scores a key outside the receptive field has
positive weights c_h and Σ c_h V_h U_h = 0, a product of matrices of ranks at least rk_in and rk_out
through N_H·d_H dimensions: N_H·d_H ≥ rk_in + rk_out (Sylvester). A generic kernel has
rk_in ≥ P²·min(D_in, D_out·f), where f taps can be chosen whose copies of a patch do not overlap:
let up to f·D_out input channels each be copied by one of these taps to one output channel.
Likewise rk_out.

**Needed, by substitution.** Some kernel makes M_0 + Σ_(δ≠0) c_δ M_δ have the rank P²·n for all
numbers c: let W_0 be the unit matrix on the first n channels and every other W_t strictly upper
triangular there; then that matrix is triangular with ones on its diagonal. Let ρ' columns δ ≠ 0 of
F be independent. They factor through the heads' weights at these δ, so some ρ' heads have
independent such weights, and numbers c can be found with a_h(0) + Σ c_δ a_h(δ) = 0 for these heads.
In M_0 + Σ c_δ M_δ = Σ_h (a_h(0) + Σ c_δ a_h(δ)) W_h they are gone, so

    N_H ≥ ρ' + ⌈P²·n/d_H⌉.

With finite scores the weights at a key outside, all positive, are no combination Σ x_δ a_h(δ) of
those at these δ, since Σ x_δ M_δ = 0 would follow: one head more can be removed, and is needed.
The bound is for layers, and
for limits in which the value maps stay bounded, so that a layer remains in the limit. It fails
where value maps may diverge: with M_0 = (0 1; 1 0) and M_1 = (1 0; 0 0) two heads of dimension one
tend to a layer that takes three.
"""

from itertools import product
from math import prod

Sizes = tuple[int, ...]


def map_widths(
    kernel_size: Sizes, patch_size: Sizes, dilation: Sizes, in_channels: int, out_channels: int
) -> list[int]:
    """The width of M_δ for every token offset δ, row-major.

    **Returns:** min(input coordinates, output coordinates) that M_δ can use.

    >>> widths = map_widths((3, 3), (16, 16), (1, 1), 3, 3)
    >>> sorted(set(widths))
    [3, 48, 768]
    """
    axes = [_axis_supports(*sizes) for sizes in zip(kernel_size, patch_size, dilation, strict=True)]
    return [
        min(
            prod(inputs for inputs, _ in supports) * in_channels,
            prod(outputs for _, outputs in supports) * out_channels,
        )
        for supports in product(*axes)
    ]


def _axis_supports(kernel_size: int, patch_size: int, dilation: int) -> list[tuple[int, int]]:
    """For each offset of an axis, how many pixels are read and how many are written."""
    read: dict[int, set[int]] = {}
    written: dict[int, set[int]] = {}
    before = (kernel_size - 1) // 2
    for pixel, tap in product(range(patch_size), range(-before, kernel_size - before)):
        offset, other = divmod(pixel + tap * dilation, patch_size)
        read.setdefault(offset, set()).add(other)
        written.setdefault(offset, set()).add(pixel)
    return [(len(read[offset]), len(written[offset])) for offset in sorted(read)]


def matricisation_ranks(
    kernel_size: Sizes, patch_size: Sizes, dilation: Sizes, in_channels: int, out_channels: int
) -> tuple[int, int]:
    """What rk_in and rk_out are at least, for a generic kernel.

    >>> matricisation_ranks((3, 3), (16, 16), (1, 1), 3, 3)
    (768, 768)
    >>> matricisation_ranks((3, 3), (1, 1), (1, 1), 64, 4)
    (36, 4)
    """
    pixels = prod(patch_size)
    apart = prod(
        1 + (k - 1) // -(-p // d) for k, p, d in zip(kernel_size, patch_size, dilation, strict=True)
    )
    return (
        pixels * min(in_channels, out_channels * apart),
        pixels * min(out_channels, in_channels * apart),
    )


def triangular_pairs(in_channels: int, out_channels: int) -> int:
    """Channel pairs that are free off the centre in the kernel of the substitution bound.

    >>> triangular_pairs(3, 3), triangular_pairs(1, 4), triangular_pairs(1, 1)
    (3, 3, 0)
    """
    n = min(in_channels, out_channels)
    return in_channels * out_channels - n * (n + 1) // 2
