"""S.approx: under a head budget one comes within one head of the optimum, by a construction.

Claimed. There is an error that no N heads can beat when they approximate a convolution, by the
singular values of the kernel, and N + 1 heads reach it.
True. They do, by a construction with finite scores and one set of value maps for every image size,
judged at queries away from the border; the best error of N heads lies between this bound and that
for one head fewer.

Printed. Of matrices: Gillis and Kumar, SIAM J. Matrix Anal. Appl. 36 (2015), 1404-1424,
arXiv:1410.7220: where one factor is nonnegative, the error at rank r is at most that of the best
approximation of rank r - 1 without signs. Ours is the translation to attention, with one set of
weights for every image size, the values that stay bounded, and the evidence. Let σ_1 ≥ σ_2 ≥ … be
the singular values of F with all its P⁴·D_in·D_out rows. N ≥ 1 content-free heads differ from the
convolution, per interior query and in the squared Frobenius norm of the linear map, by at least
Σ_(i>N) σ_i²; and Σ_(i≥N) σ_i² is reached. So N + 1 heads reach what N heads cannot beat.

Verified. The same: the first in the limit too, the second at finite scores, with one set of value
maps for every image size (the scores depend on it, as in S.kernel). A query is interior here if its
offsets are all tokens of the image: tokens of a ring are zero and do not count as inputs, and on an
image of one pixel one head errs by 0. Where the span of the first N right singular vectors holds
some y that is positive wherever the span does not vanish, the bound Σ_(i>N) σ_i² itself is
approached as near as one likes with values that stay bounded. Neither number need be the optimum
for N heads, which is that of Σ C_h a_h with rows a_h ≥ 0: for the taps 1, 0, -1 and one head the
two are 0 and 2, one tap alone has the distance 1, and that is the least, since (a_1 - a_3)² ≤ |a|²
for a ≥ 0. The library returns the nearest of several candidates (also the N heaviest taps, and rows
a_h improved by least squares), each with an enclosure of its distance; that it is the optimum is
not claimed.

Nothing to repair.

Proof. *The idea:* bound the error by Eckart and Young, and build S.kernel's heads for the truncated
decomposition.

At an interior query the layer puts Σ_h W_h a_h(δ) at the offset δ. As a matrix with the columns
vec(·) that has rank at most N, so its squared distance from F is at least Σ_(i>N) σ_i² (Eckart and
Young), and what the layer puts at other keys only adds.

*Reached:* the construction of S.kernel takes any matrix of rank N - 1 in place of F, here the
truncated singular value decomposition, and computes it with N heads, exactly and with nothing at
other keys.

*All N directions:* take c_i = y + κ_i v_i ≥ 0 as the heads' weights at the offsets, with a share λ
of the uniform row each. They span the same space, F_N = Σ C_i c_i, and with the maps (Σ c_i + λ)
C_i the layer puts F_N + λ(ΣC)J in all. F - F_N is orthogonal to the C_i, so over n keys the
distance is Σ_(i>N) σ_i² + λ²|ΣC|²/n. ∎
"""

from fractions import Fraction

import jax
import jax.numpy as jnp
import numpy as np

from convattn.encodings import MixtureEncoding
from convattn.encodings.layer import AttentionLayer
from convattn.fast.application import apply_attention
from convattn_ledger import Claim, Evidence, EvidenceFailed, Kind, Level, Run, Verdict, require
from convattn_ledger.bounds.mixture_error import mixture_error_bound
from convattn_ledger.certificates.given_kernel import named_kernel
from convattn_ledger.evidence import DTYPES, certified, exact_convolution, proved, whole_images
from convattn_ledger.evidence.head_floor import receptive_fields
from convattn_ledger.evidence.least_eigenvalue import least_eigenvalue
from convattn_ledger.evidence.printed_output_map import output_blocks


def exact_distance(layer, blocks: np.ndarray, keys: int) -> Fraction:
    """Its squared distance in fractions, from the attention rows over so many keys."""
    weights = np.asarray(layer.encoding.weights, np.float64)
    output = np.asarray(layer.output, np.float64)
    rows = [[1 + keys * Fraction(w) for w in row] for row in weights.tolist()]
    sums = [sum(row) + keys - len(row) for row in rows]
    maps = [[Fraction(entry) for entry in block.ravel().tolist()] for block in output]
    flat = [[int(entry) for entry in block.ravel()] for block in blocks]
    total = Fraction(0)
    for entry in range(len(maps[0])):
        for at, block in enumerate(flat):
            put = sum(v[entry] * row[at] / s for v, row, s in zip(maps, rows, sums, strict=True))
            total += (put - block[entry]) ** 2
        beyond = sum(v[entry] / s for v, s in zip(maps, sums, strict=True))
        total += (keys - len(flat)) * beyond**2
    return total


