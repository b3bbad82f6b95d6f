"""How far the logits of a network and of its conversion can lie apart: derived from two runs.

Let a be what the convolution network computed at each step, b what the attention network did, both
in float32, and d = a - b exactly; d = 0 at the embedded images, which the two share. Every step is
shared but the mixing, and for that the convolution stands in both: attention is the convolution and
an error, bounded at its own input (`mixing_bound`). So through each step d goes by the linear map S
of `secant_network`, with the local errors r of a and s of b (`sublayer_rounding`):

    d_y = S d_x + r - s.

The identity of `convattn.networks.deviation` holds for any cotangents g, one at each step:

    d_c = Σ_steps [ g_yᵀ(r - s) + (Sᵀ g_y - g_x)ᵀ d_x ].

Here g is the transposed network's, computed in float64. The second part is at most
γ_n |g_y|ᵀ|S||d_x| with the unit roundoff of float64, and where two cotangents are added, u|g|ᵀ|d|.
Both are counted. The secants themselves are off by as much: gelu and LayerNorm in float64 lose 2⁻²⁹
of what they may lose in float32, and the last inflation covers that and the sums of nonnegative
numbers in which the bound is evaluated.

*Sharper, and first:* each layer's attention and convolution are given the same input, that of the
converted network, and must agree within both of their bounds.
"""

from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from flax import nnx
from jax import Array
from jaxtyping import Float

from convattn.lab.models.attention_mixing import AttentionMixing
from convattn.lab.models.convolution_mixing import ConvolutionMixing
from convattn.lab.models.linear import Linear
from convattn.lab.models.vision_transformer import VisionTransformer
from convattn.lab.models.vision_transformer_layer import VisionTransformerLayer
from convattn.lab.two_phase.mixing_bound import attention_bound, wide_mixing
from convattn.lab.two_phase.secant_network import (
    gelu_slope,
    linear_part,
    norm_secant,
)
from convattn.lab.two_phase.settings import ConversionSettings
from convattn.lab.two_phase.sublayer_rounding import (
    affine_rounding,
    convolution_rounding,
    gelu_rounding,
    magnitude_of,
    mean_rounding,
    norm_rounding,
    sum_rounding,
)
from convattn.lab.two_phase.trace import LayerTrace, Trace, trace
from convattn.networks.deviation import INFLATION, Deviation
from convattn.networks.step_errors import share
from convattn.operators.roundoff import gamma, unit_roundoff

AT_ONCE = 10  # classes
WIDE = unit_roundoff(np.float64)
compiled_trace = nnx.jit(trace)


@dataclass(frozen=True)
class LayerDeviation:
    """Attention and convolution of a layer at the same input.

    Attributes:
        seen: The largest difference of two entries.
        bound: The largest of the bounds.
        share: The largest difference in units of its own bound; at most 1 if nothing is wrong.
    """

    seen: float
    bound: float
    share: float


@dataclass(frozen=True)
class ConversionDeviation(Deviation):
    """A network and its conversion, run on the same images in float32.

    Attributes:
        details: Each layer by itself.
    """

    details: tuple[LayerDeviation, ...]


def deviation(
    one: VisionTransformer,
    two: VisionTransformer,
    images: Float[Array, "batch height width channels"],
    conversion: ConversionSettings,
) -> ConversionDeviation:
    """Run both networks, and bound how far they can lie apart.

    Args:
        one, two: Of the convolution phase, and what `transfer` made of it; computing in float32.
        images: float32. The bound takes one backward pass in float64 for each class.

    Raises:
        ValueError: For networks in another dtype, and for a class token.

    >>> from flax import nnx
    >>> from convattn.lab.models.settings import VisionTransformerSettings
    >>> from convattn.lab.two_phase.settings import phase_two_settings
    >>> from convattn.lab.two_phase.transfer import transfer
    >>> sizes = {"depth": 1, "width": 12, "inner": 6, "patch_size": 2}
    >>> settings = VisionTransformerSettings("convolution", **sizes)
    >>> one = VisionTransformer(settings, classes=2, image_size=(4, 6), rngs=nnx.Rngs(0))
    >>> how = ConversionSettings("exact")
    >>> two = transfer(one, phase_two_settings(settings, how), how, rngs=nnx.Rngs(1))
    >>> found = deviation(one, two, jax.random.normal(jax.random.key(0), (2, 4, 6, 3)), how)
    >>> found.passed, bool((found.bound < 1e-2).all())
    (True, True)
    """
    images = jnp.asarray(images)
    for given in (one.dtype, two.dtype, images.dtype):
        if given != jnp.float32:
            raise ValueError(
                f"a network or the images are in {given}, but the bound is derived for float32; "
                "make both networks with dtype='float32'"
            )
    left, right = compiled_trace(one, images), compiled_trace(two, images)
    errors, layers = [], []
    sides: Any = one.layers, two.layers, left.layers, right.layers
    for layer, converted, before, after in zip(*sides, strict=True):
        found = mixing_errors(layer.mixing, converted.mixing, before, after, conversion)
        errors.append(found[0])
        layers.append(found[1])
    with jax.enable_x64(True):
        wide = jax.tree.map(lambda part: jnp.asarray(part, jnp.float64), (left, right))
        mixings = tuple(wide_mixing(layer.mixing) for layer in sides[0])
        bound = logit_bound(one, mixings, wide[0], wide[1], tuple(errors))
    shares = {f"layer {number}": layer.share for number, layer in enumerate(layers, 1)}
    logits = np.asarray(left.logits), np.asarray(right.logits)
    return ConversionDeviation(*logits, bound, shares, tuple(layers))


