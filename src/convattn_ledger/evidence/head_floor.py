"""Evidence of level BOUNDED for a lower bound: enough heads are the convolution, fewer are far off.

Take the receptive fields of all interior queries of whole real images, each an image of (2m+1)²
tokens of its own, and let z ∈ R^(T·d) be its tokens side by side. At the central query any layer
with n content-free heads is z ↦ zL + b, where block δ of L is Σ_h a_h(δ)W_h. Flattened as F is, L
is F̂ = Σ_h vec(W_h) a_hᵀ, of rank at most n. Let there be R fields with the sum s = Σz and the Gram
matrix G = Σ zᵀz. Whatever b is, the mean over them of the squared error, summed over the outputs,
is at least that of the best constant, so with C = G - sᵀs/R

    tr((L - L_F)ᵀ C (L - L_F))/R ≥ λ_min(C)|F̂ - F|²/R ≥ λ_min(C)·(σ_(n+1)² + … + σ_ρ²)/R,

by Eckart and Young, and this is at least λ_min(C)·(ρ - n)·λ_min(FᵀF)/R if F has full column rank ρ.
R·C and FᵀF are known in integers and their least eigenvalues are bounded below for certain
(`convattn_ledger.evidence.least_eigenvalue`), so this floor is a theorem about these fields as
images of their own, and about every such layer, whatever it attends to and whatever its values are.

The kernel copies: output channel t is the pixel at tap t, in one of the input channels. Its outputs
are integers up to 255, exact in all four dtypes, and so the layer with enough heads must *equal*
it.
"""

import jax.numpy as jnp
import numpy as np
from jaxtyping import Float, Int

from convattn.bounds.flattened_kernel import exact_rank
from convattn.encodings.layer import AttentionLayer
from convattn_ledger.claim import Evidence, EvidenceFailed, Level, Run
from convattn_ledger.evidence.exact_convolution import exact_convolution
from convattn_ledger.evidence.exact_tokens import cut_tokens
from convattn_ledger.evidence.layer_runs import DTYPES, applied, converted, equal
from convattn_ledger.evidence.least_eigenvalue import least_eigenvalue
from convattn_ledger.evidence.printed_output_map import (
    flattened_blocks,
    output_blocks,
    patch_offsets,
)
from convattn_ledger.evidence.real_images import whole_images


def copying_kernel(kernel_size: int, in_channels: int) -> Int[np.ndarray, "K K in out"]:
    """Output channel t is the pixel at tap t, in the input channel t modulo their number.

    >>> copying_kernel(3, 2)[0, 1].nonzero()  # the second tap: from channel 1 to channel 1
    (array([1]), array([1]))
    """
    kernel = np.zeros((kernel_size**2, in_channels, kernel_size**2), np.int64)
    for tap in range(kernel_size**2):
        kernel[tap, tap % in_channels, tap] = 1
    return kernel.reshape(kernel_size, kernel_size, in_channels, -1)


def receptive_fields(
    images: Int[np.ndarray, "batch height width channels"], kernel_size: int, patch_size: int
) -> Int[np.ndarray, "fields offsets features"]:
    """The tokens that each interior query reads, for every image and query.

    >>> receptive_fields(np.arange(9).reshape(1, 3, 3, 1), 3, 1).ravel().tolist()
    [0, 1, 2, 3, 4, 5, 6, 7, 8]
    """
    tokens = cut_tokens(images, patch_size)
    reach = patch_offsets(kernel_size, patch_size)[-1][0]
    windows = np.lib.stride_tricks.sliding_window_view(tokens, (2 * reach + 1,) * 2, axis=(1, 2))
    features = tokens.shape[-1]
    return windows.transpose(0, 1, 2, 4, 5, 3).reshape(-1, (2 * reach + 1) ** 2, features)


