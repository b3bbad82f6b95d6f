"""Two phases: train a convolution, convert it, go on as attention.

Claimed. Training first as a convolution and then, converted, as attention beats either alone, and
the converted layers gradually learn to use attention.
True. The training runs were not repeated here; converted as in the proof, with query and key maps
zero, these get no gradient at all, and at M = 40 the biases get next to none.

Printed. "The proposed two-phase training pipeline largely improves performance": on CIFAR-100
CMHSA-5 reaches 78.74 % with both phases, 76.12 % with the convolution phase alone and 69.83 % with
attention alone, each for 400 epochs (Table 1). After the conversion no warm-up is needed: 78.90 %
without it (§4.3, Figure 2). "In the self-attention phase, the model mimics the pre-trained CNN in
the beginning, and gradually learns to leverage the flexibility and strong expressive power of
self-attention" (§4.1).

Verified. The accuracies are NOT RUN: nothing is known here of whether both phases beat either, or
of the warm-up. Known is what the second phase begins with. A network and its conversion differ by
no more than the derived bound, with the exact kind by rounding alone. What can learn there depends
on the conversion. With W_Q = W_K = 0, as in the proof of Theorem 1, the gradients of both vanish
exactly, and content scores stay zero however long it is trained; with W_Q = 0 and W_K drawn it is
the same function, and W_Q learns from the first step. At M = 40 the gradient of the biases, which
reaches them through softmax, is smaller than what rounding may do to it, and far below the 10⁻⁸
that AdamW adds to its size; at the height of a leak of ε = 1/2 it is neither.

Repair. The printed conversion mimics the convolution but does not "gradually" learn attention as it
stands: at M = 40 softmax is saturated, and W_Q = W_K = 0 is a stationary point of both. L21 says
neither what M was in the experiment nor whether W_Q and W_K were zero there. The exact form of
S.finite, with one head more, any leak and W_K drawn, has all gradients. The border of the first
phase's convolutions is another one than L21's attention sees, without a ring (S.boundary).

Errata.
- Section 4.1 | converted attention "gradually learns" | Remark: if M was 40 in the experiment,
  next to no gradient reaches the biases, and if W_Q = W_K = 0 none the content; neither is stated

Proof. *The idea:* each of W_Q and W_K is a factor of the other's gradient, and softmax is flat
where it is one-hot.

Scores are s_qk = X_q W_Q W_Kᵀ X_kᵀ/√d + b_(k-q). So the derivative in W_Q is Σ_qk ∂_qk X_qᵀ (X_k
W_K)/√d, which is zero if W_K is, and that in W_K is Σ_qk ∂_qk X_kᵀ (X_q W_Q)/√d, zero if W_Q is:
exactly so in floating point, as sums of zeros.

Through softmax A the cotangent a of the weights becomes A_k(a_k - Σ_j A_j a_j). For A one-hot but
for t = (N - 1)/(e^M + N - 1) that is at most 2t·max|a| in magnitude, 4·10⁻¹⁶ for N = 101 and M =
40, far below the roundings of a_k in float32.

For the networks: the derivation in `two_phase/deviation.py`.
"""

import math
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import jax
import jax.numpy as jnp
import numpy as np

from convattn.fast.application import apply_attention
from convattn_ledger import Claim, Evidence, EvidenceFailed, Kind, Level, Run, Verdict, require
from convattn_ledger.bounds.back_ends.bounds import gradient_bounds
from convattn_ledger.evidence.experiments import BackingRun
from convattn_ledger.evidence.real_images import whole_images

VERDICT = Verdict.NOT_RUN
SIZE = (6, 8)  # 3 × 4 patches of 2 × 2 pixels and 3 channels


def experiment():
    """The runs, as the paper describes them."""
    from convattn_lab.records.rows import Pipeline

    return Pipeline()


def printed_architecture(run: Run) -> str:
    """Nine heads for K = 3 and 5, and the weights of the six layers that L21.table1 counts."""
    from convattn_lab.models.sizes import abstract_model, parameter_count
    from convattn_lab.records.experiments import WITH, paper_runs

    weights, beside = 155_713_536, 0
    for kernel_size in (3, 5):
        model = paper_runs(kernel_size)[WITH].model
        heads, width, inner = model.heads, model.width, model.inner
        table = heads * (14 + 14 + 2 * model.ring - 1) ** 2
        beside = 6 * (table + 3 * heads * width + 6 * width + inner) + 102 * width + 100
        parameters = parameter_count(abstract_model(model, classes=100, image_size=(224, 224)))
        if heads != 9 or parameters != weights + beside:
            raise EvidenceFailed(
                f"K = {kernel_size}: {heads} heads and {parameters} parameters, expected 9 and "
                f"{weights + beside}"
            )
    return f"9 heads; {weights:,} weights in the layers and {beside:,} other parameters"


@contextmanager
def quick_compilation() -> Iterator[None]:
    """The programs below run once, so most of XLA's optimizations cost more than they save."""
    jax.config.update("jax_disable_most_optimizations", True)
    try:
        yield
    finally:
        jax.config.update("jax_disable_most_optimizations", False)


def small_images(run: Run):
    """Two pieces of real images, in float32."""
    pieces = whole_images(run, 2)[:, : SIZE[0], : SIZE[1]]
    return jnp.asarray(pieces / 127.5 - 1, jnp.float32)