def mixing_errors(
    convolution: ConvolutionMixing,
    attention: AttentionMixing,
    before: LayerTrace,
    after: LayerTrace,
    conversion: ConversionSettings,
) -> tuple[Float[np.ndarray, "batch rows columns features"], LayerDeviation]:
    """The local errors of the mixing in both runs together, and the two at the same input."""
    wrong = attention_bound(attention, convolution, after.normed, conversion)
    same = np.asarray(convolution(after.normed), np.float64)
    with jax.enable_x64(True):
        wide = wide_mixing(convolution)
        here, there = (
            np.asarray(convolution_rounding(wide, jnp.asarray(normed, jnp.float64)))
            for normed in (after.normed, before.normed)
        )
    seen, allowed = np.abs(np.asarray(after.mixed, np.float64) - same), (wrong + here) * INFLATION
    largest = share(np.asarray(after.mixed, np.float64), same, allowed)
    return wrong + there, LayerDeviation(float(seen.max()), float(allowed.max()), largest)


def logit_bound(
    model: VisionTransformer,
    mixings: tuple[ConvolutionMixing, ...],
    left: Trace,
    right: Trace,
    mixing_errors: tuple[Float[np.ndarray, "batch rows columns features"], ...],
) -> Float[np.ndarray, "batch classes"]:
    """Σ_steps |g|ᵀ(errors) for each logit; called under `jax.enable_x64(True)`.

    Args:
        model: The convolution network; of it only what both share is used.
        mixings: Its convolutions, in float64.
        left, right: What both networks computed, in float64.
        mixing_errors: Of both runs together, for each layer.
    """
    split = nnx.split((model, mixings))
    classes = left.logits.shape[1]
    units = np.eye(-(-classes // AT_ONCE) * AT_ONCE, classes).reshape(-1, AT_ONCE, classes)
    rows = [np.asarray(weighted_errors(*split, left, right, mixing_errors, each)) for each in units]
    return np.concatenate(rows)[:classes].T * INFLATION


@partial(jax.jit, static_argnums=0)
def weighted_errors(
    structure: nnx.GraphDef,
    numbers: nnx.State,
    left: Trace,
    right: Trace,
    mixing_errors: tuple[Array, ...],
    units: Float[Array, "some classes"],
) -> Float[Array, "some batch"]:
    """The bound of some logits, without the last inflation.

    Args:
        Those of `logit_bound`, networks and convolutions split, and
        units: Rows of the identity matrix.
    """
    model, mixings = nnx.merge(structure, numbers)
    apart = jax.tree.map(jnp.subtract, left, right)
    sides = (model.layers, mixings, left.layers, right.layers, apart.layers, mixing_errors)
    layers = [layer_errors(*given) for given in zip(*sides, strict=True)]
    ends = [side.layers[-1].outputs for side in (left, right)]
    norm, spread = norm_secant(model.norm, *ends)
    size = jnp.abs(apart.layers[-1].outputs)
    normed = sum(norm_rounding(model.norm, end) for end in ends)
    normed = normed + lost(size.shape[-1], spread(size))
    pooled = sum(mean_rounding(side.normed) for side in (left, right))
    tokens = size.shape[1] * size.shape[2]
    pooled = pooled + lost(tokens, jnp.abs(apart.normed).mean(axis=(1, 2)))
    kernel, bias = wide_map(model.classifier)
    logits = sum(affine_rounding(kernel, bias, side.pooled) for side in (left, right))
    logits = logits + lost(len(kernel), jnp.abs(apart.pooled) @ jnp.abs(kernel))
    errors = tuple(errors for errors, _ in layers), normed, pooled, logits

    def through(places: Any) -> Array:
        """The logits' difference, if such numbers are added to the difference at each place."""
        of_layers, at_norm, at_mean, at_logits = places
        d = jnp.zeros_like(left.layers[0].inputs)
        for added, (_, passed) in zip(of_layers, layers, strict=True):
            d = passed(d, added)
        return ((norm(d) + at_norm).mean(axis=(1, 2)) + at_mean) @ kernel + at_logits

    _, transposed = jax.vjp(through, jax.tree.map(jnp.zeros_like, errors))

    def one_class(unit: Array) -> Array:
        (found,) = transposed(jnp.broadcast_to(unit, left.logits.shape))
        parts = jax.tree.map(lambda g, error: summed(jnp.abs(g) * error), found, errors)
        return jax.tree.reduce(jnp.add, parts)

    return jax.vmap(one_class)(units)


def layer_errors(
    layer: VisionTransformerLayer,
    mixing: ConvolutionMixing,
    left: LayerTrace,
    right: LayerTrace,
    apart: LayerTrace,
    wrong: Array,
) -> tuple[dict[str, Array], Callable[[Array, dict[str, Array]], Array]]:
    """The errors at each place of a layer, and the map of differences through it.

    Args:
        Those of `logit_bound` for one layer; `apart` is the difference of the runs.
    """
    attended, attended_size = norm_secant(layer.mixing_norm, left.inputs, right.inputs)
    entered, entered_size = norm_secant(layer.inner_norm, left.middle, right.middle)
    mixed = linear_part(mixing)
    mixed_size = linear_part(magnitude_of(mixing))
    inner, outer = wide_map(layer.inner), wide_map(layer.outer)
    slope = gelu_slope(left.inner, right.inner)
    size = jax.tree.map(jnp.abs, apart)
    width, inside = inner[0].shape
    taps = int(np.prod(mixing.kernel.shape[:3])) + size.inputs.shape[1] * size.inputs.shape[2]

    def both(rounding: Callable[..., Array], *names: str) -> Array:
        one, two = (rounding(*(getattr(side, name) for name in names)) for side in (left, right))
        return one + two

    errors = {
        "normed": both(partial(norm_rounding, layer.mixing_norm), "inputs")
        + lost(width, attended_size(size.inputs)),
        "mixed": wrong + lost(taps, mixed_size(size.normed)),
        "middle": both(sum_rounding, "inputs", "mixed") + lost(0, size.middle),
        "inner_normed": both(partial(norm_rounding, layer.inner_norm), "middle")
        + lost(width, entered_size(size.middle)),
        "inner": both(partial(affine_rounding, *inner), "inner_normed")
        + lost(width, size.inner_normed @ jnp.abs(inner[0])),
        "active": both(gelu_rounding, "inner") + lost(0, jnp.abs(slope) * size.inner),
        "found": both(partial(affine_rounding, *outer), "active")
        + lost(inside, size.active @ jnp.abs(outer[0])),
        "outputs": both(sum_rounding, "middle", "found") + lost(0, size.outputs),
    }

    def passed(d: Array, added: dict[str, Array]) -> Array:
        d = d + mixed(attended(d) + added["normed"]) + added["mixed"] + added["middle"]
        found = (entered(d) + added["inner_normed"]) @ inner[0] + added["inner"]
        found = (slope * found + added["active"]) @ outer[0] + added["found"]
        return d + found + added["outputs"]

    return errors, passed


def wide_map(linear: Linear) -> tuple[Array, Array]:
    """Kernel and bias in float64."""
    bias: Any = linear.bias
    return linear.kernel[...].astype(jnp.float64), bias[...].astype(jnp.float64)


def lost(terms: int, size: Array) -> Array:
    """What float64 can lose of a map of so many terms, of its transpose, and of sums of cotangents.

    >>> 63 < float(lost(0, jnp.ones(1))[0]) / WIDE < 65
    True
    """
    return gamma(4 * terms + 64, WIDE) * size


def summed(values: Float[Array, "batch *shape"]) -> Float[Array, "batch"]:
    """One number for each image."""
    return values.reshape(len(values), -1).sum(axis=1)