def distances_in_fractions(run: Run) -> str:
    """The certified error of the layers against fractions, for several numbers of keys."""
    from convattn.bounds.approximation import approximate_conv

    widest, summary = 0.0, []
    for case, (name, patch) in enumerate((("texture", 1), ("box", 2))):
        kernel = named_kernel(name)
        blocks = output_blocks(kernel, patch)
        for heads in (1, 3):
            dtype = ("float64", "float32", "bfloat16")[(case + heads) % 3]
            approximation = approximate_conv(jnp.asarray(kernel, dtype), heads, patch_size=patch)
            if approximation.layer.heads > heads:
                raise EvidenceFailed(
                    f"{name}: {approximation.layer.heads} heads for a budget of {heads}"
                )
            for keys in (len(blocks), 1000):
                error = exact_distance(approximation.layer, blocks, keys)
                if not approximation.error.lower <= error <= approximation.error.upper:
                    raise EvidenceFailed(
                        f"{name}, {heads} heads, {dtype}, {keys} keys: the distance "
                        f"{float(error)} is not within {approximation.error}"
                    )
                if error < Fraction(approximation.lower_bound):
                    raise EvidenceFailed(
                        f"{name}, {heads} heads: {float(error)} is below the bound "
                        f"{approximation.lower_bound}, which no layer can be"
                    )
            spread = approximation.error.upper - approximation.error.lower
            widest = max(widest, spread / max(1.0, approximation.error.upper))
        summary.append(f"{name} {approximation.method}")
    return f"enclosures of relative width {widest:.1g} or less; three heads: {', '.join(summary)}"


def known_singular_values(run: Run) -> str:
    """Kernels with orthogonal taps: the bounds lie below the true tails, and close to them.

    Output channel t reads tap t alone, with the weight c_t, so σ are the |c_t|, and N one-hot heads
    reach the tail of N. So does 1, 0, -1 into one channel with the distance 1. The bound may be
    low by the rounding of 9 × 9 products: 9·10³·2⁻⁵³ of |F|² is ample (its factors are γ_20 and
    less, on products of three 9 × 9 matrices).
    """
    from convattn.bounds.approximation import approximate_conv

    for case in range(3 if run.quick else 10):
        weights = run.rng(case).integers(-9, 10, 9)
        kernel = np.diag(weights).reshape(3, 3, 1, 9)
        tails = [int(tail) for tail in np.cumsum(np.sort(weights**2))[::-1]] + [0]
        for heads in (1, 4, 8, 9):
            approximation = approximate_conv(jnp.asarray(kernel, "float64"), heads)
            slack = 9e3 * 2.0**-53 * tails[0]
            for bound, tail in (
                (approximation.lower_bound, tails[heads]),
                (approximation.next_bound, tails[heads - 1]),
            ):
                if not tail - slack <= bound <= tail:
                    raise EvidenceFailed(f"{weights}, {heads} heads: bound {bound}, tail {tail}")
            if not abs(approximation.error.upper - tails[heads]) <= slack:
                raise EvidenceFailed(
                    f"{weights}, {heads} heads: {approximation.error}, expected {tails[heads]}"
                )
    edge = approximate_conv(jnp.asarray([[[1.0]], [[0.0]], [[-1.0]]], "float64"), 1)
    if not (edge.lower_bound <= 1e-12 and abs(edge.error.upper - 1) <= 1e-12):
        raise EvidenceFailed(f"1, 0, -1 with one head: {edge.error}, above {edge.lower_bound}")
    return "bounds and errors within 10⁻¹² of the tails; 1, 0, -1 with one head: 1, bounds 0 and 2"


