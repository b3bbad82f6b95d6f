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
closed conditions and hold in every limit. With finite scores a token of the image outside the
receptive field has positive weights c_h and Σ c_h V_h U_h = 0, a product of matrices of ranks at
least rk_in and rk_out through N_H·d_H dimensions: N_H·d_H ≥ rk_in + rk_out (Sylvester). A
generic kernel has rk_in ≥ P²·min(D_in, D_out·f), where f taps can be chosen whose copies of a patch
do not overlap: let up to f·D_out input channels each be copied by one of these taps to one output
channel.
Likewise rk_out.

**The same in the limit, for balanced kernels.** Let S be the axes on which P divides the dilation
(P = 1 always does): there every tap has an offset of its own, and M_δ = 1 ⊗ W_t. Let the last tap
of S be minus the sum of the others, so that Σ_δ M_δ = 0. In a limit with value maps that stay
bounded a layer remains, with weights a_h(δ) ≥ 0. Heads that have none of the offsets are left out;
the others have t_h = Σ_δ a_h(δ) > 0 and Σ_h t_h V_h U_h = Σ_δ M_δ = 0, so that again
N_H·d_H ≥ rk_in + rk_out, by Sylvester. The taps but the last of S are free, so these ranks are as
above with one tap fewer on S. On other axes the maps at the edges are narrow, and a balanced kernel
would have a narrow centre.

**Needed, by substitution.** Some kernel makes M_0 + Σ_(δ≠0) c_δ M_δ have the rank P²·n for all
numbers c: let W_0 be the unit matrix on the first n channels and every other W_t strictly upper
triangular there; then that matrix is triangular with ones on its diagonal. Let ρ' columns δ ≠ 0 of
F be independent. They factor through the heads' weights at these δ, so some ρ' heads have
independent such weights, and numbers c can be found with a_h(0) + Σ c_δ a_h(δ) = 0 for these heads.
In M_0 + Σ c_δ M_δ = Σ_h (a_h(0) + Σ c_δ a_h(δ)) W_h they are gone, so

    N_H ≥ ρ' + ⌈P²·n/d_H⌉.

With finite scores the weights at a token outside, all positive, are no combination Σ x_δ a_h(δ) of
those at these δ, since Σ x_δ M_δ = 0 would follow: one head more can be removed, and is needed.
The bound is for layers, and
for limits in which the value maps stay bounded, so that a layer remains in the limit. It fails
where value maps may diverge: with M_0 = (0 1; 1 0) and M_1 = (1 0; 0 0) two heads of dimension one
tend to a layer that takes three.

