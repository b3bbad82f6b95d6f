"""S.headdim: what a head dimension costs.

Claimed. For K = 3, P = 16, three channels and heads of width 64, 20 heads suffice in the limit, and
some kernel takes 20; 32 suffice exactly, where at least 24 are needed.
True. So it is for heads that attend by position, but some kernel takes 20 only if the value maps
stay bounded: with maps that grow fewer will do in the limit, and fewer than 32 exactly as well
(S.width).

Printed. Not from a paper: our own result, and first conjectured like this. Heads as wide as the
smaller of a token's two widths are wide enough, and with one head for each offset some kernels need
that width; not all do: some positive kernels of rank nine, K = 3, three channels in and out, take
nine heads of width one. In any case N_H·d_H is at least the larger of the ranks rk_in, rk_out of
the two other matricisations, and at least their sum at finite scores. Heads of width d_H number Σ_δ
⌈rank(M_δ)/d_H⌉ in the construction, the uniform head being split as well at finite scores: for K =
3, P = 16, three channels and d_H = 64 that is 20 in the limit, which cannot be improved for every
kernel, and 32 exactly, where at least 24 are needed.

Verified. Let M_δ be the map between token q + δ and token q, d_in = P²·D_in by d_out = P²·D_out, n
= min(D_in, D_out). (1) Σ_δ ⌈rank(M_δ)/d_H⌉ one-hot heads are the convolution in the limit, with
⌈P²·n/d_H⌉ more exactly, whatever the kernel; for a generic kernel the ranks are products over the
axes of P at δ = 0 and of what reaches over, 768, 48 and 3 above, so 12 + 4·1 + 4·1 = 20, and 20 +
12 = 32. One-hot heads cannot do with fewer, as those at δ add up to M_δ. From here on attention is
free of content, every offset joins two tokens of the image, and "exactly" means at finite scores
where a query has a token of the image outside its receptive field. (2) In every limit N_H·d_H ≥
max(rk_in, rk_out), and exactly ≥ rk_in + rk_out: 12 and 24 above. (3) There is a kernel that takes
(T - 1) + ⌈P²·n/d_H⌉ of them, T being the number of offsets, if m ≤ P - 1 and D_in·D_out > 1; and
exactly one more. Above this is 8 + 12 = 20, so that 20 is tight for layers and for limits in which
the value maps stay bounded. For other sizes ρ' + ⌈P²·n/d_H⌉, where n channel pairs (i, i) and those
below them are left out and ρ' + 1 is the rank of the generic F of the other pairs; a pattern that
serves every kernel takes (T - 1) + ⌈P²·n/d_H⌉ at all sizes; exactly, again one more. (4) Let P
divide the dilation on some axes, as P = 1 does, and let S be these axes. If the taps of S add up to
zero, N_H·d_H ≥ rk_in + rk_out in limits with bounded value maps too. Some such kernel has rk_in ≥
P²·min(D_in, D_out·f), if there are f taps but the last of S whose copies of a patch do not overlap;
likewise rk_out. Two taps (1, -1) of two channels take four heads of dimension one.

Repair. (3) is proved for bounded value maps, and without that word its bound fails: with M_0 = (0
1; 1 0) and M_1 = (1 0; 0 0), two pixels' channels, M_0 + cM_1 is regular for every c, so three
heads of dimension 1 are needed; yet two heads of dimension 1 with diverging maps tend to it. For
limits of that sort 20 is not tight (S.width), and 12 is what (2) gives. They are no oddity: where
the weights of two heads come ever nearer to each other, values that grow keep their difference, and
S.kernel's ρ heads of a row space with a one-hot row have maps that grow like 1/ε. So a count in the
limit has to say whether values stay bounded; the heads of (1) have such maps, and (2) holds for
any; S.width has 16. Exactly S.width has 28 for the 32 of (1), from 24 on the rest is open. Where an
edge's map is wider than a head (K = 5, P = 16: 96 > 64) the numbers 20 of (3) and 24 of (1) differ,
and what lies between is open.

Proof. *The idea:* the columns and the rows of the M_δ have to be spanned by those of the heads'
maps, d_H for each head.

(1) M_δ = V U with rank(M_δ) columns in V; cut V and U into pieces of d_H. S.finite's uniform head
has the map Σ_δ M_δ, up to a factor, of rank at most min(d_in, d_out).

(2) M_δ = Σ a_h(δ) V_h U_h: all columns lie in the span of those of the V_h, all rows in that of the
U_h. A token of the image outside has weights c_h > 0 and Σ c_h V_h U_h = 0: by Sylvester's
inequality rank [V_h] + rank [U_h] ≤ N_H·d_H.

(3) Let W_0 = 1 on the first n channels, and the W_t strictly upper triangular there. Then M_0 +
Σ_(δ≠0) c_δ M_δ is unipotent, for all c. The M_δ, δ ≠ 0, being independent, T - 1 heads have
independent weights a_h(δ), δ ≠ 0, so for some c none of them has a part in M_0 + Σ c_δ M_δ = Σ_h
(a_h(0) + Σ c_δ a_h(δ)) V_h U_h; its rank P²·n then is at most (N_H - T + 1)·d_H.

At finite scores the weights c_h at a token outside are independent of those a_h(δ), or the M_δ
would not be; so one head more drops out.

With ρ' independent M_δ instead ρ' heads drop out.

*One pattern:* stack the one-tap kernels, so that all T offsets are independent, and take W_0 = 1
alone.

A limit with bounded maps and weights in [0, 1] has a convergent subsequence: it is such a layer.

(4) In that layer let t_h = Σ_δ a_h(δ) ≥ 0 and leave out the heads with t_h = 0, which have no part
in any M_δ. Σ_h t_h V_h U_h = Σ_δ M_δ = 0: Sylvester again. On S M_δ is 1 ⊗ W_t, each tap alone, and
all taps but the last are free. ∎
"""