def errors_on_images(run: Run) -> str:
    """Run on whole images: the mean squared error is what D says, and above the floor of N heads.

    Let z be the tokens of a receptive field side by side, R of them in all, G = Σ zᵀz and C/R their
    covariance. The layer as stored puts zD + mS beyond the convolution, m the mean key and S = Σ
    V_h/Z_h (bounds/layer_distance.py): its root mean square error is √(tr DᵀGD/R) within that of
    mS, and rounding moves it by at most the root mean square of its bound. That of any layer of N
    heads is √(λ_min(C)·Σ_(i>N) σ_i²/R) at least, whatever its bias.
    """
    from convattn.bounds.approximation import approximate_conv, stored_numbers

    heads, kernel = 4, run.rng("kernel").integers(-3, 4, (3, 3, 3, 4))
    images = whole_images(run)
    fields = receptive_fields(images, 3, 1).reshape(-1, 27)
    count, total = len(fields), fields.sum(axis=0)
    spread = least_eigenvalue(count * (fields.T @ fields) - np.outer(total, total)) / count
    gram, target = fields.T @ fields, kernel.reshape(27, 4)
    means = images.sum(axis=(1, 2)) / 34**2
    exact = exact_convolution(images, kernel)[:, 1:-1, 1:-1]
    summary = []
    for dtype in DTYPES:
        typed = jnp.asarray(images, dtype)
        approximation = approximate_conv(jnp.asarray(kernel, dtype), heads)
        result = np.asarray(jax.jit(apply_attention)(approximation.layer, typed), np.float64)
        stored = approximation.layer.encoding
        magnitude = AttentionLayer(
            MixtureEncoding(stored.weights.astype("float64"), stored.offsets),
            None,
            jnp.abs(approximation.layer.output).astype("float64"),
            ring=approximation.layer.ring,
        )
        majorant = np.asarray(jax.jit(apply_attention)(magnitude, jnp.asarray(images, "float64")))
        bound = mixture_error_bound(approximation.layer, typed, majorant)[:, 1:-1, 1:-1]
        error = result[:, 1:-1, 1:-1] - exact
        rms = float(((error**2).sum(axis=-1).mean()) ** 0.5)
        rounding = float(((bound**2).sum(axis=-1).mean()) ** 0.5)
        weights, maps = stored_numbers(approximation.layer)
        totals = 1 + weights.sum(axis=1)
        put = np.einsum("hd,hio->dio", weights / totals[:, None], maps).reshape(27, 4)
        stray = np.abs(means) @ np.abs(np.einsum("hio,h->io", maps, 1 / totals))
        ideal = float(np.trace((put - target).T @ gram @ (put - target)) / count) ** 0.5
        moved = float((stray**2).sum(axis=-1).max()) ** 0.5 + rounding + 2.0**-30 * ideal
        floor = (spread * approximation.lower_bound / count) ** 0.5
        if approximation.layer.heads != heads or not 0 < floor <= ideal + moved:
            raise EvidenceFailed(f"{dtype}: the floor is {floor}, the error {ideal}")
        tail = float((np.linalg.svd(kernel.reshape(9, 12))[1][heads - 1 :] ** 2).sum())
        if dtype == "float64" and not approximation.error.upper <= tail * (1 + 2.0**-30):
            raise EvidenceFailed(
                f"the distance is up to {approximation.error.upper}, expected {tail}"
            )
        require(abs(rms - ideal) <= moved, f"{dtype}: error {rms}, expected {ideal} within {moved}")
        summary.append(f"{dtype} {rms:.5g}, expected {ideal:.5g} within {moved:.2g}")
    return (
        f"{len(images)} images, {count} receptive fields, {heads} heads, floor {floor:.3g}: "
        + "; ".join(summary)
    )


CLAIM = Claim(
    id="S.approx",
    source="this project, sharpening S.kernel; Eckart and Young 1936",
    verdict=Verdict.HOLDS,
    kinds=(Kind.LOWER_BOUND,),
    evidence=(
        proved(
            "sharpened/approx.v",
            covers="N + 1 heads at finite scores, with a ring, come as near per query, in the "
            "squared distance of the row, as N given heads of any sign, free of content, do at an "
            "interior query, with one set of numbers for every image size; not: singular values, "
            "nor the rows that reach Σ_(i>N) σ_i²",
        ),
        certified("S.approx"),
        Evidence("distances in fractions", Level.TESTED, distances_in_fractions, quick=False),
        Evidence("known singular values", Level.TESTED, known_singular_values, quick=False),
        Evidence(
            "errors on images",
            Level.BOUNDED,
            errors_on_images,
            assumes="exp, log and log1p are within 4 units in the last place; ball arithmetic "
            "(python-flint) for the least eigenvalue",
            quick=False,
        ),
    ),
)