**Fewer than that** share the places of the coordinates: S.width, counted in
`convattn.operators.head_places`.
"""

from collections import Counter
from itertools import product
from math import prod

Sizes = tuple[int, ...]


def map_widths(
    kernel_size: Sizes, patch_size: Sizes, dilation: Sizes, in_channels: int, out_channels: int
) -> list[int]:
    """The width of M_δ for every token offset δ, row-major.

    Returns:
        min(input coordinates, output coordinates) that M_δ can use.

    >>> widths = map_widths((3, 3), (16, 16), (1, 1), 3, 3)
    >>> sorted(set(widths))
    [3, 48, 768]
    """
    axes = [_axis_supports(*sizes) for sizes in zip(kernel_size, patch_size, dilation, strict=True)]
    return [prod(pixels) * min(in_channels, out_channels) for pixels in product(*axes)]


def split_heads(
    kernel_size: Sizes,
    patch_size: Sizes,
    dilation: Sizes,
    in_channels: int,
    out_channels: int,
    head_dim: int,
) -> int:
    """Σ_δ ⌈width_δ/d_H⌉, by the few widths that an axis has.

    >>> split_heads((3, 3), (16, 16), (1, 1), 3, 3, 64)  # 12 + 4·1 + 4·1
    20
    """
    axes = [
        Counter(_axis_supports(*sizes))
        for sizes in zip(kernel_size, patch_size, dilation, strict=True)
    ]
    channels = min(in_channels, out_channels)
    return sum(
        prod(number for _, number in chosen)
        * -(-prod(pixels for pixels, _ in chosen) * channels // head_dim)
        for chosen in product(*(axis.items() for axis in axes))
    )


def shared_places(
    kernel_size: Sizes, patch_size: Sizes, dilation: Sizes, in_channels: int, out_channels: int
) -> tuple[Counter[int], int, int]:
    """What S.width counts: how many offsets δ ≠ 0 have which width, coordinates n, and R.

    Returns:
        As `convattn.operators.head_places.limit_heads` takes them; R of the n coordinates are
        read, or written to, by a token other than their own.

    >>> shared_places((3, 3), (16, 16), (1, 1), 3, 3)
    (Counter({3: 4, 48: 4}), 768, 180)
    """
    sizes = list(zip(kernel_size, patch_size, dilation, strict=True))
    channels = min(in_channels, out_channels)
    widths: Counter[int] = Counter()
    for chosen in product(*(Counter(_axis_supports(*axis)).items() for axis in sizes)):
        pixels = prod(width for width, _ in chosen) * channels
        widths[pixels] += prod(number for _, number in chosen)
    full = prod(patch_size) * channels
    alone = prod(axis[1] - _axis_shared(*axis) for axis in sizes)
    widths[full] -= 1  # the tap at 0 joins every pixel with itself
    return +widths, full, full - alone * channels


def _axis_shared(kernel_size: int, patch_size: int, dilation: int) -> int:
    """How many pixels of a patch are read at offsets of this axis other than 0."""
    first, last = _axis_pieces(kernel_size, patch_size, dilation)
    tail = max((patch_size - rest for offset, rest in first.items() if offset), default=0)
    head = max((rest for offset, rest in last.items() if offset), default=0)
    return min(patch_size, head + tail)


def _axis_supports(kernel_size: int, patch_size: int, dilation: int) -> list[int]:
    """For each offset of an axis, how many pixels are read, and as many are written."""
    first, last = _axis_pieces(kernel_size, patch_size, dilation)
    return [
        min(patch_size, patch_size - first.get(offset, patch_size) + last.get(offset, 0))
        for offset in sorted({*first, *last})
    ]


def _axis_pieces(
    kernel_size: int, patch_size: int, dilation: int
) -> tuple[dict[int, int], dict[int, int]]:
    """By the offset, the least r of a tap that reads the pixels r.., the greatest of one with ..r.

    The tap at s = t·d = Po + r, 0 ≤ r < P, reads the pixels r.. of the patch at o for the first
    P - r of this one, and the pixels ..r of the patch at o + 1 for the last r.
    """
    first: dict[int, int] = {}
    last: dict[int, int] = {}
    before = (kernel_size - 1) // 2
    for tap in range(-before, kernel_size - before):
        offset, rest = divmod(tap * dilation, patch_size)
        first[offset] = min(rest, first.get(offset, patch_size))
        if rest:
            last[offset + 1] = max(rest, last.get(offset + 1, 0))
    return first, last


def matricisation_ranks(
    kernel_size: Sizes, patch_size: Sizes, dilation: Sizes, in_channels: int, out_channels: int
) -> tuple[int, int]:
    """What rk_in and rk_out are at least, for a generic kernel.

    >>> matricisation_ranks((3, 3), (16, 16), (1, 1), 3, 3)
    (768, 768)
    >>> matricisation_ranks((3, 3), (1, 1), (1, 1), 64, 4)
    (36, 4)
    """
    disjoint = prod(map(_disjoint_taps, kernel_size, patch_size, dilation))
    return _ranks(prod(patch_size), in_channels, out_channels, disjoint)


def balanced_ranks(
    kernel_size: Sizes, patch_size: Sizes, dilation: Sizes, in_channels: int, out_channels: int
) -> tuple[int, int]:
    """What rk_in and rk_out are at least, for a generic kernel among those with Σ_δ M_δ = 0.

    Returns:
        Zeros if P divides the dilation on no axis, or these axes have one tap.

    >>> balanced_ranks((2,), (1,), (1,), 2, 2)  # (I, -I)
    (2, 2)
    >>> balanced_ranks((3, 3), (16, 16), (1, 1), 3, 3)
    (0, 0)
    """
    axes = list(zip(kernel_size, patch_size, dilation, strict=True))
    free = prod(size for size, patch, spread in axes if spread % patch == 0) - 1
    rest = prod(_disjoint_taps(*axis) for axis in axes if axis[2] % axis[1])
    return _ranks(prod(patch_size), in_channels, out_channels, free * rest)


def _disjoint_taps(kernel_size: int, patch_size: int, dilation: int) -> int:
    """How many taps of an axis copy a patch to places that do not overlap."""
    return 1 + (kernel_size - 1) // -(-patch_size // dilation)


def _ranks(pixels: int, in_channels: int, out_channels: int, disjoint: int) -> tuple[int, int]:
    return (
        pixels * min(in_channels, out_channels * disjoint),
        pixels * min(out_channels, in_channels * disjoint),
    )


def triangular_pairs(in_channels: int, out_channels: int) -> int:
    """Channel pairs that are free off the centre in the kernel of the substitution bound.

    >>> triangular_pairs(3, 3), triangular_pairs(1, 4), triangular_pairs(1, 1)
    (3, 3, 0)
    """
    n = min(in_channels, out_channels)
    return in_channels * out_channels - n * (n + 1) // 2
