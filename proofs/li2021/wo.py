"""The explicit W^O of the remark in appendix A.2.

Claimed. An explicit formula gives the output map of the construction from the entries of the
kernel.
True. The formula is right for every kernel of odd size, wherever the patches it reads exist, if
taps are counted from 1 and heads and formula use the same sign of the shift.

Printed. "W^O[(r-1)d + (s-1)D_in + i, (t-1)D_out + j] = W^C[x(r,s,t), y(r,s,t), i, j]", where "when
the s-th pixel in the (q + δ_r)-th patch is in the receptive field of the t-th pixel in the q-th
patch, we use (x(r,s,t), y(r,s,t)) to denote its location in the receptive field. Otherwise, we let
(x, y) = (0, 0), and define W^C_(x,y,i,j) = 0 in this case."

Verified. K odd, places in the receptive field counted from 1 to K, and patches q + δ_r read as eq.
14 reads them (key = query + δ). Then Σ_r X_(q+δ_r) W^O_r is the convolution at every query for
which these patches exist, for every kernel. On each axis x - 1 = Pδ + s - t + (K-1)/2 with s, t
counted from zero.

Repair. Nothing in the formula; two readings of it are wrong. (1) (0, 0) means that no pixel is
there, and is free because places run over [K] = {1, …, K}; but eq. 1 counts taps from -⌊K/2⌋, where
(0, 0) is the centre tap. Read with eq. 1's indices, "define W^C_(0,0) = 0" deletes the centre. (2)
Lemma 2 attends where q - k = δ, eq. 14 and this remark to q + δ. Taking both literally, head r
attends to q - δ_r while its block is that of q + δ_r. For P = 1 that is the convolution with the
kernel turned by 180°; for P ≥ 2 it is in general no convolution at all, since pixels keep their
order within a patch while patches trade places.

Errata.
- remark on W^O | index (0, 0) means that no pixel is there | it is the centre tap of eq. 1; another
  sign is needed

Proof. Pixel s of patch q + δ stands at P(q + δ) + s, pixel t of patch q at Pq + t, so the former is
at the shift Pδ + s - t of the latter, and is in its receptive field iff that shift is at most
(K-1)/2 in absolute value on both axes. Each pair of a pixel t and a tap meets exactly one (δ, s),
by division with remainder. So Σ_r X_(q+δ_r) W^O_r adds every X_(·+shift) W^C_shift once. ∎
"""

import jax.numpy as jnp
import numpy as np

from convattn.constructions.geometry import ConvolutionGeometry
from convattn.constructions.li_output_map import token_maps
from convattn_ledger import Claim, Evidence, EvidenceFailed, Kind, Level, Run, Verdict, require
from convattn_ledger.evidence import certified, equals_convolution, exact_convolution, proved
from convattn_ledger.evidence.exact_tokens import cut_tokens, join_tokens, tokens_at
from convattn_ledger.evidence.printed_output_map import output_blocks, patch_offsets

SIZES = ((1, 2), (3, 1), (3, 2), (5, 2), (3, 3), (7, 3), (7, 2), (9, 4))  # K, P


def on_tokens(images: np.ndarray, kernel: np.ndarray, patch: int, sign: int = 1) -> np.ndarray:
    """Σ_r X_(q + sign·δ_r) W^O_r with zeros outside, in integers."""
    tokens = cut_tokens(images, patch)
    offsets = patch_offsets(kernel.shape[0], patch)
    read = (tokens_at(tokens, (sign * down, sign * right)) for down, right in offsets)
    blocks = output_blocks(kernel, patch)
    return join_tokens(sum(x @ block for x, block in zip(read, blocks, strict=True)), patch)


def formula_is_convolution(run: Run) -> str:
    """The printed formula against the convolution, exactly."""
    for number, (size, patch) in enumerate(SIZES):
        rng = run.rng(number)
        kernel = rng.integers(-9, 10, (size, size, 2, 3))
        images = rng.integers(-9, 10, (2, 4 * patch, 3 * patch, 2))
        if (on_tokens(images, kernel, patch) != exact_convolution(images, kernel)).any():
            raise EvidenceFailed(f"K = {size}, P = {patch}: W^O does not give the convolution")
    return f"{len(SIZES)} pairs (K, P), K to 9, P to 4: W^O gives the convolution"