def small_network(run: Run):
    """A layer of convolutions with drawn numbers, in float32, and images for it."""
    from flax import nnx

    from convattn.nnx.vision_transformer.settings import VisionTransformerSettings
    from convattn_lab.models.sizes import abstract_model

    settings = VisionTransformerSettings("convolution", depth=1, width=12, inner=9, patch_size=2)
    structure, shapes = nnx.split(abstract_model(settings, classes=3, image_size=SIZE))
    rng = run.rng("parameters")
    numbers = jax.tree.map(
        lambda leaf: jnp.asarray(rng.normal(size=leaf.shape) / 2, jnp.float32), shapes
    )
    return nnx.merge(structure, numbers), small_images(run)


@quick_compilation()
def same_function(run: Run) -> str:
    """The logits of a network and of its exact conversion, within the derived bound."""
    from flax import nnx

    from convattn_lab.two_phase.deviation import deviation
    from convattn_lab.two_phase.settings import ConversionSettings, phase_two_settings
    from convattn_lab.two_phase.transfer import transfer

    (model, images), how = small_network(run), ConversionSettings("exact")
    settings = phase_two_settings(model.settings, how)
    error = deviation(model, transfer(model, settings, how, rngs=nnx.Rngs(1)), images, how)
    logits = f"{error.difference:.2g}, with a bound of {error.bound:.2g}"
    require(error.passed, f"the logits differ by up to {logits}, or a layer exceeds its bound")
    return (
        f"{settings.heads} heads, ε = 1/2: logits of up to {abs(error.logits).max():.2g} differ by "
        f"up to {logits}"
    )


@quick_compilation()
def content_gradients(run: Run) -> str:
    """The gradients of W_Q and W_K, with both zero and with W_K drawn."""
    from flax import nnx

    from convattn_lab.two_phase.gradient_norms import gradient_norms
    from convattn_lab.two_phase.settings import ConversionSettings, phase_two_settings
    from convattn_lab.two_phase.transfer import transfer

    model, images = small_network(run)
    labels = run.rng("labels").integers(0, 3, len(images))
    summary = []
    for content, query_learns in (("none", False), ("key", True)):
        how = ConversionSettings("exact", content=content)
        two = transfer(model, phase_two_settings(model.settings, how), how, rngs=nnx.Rngs(1))
        norms = gradient_norms(two, images, labels)
        query, key = norms["W_Q"], norms["W_K"]
        if key.zeros != key.parameters:
            raise EvidenceFailed(f"content={content}: W_K has a gradient, though W_Q is zero")
        if query_learns != (query.zeros < query.parameters):
            raise EvidenceFailed(f"content={content}: of W_Q {query.zeros} derivatives are zero")
        summary.append(f"content={content}: W_Q {query.norm:.2g}, W_K {key.norm:.2g}")
    return "; ".join(summary)


@quick_compilation()
def bias_gradients(run: Run) -> str:
    """The gradient of the table of biases against what rounding can do to it, and against 10⁻⁸."""
    from convattn_lab.two_phase.settings import ConversionSettings
    from convattn_lab.two_phase.transfer import convert_layer

    images = small_images(run)
    kernel = jnp.asarray(run.rng("kernel").normal(size=(3, 3, 3, 3)), jnp.float32)
    cotangent = jnp.asarray(run.rng("cotangent").normal(size=images.shape), jnp.float32)

    @jax.jit
    @jax.grad
    def gradient(layer):
        return jnp.sum(apply_attention(layer, images) * cotangent)

    shares, sizes = {}, {}
    keys = (SIZE[0] // 2 + 2) * (SIZE[1] // 2 + 2)
    for name, height in (("M = 40", 40.0), ("ε = 1/2", math.log1p(keys))):
        how = ConversionSettings("limit", logit=height)
        layer = convert_layer(kernel, jnp.zeros(3), 2, (SIZE[0] // 2, SIZE[1] // 2), how)
        gradients = np.abs(np.asarray(gradient(layer).encoding.values, np.float64))
        bound = np.asarray(gradient_bounds(layer, images, cotangent)[0].encoding.values)
        shares[name], sizes[name] = float(gradients.max() / bound.max()), float(gradients.max())
    if not (shares["M = 40"] < 1 < shares["ε = 1/2"] and sizes["M = 40"] < 1e-8 < sizes["ε = 1/2"]):
        raise EvidenceFailed(f"the largest derivatives are {sizes}, over their rounding {shares}")
    return "largest derivative of a bias: " + ", ".join(
        f"{sizes[name]:.2g} at {name} ({shares[name]:.2g} of what rounding may do)"
        for name in sizes
    )


CLAIM = Claim(
    id="L21.twophase",
    source="Li et al. 2021, §4, Table 1, Figure 2",
    verdict=VERDICT,
    kinds=(Kind.EXPERIMENT,),
    evidence=(
        Evidence(
            "runs at the paper's size",
            Level.MEASURED,
            BackingRun(experiment, Path(__file__).with_suffix(".json"), VERDICT),
        ),
        Evidence("before training", Level.TESTED, printed_architecture),
        Evidence(
            "the conversion keeps the function",
            Level.BOUNDED,
            same_function,
            assumes="exp and rsqrt are within 4 units in the last place, and erf within 8 "
            "roundings of 1; matrix products are sums of products in the pinned precision",
            quick=False,
        ),
        Evidence("gradients of the content", Level.TESTED, content_gradients, quick=False),
        Evidence("gradients of the biases", Level.BOUNDED, bias_gradients, quick=False),
    ),
)
