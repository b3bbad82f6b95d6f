"""§4.3, limitations: fewer than nine heads.

Claimed. With fewer than nine heads, no exact mapping from convolution to attention exists.
True. For some kernels none exists in one layer; for others it does, and two layers of three and
four heads, linear between them, express any 3 × 3 convolution exactly.

Printed. "In particular, we require sufficient number of heads (≥ 9). As suggested by our theory, an
exact mapping doesn’t exist for smaller number of heads, and it would be interesting to study how to
properly initialize ViT from CNN even when the exact mapping is not applicable."

Verified. For some kernels none exists: Theorem 6. For others it does. A kernel whose flattened form
has rank ρ takes ρ heads in the limit, if some combination of its rows is nonnegative, and ρ + 1 at
finite scores (S.kernel): on patches of two pixels a kernel with the centre tap alone takes two, the
difference of two neighbours three, a line of three taps four, all at finite scores. And two layers,
linear between them, of three and three heads are every 3 × 3 convolution in the limit, of three and
four exactly (S.depth); no layer of them has nine heads.

Repair. It does not exist for every kernel, in one layer. How near fewer heads come to a given
kernel is S.approx.

Errata.
- §4.3, limitations | an exact mapping does not exist for a smaller number of heads | it does not
  for every kernel in one layer; kernels of rank below eight have one, and two layers of three and
  four heads have one for every 3 × 3 kernel

Proof. S.kernel, S.depth. ∎
"""

import jax
import jax.numpy as jnp
import numpy as np

from convattn.bounds.kernel_heads import count_heads_of_kernel
from convattn.constructions.given_kernel import given_kernel_layer
from convattn.constructions.two_layers import conv_to_two_layers
from convattn.fast.application import apply_attention
from convattn_ledger import Claim, Evidence, Kind, Level, Run, Verdict, require
from convattn_ledger.bounds.mixture_error import given_kernel_majorant, mixture_error_bound
from convattn_ledger.evidence import exact_convolution
from convattn_ledger.evidence.layer_runs import equal, integer_kernel, within
from convattn_ledger.evidence.real_images import whole_images

PATCH = 2
TAPS = {  # and the heads that they take
    "the centre": ([[0, 0, 0], [0, 1, 0], [0, 0, 0]], 2),
    "two neighbours": ([[0, 0, 0], [1, -1, 0], [0, 0, 0]], 3),
    "a line": ([[0, 0, 0], [1, 2, 1], [0, 0, 0]], 4),
}


def kernels_with_fewer(run: Run) -> str:
    """Kernels that take fewer than nine heads on patches, against the exact convolution."""
    images, comparisons = whole_images(run), []
    mix = run.rng("mix").integers(1, 4, (images.shape[-1], 2))
    for name, (taps, heads) in TAPS.items():
        kernel = np.array(taps)[:, :, None, None] * mix
        layer = given_kernel_layer(jnp.asarray(kernel, jnp.float64), patch_size=PATCH)
        counted = count_heads_of_kernel(kernel, patch_size=PATCH).exact
        require(layer.heads == counted == heads < 9, f"{name}: {layer.heads} heads, {counted}")
        typed, expected = jnp.asarray(images, jnp.float64), exact_convolution(images, kernel)
        majorant = given_kernel_majorant(layer, kernel, None, images)
        bound = mixture_error_bound(layer, typed, majorant)
        result = jax.jit(apply_attention)(layer, typed)
        comparisons.append(f"{name}, {heads} heads: {within('float64', result, expected, bound)}")
    return "; ".join(comparisons)


def two_layers(run: Run) -> str:
    """Three and three heads, with hard attention, are a kernel that takes nine in one layer."""
    images = whole_images(run)
    kernel = integer_kernel(run.rng("kernel"), (3, 3), images.shape[-1], 4)
    layers = conv_to_two_layers(jnp.asarray(kernel, jnp.float64), patch_size=PATCH, form="limit")
    heads = [layers.first.heads, layers.second.heads]
    require(heads == [3, 3], f"{heads} heads")
    return equal(
        "float64", layers(jnp.asarray(images, jnp.float64)), exact_convolution(images, kernel)
    )


CLAIM = Claim(
    id="L21.limitations",
    source="Li et al. 2021, Section 4.3, limitations",
    verdict=Verdict.AMENDED,
    kinds=(Kind.IDENTITY,),
    evidence=(
        Evidence("kernels that take fewer", Level.TESTED, kernels_with_fewer),
        Evidence("two layers", Level.TESTED, two_layers),
    ),
)
