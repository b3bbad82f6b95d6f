"""Layers of mixture heads: in fractions on small images, and in four dtypes on whole ones."""

from fractions import Fraction

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Int, Shaped

from convattn.bounds.mixture_error import given_kernel_majorant, mixture_error_bound
from convattn.bounds.score_error import ASSUMPTION
from convattn.constructions.given_kernel import given_kernel_layer
from convattn.fast.application import apply_attention
from convattn.ledger.claim import Evidence, EvidenceFailed, Level, Run
from convattn.ledger.evidence.exact_convolution import exact_convolution
from convattn.ledger.evidence.exact_tokens import cut_tokens, tokens_at
from convattn.ledger.evidence.layer_runs import DTYPES, within
from convattn.ledger.evidence.real_images import whole_images


def exact_mixture_layer(
    images: Int[np.ndarray, "batch height width channels"],
    patch_size: int,
    weights: Shaped[np.ndarray, "heads offsets"],
    blocks: Shaped[np.ndarray, "heads patch_in patch_out"],
    offsets: tuple[tuple[int, int], ...],
    ring: int,
) -> Shaped[np.ndarray, "batch rows columns patch_out"]:
    """Σ_h A_h X V_h on tokens in fractions, A_h the softmax of log(1 + N·w_hδ) with a zero ring.

    A key at offset δ has 1 + N·w_hδ of the sum N + N·Σ w_h, every other key 1; N counts the ring.

    >>> found = exact_mixture_layer(
    ...     np.array([[[[3], [5]]]]), 1, np.array([[Fraction(1)]]), np.array([[[2]]]), ((0, 0),), 0
    ... )
    >>> [int(entry) for entry in found.ravel()]  # half one's own token, half the mean of both
    [7, 9]
    """
    tokens = cut_tokens(images, patch_size).astype(object)
    keys = (tokens.shape[1] + 2 * ring) * (tokens.shape[2] + 2 * ring)
    everything = tokens.sum(axis=(1, 2), keepdims=True)
    seen = [tokens_at(tokens, offset) for offset in offsets]
    total: np.ndarray | int = 0
    for row, block in zip(weights, blocks, strict=True):
        mixed = everything + sum(
            (keys * w * part for w, part in zip(row, seen, strict=True)), Fraction(0)
        )
        total = total + (mixed / (keys * (1 + sum(row, Fraction(0))))) @ block
    return np.asarray(total)


def given_kernel_on_images(
    name: str,
    kernel: Int[np.ndarray, "K1 K2 in out"],
    heads: int,
    *,
    patch_size: int = 1,
    dtypes: tuple[str, ...] = DTYPES,
    quick: bool = False,
) -> Evidence:
    """The layer of ρ + 1 heads against the exact convolution, dtype by dtype.

    Args:
        kernel: Integers, for three channels; |outputs| must stay below float16's range.
        heads: What ρ + 1 should be.
    """

    def check(run: Run) -> str:
        images = whole_images(run)
        bias = run.rng("bias").integers(-8, 9, kernel.shape[-1])
        expected = exact_convolution(images, kernel) + bias
        found, majorant = [], None
        for dtype in dtypes:
            layer = given_kernel_layer(
                jnp.asarray(kernel, dtype), jnp.asarray(bias, dtype), patch_size=patch_size
            )
            if layer.heads != heads:
                raise EvidenceFailed(f"the layer has {layer.heads} heads, expected {heads}")
            typed = jnp.asarray(images, dtype)
            if majorant is None:
                majorant = given_kernel_majorant(layer, kernel, bias, images)
            bound = mixture_error_bound(layer, typed, majorant)
            result = jax.jit(apply_attention)(layer, typed)
            found.append(within(dtype, result, expected, bound))
        return f"{len(images)} images, {heads} heads; " + "; ".join(found)

    return Evidence(name, Level.BOUNDED, check, assumes=ASSUMPTION, quick=quick)