def floor_below(
    fields: Int[np.ndarray, "fields offsets features"],
    flattened: Int[np.ndarray, "rows offsets"],
    heads: int,
) -> float:
    """What the mean squared error of every layer with so many heads is at least."""
    rank = exact_rank(flattened)
    if rank != flattened.shape[1] or heads >= rank:
        raise EvidenceFailed(
            f"F has rank {rank} and {flattened.shape[1]} columns, so {heads} heads have no floor"
        )
    flat = fields.reshape(len(fields), -1)
    count, total = len(flat), flat.sum(axis=0)
    try:
        spread = least_eigenvalue(count * (flat.T @ flat) - np.outer(total, total)) / count
        smallest = least_eigenvalue(flattened.T @ flattened)
    except ValueError as error:
        raise EvidenceFailed(f"there is no floor: {error}") from error
    return spread * (rank - heads) * smallest / len(fields) * (1 - 2.0**-50)


def least_squares_maps(
    fields: Int[np.ndarray, "fields offsets features"],
    targets: Int[np.ndarray, "fields outputs"],
    heads: list[int],
) -> Float[np.ndarray, "heads features outputs"]:
    """The maps with which one-hot heads at the offsets `heads` come nearest to the convolution."""
    design = fields[:, heads].reshape(len(fields), -1)
    gram, mixed = (design.T @ design).astype(np.float64), (design.T @ targets).astype(np.float64)
    return np.linalg.solve(gram, mixed).reshape(len(heads), fields.shape[2], -1)


def fewer_heads_fail(
    name: str, kernel_size: int, *, patch_size: int = 1, channels: int = 3, quick: bool = False
) -> Evidence:
    """ρ heads equal the copying convolution in four dtypes; ρ - 1 stay above the floor.

    So many channels of the images are taken.

    The layer with ρ - 1 heads that is run looks at all offsets but one, one-hot, with the maps of
    least squares on these very fields.
    """

    def check(run: Run) -> str:
        images = whole_images(run)[..., :channels]
        kernel = copying_kernel(kernel_size, images.shape[-1])
        blocks = output_blocks(kernel, patch_size)
        fields = receptive_fields(images, kernel_size, patch_size)
        flattened = flattened_blocks(blocks)
        needed = flattened.shape[1]
        floor = floor_below(fields, flattened, needed - 1)
        exact = exact_convolution(images, kernel)
        targets = fields.reshape(len(fields), -1) @ blocks.reshape(-1, blocks.shape[2])
        reach = patch_offsets(kernel_size, patch_size)[-1][0]

        def interior(result: np.ndarray) -> np.ndarray:
            tokens = cut_tokens(result, patch_size)[:, reach:-reach, reach:-reach]
            return tokens.reshape(len(fields), -1)

        if (interior(exact) != targets).any():
            raise EvidenceFailed("the printed W^O and the convolution differ at interior queries")

        dropped = needed - 1
        remaining = [head for head in range(needed) if head != dropped]
        best = least_squares_maps(fields, targets, remaining)
        comparisons, errors = [], []
        for dtype in DTYPES:
            full = converted(kernel, dtype, patch_size=patch_size, encoding="bias", form="limit")
            if full.heads != needed:
                raise EvidenceFailed(f"the layer has {full.heads} heads, expected {needed}")
            comparisons.append(equal(dtype, applied(full, images, dtype), exact))
            fewer = AttentionLayer(
                encoding=full.encoding.take_heads(remaining),
                value=None,
                output=jnp.asarray(best.astype(dtype)),
                patch_size=full.patch_size,
                ring=full.ring,
            )
            result = np.asarray(applied(fewer, images, dtype), np.float64)
            squared = float(((interior(result) - targets) ** 2).sum(axis=1).mean())
            if not squared > floor > 0:
                raise EvidenceFailed(
                    f"{dtype}: {needed - 1} heads reach a mean squared error of {squared:.3g}, "
                    f"below the floor {floor:.3g}"
                )
            errors.append(squared)
        return (
            f"{len(images)} images, {len(fields)} receptive fields; {needed} heads: "
            + ", ".join(comparisons)
            + f"; any {needed - 1} heads on these fields: mean squared error > {floor:.2g}; "
            f"the best one-hot ones without {patch_offsets(kernel_size, patch_size)[dropped]}: "
            f"{min(errors):.4g} to {max(errors):.4g}"
        )

    return Evidence(
        name,
        Level.BOUNDED,
        check,
        assumes="exp underflows to zero; ball arithmetic (python-flint) for the least eigenvalues; "
        "the floor is for heads without content",
        quick=quick,
    )
