"""Evidence that goes through one back end of `apply_attention`: its values, and its gradients.

*Gradients.* The back end and dense, both in float64, are each within `gradient_bounds` of the exact
gradients, so within twice that of one another.

*The shift back end keeps the bound of `bounds/rounding.py`.* Let a layer of S.finite have T offsets
and H = T + 1 heads with one map of F rows each, on N keys. Where dense has the row A_q of a head,
the shift back end has c at every key and a = A - c at the head's own offset. Both are positive, so
that a|X_(q+δ)| + c Σ_k |X_k| = A_q |X|, and the majorant G is the same. Counted in factors of
1/(1 - u) or less, beside those of the exponentials, a computed output has:

1. *Weights.* The normaliser sums T + 1 numbers, one of them a product: T + 1. The quotient and the
   products: 4. An error e of M moves 1 - e^(-M) by at most e/(e^M - 1) of itself, less than it
   moves e^M, as e^M = 1 + N(1/ε - 1) ≥ 2.
2. *Heads first.* c Σ_k X_k has at most N products and additions, Σ_δ a_δ X_(q+δ) has T ≤ N; their
   sum 1 more; then come H·F products: N + 1 + HF in all. *Taps first.* Σ_h a_hδ W_h has H products,
   Σ_δ X_(q+δ) K_δ has TF, their sum with the mean 1 more: H + TF + 1. That mean, Σ_k X_k times
   Σ_h c_h W_h, has N - 1 additions, H products and F, and the same 1 more: N + H + F. Neither is
   more than N + 1 + HF.

Together T + 6 + N + HF. The bound allows 2N + 2 + HF, in its steps 2 and 4 (bias, cast and stored
maps are the same in both), so it covers this path wherever T + 4 ≤ N. `finite_bound` asks for
T + 16 ≤ N, lest the path grow by a step.
"""

from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jax import Array
from jaxtyping import Float, Int, Num

from convattn.bounds.rounding import layer_error_bound
from convattn.encodings.bias import BiasEncoding
from convattn.encodings.layer import AttentionLayer
from convattn.fast.application import apply_attention
from convattn.operators.shifts import TokenGrid
from convattn_ledger.bounds.back_ends.bounds import gradient_bounds
from convattn_ledger.claim import EvidenceFailed
from convattn_ledger.evidence.exact_convolution import exact_convolution
from convattn_ledger.evidence.layer_runs import within


def gradients(
    backend: str,
    layer: AttentionLayer,
    images: Num[Array, "batch *space channels"],
    cotangent: Num[Array, "batch *space out_channels"],
) -> tuple[AttentionLayer, Num[Array, "batch *space channels"]]:
    """The gradients of Σ cotangent · result by layer and images, by one program."""

    @jax.jit
    def pull(layer: AttentionLayer, images: Array, cotangent: Array) -> Any:
        def apply(layer: AttentionLayer, images: Array) -> Array:
            return apply_attention(layer, images, backend=backend)

        return jax.vjp(apply, layer, images)[1](cotangent)

    return pull(layer, images, cotangent)


def gradients_within(
    backend: str,
    layer: AttentionLayer,
    images: Float[Array, "batch *space channels"],
    cotangent: Float[Array, "batch *space out_channels"],
) -> str:
    """Compare the gradients of a back end with those of dense, array by array.

    Args:
        In float64.
    """
    got, expected, bounds = (
        jax.tree.leaves_with_path(tree)
        for tree in (
            gradients(backend, layer, images, cotangent),
            gradients("dense", layer, images, cotangent),
            gradient_bounds(layer, images, cotangent),
        )
    )
    worst = 0.0
    for (path, one), (_, two), (_, bound) in zip(got, expected, bounds, strict=True):
        name = f"{backend}, gradient by {('layer', 'images')[path[0].idx]}"
        name += jax.tree_util.keystr(path[1:])
        reference, allowed = np.asarray(two), 2 * np.asarray(bound)
        if not (np.abs(reference) > allowed).any():
            raise EvidenceFailed(f"{name}: zero within the bound {allowed.max():.2g}")
        within(name, one, reference, allowed)
        worst = max(worst, float((np.abs(one - reference) / allowed).max()))
    return f"{len(got)} gradients of {backend} at most {worst:.2g} of their bounds from dense"


def finite_bound(
    layer: AttentionLayer,
    kernel: Int[np.ndarray, "rows columns in_channels out_channels"],
    images: Int[np.ndarray, "batch height width in_channels"],
    dtype: str,
) -> Float[np.ndarray, "batch height width out_channels"]:
    """How far the shift back end can be from the convolution: the module's derivation.

    Args:
        layer: Of S.finite, made from `kernel` without a bias, stride or dilation.
        dtype: Under test, of the layer and the images.
    """
    encoding = layer.encoding
    sides = tuple(n // p for n, p in zip(images.shape[1:-1], layer.patch_size, strict=True))
    keys = TokenGrid(sides, layer.ring).number_of_keys
    if (
        not isinstance(encoding, BiasEncoding)
        or encoding.uniform_weight is None
        or layer.value is not None
    ):
        raise EvidenceFailed("the bound is derived for leaky biases with one map for each head")
    uniform_weight = float(encoding.uniform_weight)
    if len(encoding.offsets) + 16 > keys or keys * (1 / uniform_weight - 1) < 1:
        raise EvidenceFailed(
            f"the bound is not derived for {len(encoding.offsets)} offsets on {keys} keys with the "
            f"leak {uniform_weight}"
        )
    magnitude = finite_majorant(kernel, images, layer.patch_size, uniform_weight, keys)
    return layer_error_bound(layer, jnp.asarray(images, dtype), magnitude)


def finite_majorant(
    kernel: Int[np.ndarray, "rows columns in_channels out_channels"],
    images: Int[np.ndarray, "batch height width in_channels"],
    patch_size: tuple[int, ...],
    uniform_weight: float,
    keys: int,
) -> Float[np.ndarray, "batch height width out_channels"]:
    """G of a layer of S.finite with its ring, in NumPy.

    Head δ has the weights (1-ε)S_δ + εJ and the map |M_δ|/(1-ε), the uniform head J and
    ε/(1-ε)·Σ_δ |M_δ|. So G = conv(|X|, |W|) + 2ε/(1-ε)·J|X| Σ_δ |M_δ|, whose last term is the
    convolution with |W| of the mean patch, repeated.
    """
    patch = patch_size[0]
    reach = max(kernel.shape[:2])
    positive, magnitudes = np.abs(images), np.abs(kernel)
    batch, height, width, channels = images.shape
    tokens = positive.reshape(batch, height // patch, patch, width // patch, patch, channels)
    total = np.pad(tokens.sum(axis=(1, 3)), [(0, 0), *[(reach, reach)] * 2, (0, 0)], mode="wrap")
    interior = slice(reach, reach + patch)
    repeated = exact_convolution(total, magnitudes)[:, interior, interior]
    repeated = np.tile(repeated, (1, height // patch, width // patch, 1))
    return (
        exact_convolution(positive, magnitudes)
        + 2 * uniform_weight / (1 - uniform_weight) / keys * repeated
    )