def library_has_these_blocks(run: Run) -> str:
    """`token_maps` against the printed formula, exactly."""
    for size, patch in SIZES[-3:]:
        kernel = run.rng(size).integers(-9, 10, (size, size, 2, 3))
        geometry = ConvolutionGeometry.of((size, size), patch)
        if list(geometry.offsets) != patch_offsets(size, patch):
            raise EvidenceFailed(f"K = {size}, P = {patch}: offsets {geometry.offsets}")
        library = np.asarray(token_maps(jnp.asarray(kernel), geometry))
        if (library != output_blocks(kernel, patch)).any():
            raise EvidenceFailed(f"K = {size}, P = {patch}: the library's blocks differ from W^O")
    return f"(K, P) = {SIZES[-3:]}: the library's blocks are those of W^O"


def zero_is_the_centre(run: Run) -> str:
    """(0, 0) read with eq. 1's indices: the layer loses the centre tap, and nothing else."""
    for patch in (1, 2, 3):
        rng = run.rng(patch)
        kernel = rng.integers(1, 10, (3, 3, 1, 2))
        images = rng.integers(1, 10, (1, 4 * patch, 3 * patch, 1))
        centred = kernel.copy()
        centred[1, 1] = 0
        literal = on_tokens(images, centred, patch)
        lost = exact_convolution(images, kernel) - literal
        if not lost.all() or (lost != images @ kernel[1, 1]).any():
            raise EvidenceFailed(f"P = {patch}: more or less than the centre tap is lost: {lost}")
    return "P = 1, 2, 3: with W^C_(0,0) = 0 in eq. 1's indices the layer lacks X·W_centre, exactly"


def signs_disagree(run: Run) -> str:
    """Lemma 2's sign with eq. 14's blocks: the turned kernel for P = 1, no convolution for P =
    2."""
    kernel = run.rng("kernel").permutation(np.arange(1, 10)).reshape(3, 3, 1, 1)
    images = run.rng("images").integers(0, 256, (2, 8, 6, 1))
    turned = kernel[::-1, ::-1]
    if (on_tokens(images, kernel, 1, -1) != exact_convolution(images, turned)).any():
        raise EvidenceFailed("P = 1: the mixed signs do not give the kernel turned by 180°")
    if (exact_convolution(images, kernel) == exact_convolution(images, turned)).all():
        raise EvidenceFailed("the kernel is its own turn, so the sign does not matter to it")

    # What every input pixel adds to every output pixel; a convolution depends on their difference.
    side = 8
    units = np.eye(side * side, dtype=np.int64).reshape(-1, side, side, 1)
    response = on_tokens(units, kernel, 2, -1).reshape(side, side, side, side)
    by_shift: dict[tuple[int, int], set[int]] = {}
    for (y, x, v, u), value in np.ndenumerate(response):
        if 2 <= v < side - 2 and 2 <= u < side - 2:
            by_shift.setdefault((y - v, x - u), set()).add(int(value))
    broken = sorted(shift for shift, values in by_shift.items() if len(values) > 1)
    require(broken, "P = 2: the mixed signs give a convolution after all")
    return (
        f"P = 1: the kernel turned by 180°; P = 2: {len(broken)} shifts, such as {broken[0]}, with "
        f"several values {sorted(by_shift[broken[0]])}: no convolution"
    )


CLAIM = Claim(
    id="L21.wo",
    source="Li et al. 2021, appendix A.2, remark",
    verdict=Verdict.HOLDS,
    kinds=(Kind.LAYER_EQUALITY,),
    evidence=(
        proved(
            "li2021/wo.v",
            covers="the formula of Verified, for hard heads at all the offsets, with a ring, and "
            "that no other W^O makes these heads the convolution on more than m patches a side; "
            "not: the two wrong readings",
        ),
        certified("L21.wo"),
        Evidence("the formula, in integers", Level.TESTED, formula_is_convolution),
        Evidence("the library's blocks", Level.TESTED, library_has_these_blocks, quick=False),
        Evidence("(0, 0) is absent, not the centre", Level.TESTED, zero_is_the_centre),
        Evidence("the signs disagree", Level.TESTED, signs_disagree),
        equals_convolution("3 × 3, P = 4", (3, 3), patch_size=4),
        equals_convolution("7 × 7, P = 2", (7, 7), patch_size=2),
    ),
)