from fractions import Fraction
from functools import partial
from itertools import product

import jax
import numpy as np
from flint import nmod_mat

from convattn.bounds.head_width import (
    balanced_ranks,
    map_widths,
    matricisation_ranks,
    split_heads,
)
from convattn.constructions.conversion import conv_to_attention
from convattn_ledger import Claim, Evidence, EvidenceFailed, Kind, Level, Run, Verdict, require
from convattn_ledger.certificates.head_dimension import triangular_kernel
from convattn_ledger.evidence import certified, equals_convolution, exact_convolution, proved
from convattn_ledger.evidence.printed_output_map import output_blocks, patch_offsets

PRIME = 2**61 - 1


def rank(matrix: np.ndarray) -> int:
    """Modulo a prime, so at most the rank over the rationals."""
    height, width = matrix.shape
    return int(nmod_mat(height, width, [int(x) for x in matrix.ravel()], PRIME).rank())


def maps(kernel: np.ndarray, patch: int) -> dict[tuple[int, int], np.ndarray]:
    """M_δ by its offset, `[P²·in, P²·out]`."""
    return dict(
        zip(patch_offsets(kernel.shape[0], patch), output_blocks(kernel, patch), strict=True)
    )


def ranks_of_maps(run: Run) -> str:
    """K = 3, P = 16, three channels: 768, 48 and 3; and no more than the widths at other sizes."""

    def ranks_at(size: int, patch: int, channels: int) -> list[int]:
        shape = (size, size, channels, channels)
        kernel = run.rng(size, patch, channels).integers(1, 1000, shape)
        return [rank(block) for block in maps(kernel, patch).values()]

    for size, patch, channels in ((3, 2, 2), (5, 3, 1), (7, 2, 2), (3, 4, 3), (5, 4, 2)):
        actual = ranks_at(size, patch, channels)
        expected = map_widths((size,) * 2, (patch,) * 2, (1, 1), channels, channels)
        require(actual == expected, f"K = {size}, P = {patch}: ranks {actual}, widths {expected}")
    edge, corner, centre = 48, 3, 768
    expected = [corner, edge, corner, edge, centre, edge, corner, edge, corner]
    actual = ranks_at(3, 16, 3)
    heads = sum(-(-one // 64) for one in actual)
    require(actual == expected and heads == 20, f"K = 3, P = 16: ranks {actual}, {heads} heads")
    return f"K = 3, P = 16, three channels: ranks 768, 4 × 48, 4 × 3, so {heads} heads of 64"


def matricisations(run: Run) -> str:
    """rk_in and rk_out of random kernels, against what the bounds take them to be at least."""
    summary = []
    for size, patch, inputs, outputs in (
        (3, 2, 2, 2), (3, 4, 3, 3), (3, 1, 12, 1), (3, 1, 1, 12), (5, 2, 9, 1), (3, 2, 1, 3),
    ):  # fmt: skip
        kernel = run.rng(size, patch, inputs, outputs).integers(
            1, 1000, (size, size, inputs, outputs)
        )
        blocks = maps(kernel, patch).values()
        ranks = rank(np.concatenate(list(blocks), axis=1)), rank(np.concatenate(list(blocks)))
        least = matricisation_ranks((size,) * 2, (patch,) * 2, (1, 1), inputs, outputs)
        if min(a - b for a, b in zip(ranks, least, strict=True)) < 0:
            raise EvidenceFailed(
                f"K = {size}, P = {patch}, {inputs} → {outputs}: {ranks} < {least}"
            )
        summary.append(f"K = {size}, P = {patch}, {inputs} → {outputs}: {ranks[0]}, {ranks[1]}")
    return "; ".join(summary)


def unit_maps(channels: int) -> list[np.ndarray]:
    """Matrices of rank one with a single entry, one for each pair of channels."""
    units = []
    for i, j in product(range(channels), repeat=2):
        unit = np.zeros((channels, channels), dtype=object)
        unit[i, j] = 1
        units.append(unit)
    return units


def nine_heads_of_dimension_one(run: Run) -> str:
    """A positive 3 × 3 kernel of 3 × 3 channels, ρ = 9: head (i, j) attends to δ by W_δ[i, j].

    Its weights W_δ[i, j]/Σ_δ W_δ[i, j] are positive with the sum one, its value map Σ_δ W_δ[i, j]
    times the unit matrix at (i, j) has rank one. One-hot heads would be 27.
    """
    kernel = run.rng("kernel").integers(1, 50, (3, 3, 3, 3))
    require(rank(kernel.reshape(9, 9)) == 9, "the kernel has not rank nine")
    image = run.rng("image").integers(0, 256, (1, 5, 4, 3))
    ringed = np.pad(image, [(0, 0), (1, 1), (1, 1), (0, 0)]).astype(object)
    units = unit_maps(3)
    result = np.zeros((1, 5, 4, 3), dtype=object)
    for (i, j), unit in zip(product(range(3), repeat=2), units, strict=True):
        total = int(kernel[..., i, j].sum())
        if np.count_nonzero(unit) != 1:
            raise EvidenceFailed(f"the map of head {(i, j)} is {unit.tolist()}, not of rank one")
        for a, b in product(range(3), repeat=2):
            weight = Fraction(int(kernel[a, b, i, j]), total)
            result = result + weight * (ringed[:, a : a + 5, b : b + 4] @ (total * unit))
    if (result != exact_convolution(image, kernel)).any():
        raise EvidenceFailed("nine heads of dimension one differ from the convolution")
    return "nine heads of dimension one equal the convolution, in fractions; one-hot heads: 27"


def two_for_three(scale: int) -> list[tuple[dict[int, Fraction], np.ndarray]]:
    """Two heads, weights at the offsets 0 and 1 and a map of rank one each; ε = 1/scale."""
    epsilon = Fraction(1, scale)
    first = np.outer([Fraction(1), epsilon], [Fraction(1), epsilon]) * scale
    second = -np.outer([Fraction(1), Fraction(0)], [Fraction(1), Fraction(0)]) * scale
    near, far = 1 / (1 + epsilon), epsilon / (1 + epsilon)
    return [({0: near, 1: far}, first * (1 + epsilon)), ({0: Fraction(1), 1: Fraction(0)}, second)]


def diverging_maps(run: Run) -> str:
    """M_0 = (0 1; 1 0), M_1 = (1 0; 0 0): two heads of dimension one come as near as one likes.

    Three are needed with bounded maps: M_0 + cM_1 has the determinant -1 for every c.
    """
    targets = {0: np.array([[0, 1], [1, 0]]), 1: np.array([[1, 0], [0, 0]])}
    for c in range(-5, 6):
        m = targets[0] + c * targets[1]
        require(m[0, 0] * m[1, 1] - m[0, 1] * m[1, 0] == -1, f"M_0 + {c}·M_1 is singular")
    summary = []
    for scale in (10, 1000, 10**6):
        heads = two_for_three(scale)
        for weights, unit in heads:
            if min(weights.values()) < 0 or sum(weights.values()) != 1:
                raise EvidenceFailed(f"weights {weights} are no attention")
            require(unit[0, 0] * unit[1, 1] == unit[0, 1] * unit[1, 0], "a head's map has rank two")
        distance = max(
            abs(entry)
            for offset, m in targets.items()
            for entry in (sum(w[offset] * unit for w, unit in heads) - m).ravel()
        )
        if distance > Fraction(2, scale):
            raise EvidenceFailed(f"ε = 1/{scale}: the maps differ by {float(distance):.3g}")
        summary.append(f"ε = 1/{scale}: {float(distance):.2g}")
    return "two heads of dimension one off the maps that take three by " + ", ".join(summary)


def substitution(run: Run) -> str:
    """The triangular kernel: M_0 + Σ c_δ M_δ has determinant one, the M_δ are independent.

    A determinant that is one whatever the c_δ are leaves no numbers c for which the rank falls.
    """
    summary = []
    for size, patch, channels in ((3, 2, 2), (3, 4, 3), (5, 3, 2), (3, 8, 3)):
        blocks = maps(triangular_kernel(size, channels, channels), patch)
        away = {offset: block for offset, block in blocks.items() if any(offset)}
        independent = rank(np.stack([block.ravel() for block in away.values()]))
        if independent != len(away):
            raise EvidenceFailed(f"K = {size}, P = {patch}: {independent} of {len(away)} maps")
        for draw in range(4):
            factors = run.rng(size, patch, draw).integers(-99, 100, len(away))
            mixed = blocks[0, 0] + sum(
                int(c) * block for c, block in zip(factors, away.values(), strict=True)
            )
            height = len(mixed)
            determinant = int(
                nmod_mat(height, height, [int(x) for x in mixed.ravel()], PRIME).det()
            )
            require(determinant == 1, f"K = {size}, P = {patch}: determinant {determinant}")
        summary.append(f"K = {size}, P = {patch}, C = {channels}")
    return f"determinant one for all c drawn, with T - 1 independent maps: {'; '.join(summary)}"


def balanced_kernel(drawn: np.ndarray) -> np.ndarray:
    """The last tap becomes minus the sum of the others."""
    taps = drawn.reshape(-1, *drawn.shape[2:]).copy()
    taps[-1] = -taps[:-1].sum(axis=0)
    return taps.reshape(drawn.shape)


def balanced_kernels(run: Run) -> str:
    """P = 1: the maps add up to zero, and rk_in + rk_out is what the bound takes it to be."""
    summary = []
    for size, inputs, outputs in (((1, 2), 2, 2), ((3, 3), 3, 3), ((1, 3), 9, 2), ((2, 2), 1, 5)):
        kernel = balanced_kernel(
            run.rng(*size, inputs, outputs).integers(1, 1000, (*size, inputs, outputs))
        )
        taps = list(kernel.reshape(-1, inputs, outputs))
        if sum(taps).any():
            raise EvidenceFailed(
                f"K = {size}, {inputs} → {outputs}: the maps do not add up to zero"
            )
        ranks = rank(np.concatenate(taps, axis=1)), rank(np.concatenate(taps))
        if ranks != balanced_ranks(size, (1, 1), (1, 1), inputs, outputs):
            raise EvidenceFailed(f"K = {size}, {inputs} → {outputs}: ranks {ranks}")
        summary.append(f"K = {size[0]} × {size[1]}, {inputs} → {outputs}: {ranks[0]} + {ranks[1]}")
    return "; ".join(summary)


def heads_of_the_library(run: Run) -> str:
    """`conv_to_attention` with a head dimension takes as many heads as the maps split into."""
    summary = []
    for size, patch, channels, width in ((3, 4, 3, 16), (5, 2, 2, 3)):
        sizes = ((size,) * 2, (patch,) * 2, (1, 1), channels, channels)
        split = split_heads(*sizes, width)
        whole = -(-(patch**2) * channels // width)
        kernel = jax.ShapeDtypeStruct((size, size, channels, channels), "float32")
        heads = [
            jax.eval_shape(
                partial(
                    conv_to_attention,
                    patch_size=patch,
                    form="exact" if exact else "limit",
                    head_dim=width,
                ),
                kernel,
            ).heads
            for exact in (False, True)
        ]
        if heads != [split, split + whole]:
            raise EvidenceFailed(f"K = {size}, P = {patch}, d_H = {width}: {heads}, {split}")
        summary.append(f"K = {size}, P = {patch}, d_H = {width}: {heads[0]} and {heads[1]}")
    return "; ".join(summary)


CLAIM = Claim(
    id="S.headdim",
    source="this project, sharpening L21 Theorem 1 and C20's remark on D_h",
    verdict=Verdict.AMENDED,
    kinds=(Kind.LOWER_BOUND, Kind.LAYER_EQUALITY),
    evidence=(
        proved(
            "sharpened/headdim_sufficient.v",
            covers="(1), over an ordered field: Σ ⌈rank(M_δ)/d_H⌉ one-hot heads with a ring, and "
            "layers of biased heads that tend to the convolution at each output of each "
            "image; not: the ranks of a generic kernel",
        ),
        proved(
            "sharpened/headdim_one_hot.v",
            covers="(1): one-hot heads with a ring, each at one of the offsets, cannot be the "
            "convolution with fewer, if every offset joins two tokens; not: limits",
        ),
        proved(
            "sharpened/headdim_exact.v",
            covers="(1): exactly, with a ring and biases that depend on N, with ⌈rank(ΣM_δ)/d_H⌉ "
            "heads more, at most ⌈P²·n/d_H⌉, each head biased or uniform; not: the ranks "
            "of a generic kernel",
        ),
        proved("sharpened/headdim.v", covers="(2): the bound max(rk_in, rk_out) for exact layers"),
        proved("sharpened/headdim_limit.v", covers="(2): the bound max(rk_in, rk_out) in limits"),
        proved(
            "sharpened/headdim_finite.v",
            covers="(2): the bound rk_in + rk_out for exact layers; not: (4)",
        ),
        proved(
            "sharpened/headdim_pattern.v",
            covers="(3) for a kernel with T - 1 independent maps and rank(M_0 + Σ c_δ M_δ) ≥ k ≥ 1 "
            "for all c: at least T - 1 + ⌈k/d_H⌉ heads; one more at finite scores where a token of "
            "the image is out of reach; not: limits",
        ),
        proved(
            "sharpened/headdim_triangular.v",
            covers="(3): a kernel that takes at least so many heads, for odd K, D_in = D_out ≥ 2 "
            "and m ≤ P - 1, exactly one more; not: limits, other sizes",
        ),
        proved(
            "sharpened/headdim_twenty.v",
            covers="for K = 3, P = 16, three channels, d_H = 64: in (1) at most 20 and 12 heads "
            "for every kernel, in (3) some kernel takes at least 20; not: limits, the ranks of a "
            "generic kernel, that 24 are needed exactly",
        ),
        certified("S.headdim"),
        Evidence("ranks of the maps", Level.TESTED, ranks_of_maps, quick=False),
        Evidence("the other matricisations", Level.TESTED, matricisations),
        Evidence("nine heads of dimension one", Level.TESTED, nine_heads_of_dimension_one),
        Evidence("substitution", Level.TESTED, substitution),
        Evidence("balanced kernels", Level.TESTED, balanced_kernels),
        Evidence("diverging value maps", Level.TESTED, diverging_maps),
        Evidence("heads of the library", Level.TESTED, heads_of_the_library, quick=False),
        equals_convolution(
            "3 × 3, P = 16, d_H = 64",
            (3, 3),
            patch_size=16,
            head_dim=64,
            dtypes=("float32",),
        ),
        equals_convolution(
            "3 × 3, P = 2, d_H = 5, exact",
            (3, 3),
            patch_size=2,
            form="exact",
            head_dim=5,
            dtypes=("float32",),
        ),
    ),
)
