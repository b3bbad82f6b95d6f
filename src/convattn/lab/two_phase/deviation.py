"""How far the logits of a network and of its conversion can lie apart: derived from two runs.

Let a be what the convolution network computed at each step, b what the attention network did, both
in float32, and d = a - b exactly; d = 0 at the embedded images, which the two share. Every step is
shared but the mixing, and for that the convolution stands in both: attention is the convolution and
an error, bounded at its own input (`mixing_bound`). So through each step d goes by the linear map S
with the local errors r of a and s of b (both in `sublayers`):

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

from dataclasses import dataclass
from functools import partial
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from flax import nnx
from jax import Array
from jaxtyping import Float

from convattn.lab.models.vision_transformer import VisionTransformer
from convattn.lab.two_phase.mixing_bound import attention_bound, wide_mixing
from convattn.lab.two_phase.settings import ConversionSettings
from convattn.lab.two_phase.sublayers import (
    between,
    convolution_rounding,
    gelu,
    mean_of_tokens,
    sum_rounding,
)
from convattn.networks.deviation import INFLATION, Deviation
from convattn.networks.step_errors import worst_ratio
from convattn.operators.roundoff import gamma, unit_roundoff

AT_ONCE = 10  # classes
WIDE = unit_roundoff(np.float64)
Trace = list[list[Array]]  # for each chain its input and what each of its steps gave


def chains(model: VisionTransformer, mixings: Any = None) -> list[tuple[Any, ...]]:
    """The sublayers: two chains for each layer, each added to its input, and the last one.

    Args:
        mixings: In place of the model's own, if given.
    """
    found: list[tuple[Any, ...]] = []
    for number, layer in enumerate(model.layers):
        mixing = layer.mixing if mixings is None else mixings[number]
        found += [
            (layer.mixing_norm, mixing),
            (layer.inner_norm, layer.inner, gelu, layer.outer),
        ]
    return [*found, (model.norm, mean_of_tokens, model.classifier)]


@nnx.jit
def trace(model: VisionTransformer, images: Float[Array, "batch height width channels"]) -> Trace:
    """Run a network in float32 by its sublayers, and keep every result; logits are the last one.

    >>> from convattn.lab.models.settings import VisionTransformerSettings
    >>> settings = VisionTransformerSettings(depth=2, width=12, inner=6, patch_size=2, heads=2)
    >>> model = VisionTransformer(settings, classes=3, image_size=(4, 6), rngs=nnx.Rngs(0))
    >>> found = trace(model, jnp.ones((5, 4, 6, 3)))
    >>> [len(chain) for chain in found], found[-1][-1].shape
    ([3, 5, 3, 5, 4], (5, 3))
    """
    found: Trace = []
    tokens = model.embedded(images)
    for chain in chains(model):
        values = [tokens]
        for step in chain:
            values.append(step(values[-1]))
        found.append(values)
        tokens = tokens + values[-1] if values[-1].shape == tokens.shape else values[-1]
    return found


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
        ValueError: For networks in another dtype.

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
    left, right = trace(one, images), trace(two, images)
    held: Any = one.layers
    pairs = zip(held, two.layers, strict=True)
    found = [
        mixing_errors(layer.mixing, converted.mixing, left[place][1], right[place][1:], conversion)
        for place, (layer, converted) in zip(range(0, len(left), 2), pairs, strict=False)
    ]
    errors, layers = zip(*found, strict=True)
    with jax.enable_x64(True):
        wide = jax.tree.map(lambda part: jnp.asarray(part, jnp.float64), (left, right))
        mixings = tuple(wide_mixing(layer.mixing) for layer in held)
        bound = logit_bound((one, mixings), wide[0], wide[1], errors)
    ratios = {f"layer {number}": layer.share for number, layer in enumerate(layers, 1)}
    logits = np.asarray(left[-1][-1]), np.asarray(right[-1][-1])
    return ConversionDeviation(*logits, bound, ratios, layers)


def mixing_errors(
    convolution: Any,
    attention: Any,
    before: Array,
    after: list[Array],
    conversion: ConversionSettings,
) -> tuple[Float[np.ndarray, "batch rows columns features"], LayerDeviation]:
    """The local errors of the mixing in both runs together, and the two at the same input.

    Args:
        before: What the convolution was given.
        after: What the attention was given, and made of it.
    """
    normed, mixed = after
    wrong = attention_bound(attention, convolution, normed, conversion)
    same = np.asarray(convolution(normed), np.float64)
    with jax.enable_x64(True):
        wide = wide_mixing(convolution)
        here, there = (
            np.asarray(convolution_rounding(wide, jnp.asarray(inputs, jnp.float64)))
            for inputs in (normed, before)
        )
    found, allowed = np.asarray(mixed, np.float64), (wrong + here) * INFLATION
    seen = float(np.abs(found - same).max())
    return wrong + there, LayerDeviation(
        seen, float(allowed.max()), worst_ratio(found, same, allowed)
    )


def logit_bound(
    held: tuple[VisionTransformer, tuple[Any, ...]],
    left: Trace,
    right: Trace,
    mixing_errors: tuple[Float[np.ndarray, "batch rows columns features"], ...],
) -> Float[np.ndarray, "batch classes"]:
    """Σ_steps |g|ᵀ(errors) for each logit; called under `jax.enable_x64(True)`.

    Args:
        held: The convolution network, of which only what both share is used, and its convolutions
            in float64.
        left, right: What both networks computed, in float64.
        mixing_errors: Of both runs together, for each layer.
    """
    split, classes = nnx.split(held), left[-1][-1].shape[1]
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
        Those of `logit_bound`, `held` split, and
        units: Rows of the identity matrix.
    """
    sublayers, errors = [], []
    for number, chain in enumerate(chains(*nnx.merge(structure, numbers))):
        one, two = left[number], right[number]
        passed = [between(step, *inputs) for step, *inputs in zip(chain, one, two, strict=False)]
        local = [
            each.rounding(a) + each.rounding(b) + lost(each.terms, each.magnitude(jnp.abs(a - b)))
            for each, a, b in zip(passed, one, two, strict=False)
        ]
        if number % 2 == 0 and number + 1 < len(left):
            gap = passed[1].magnitude(jnp.abs(one[1] - two[1]))
            local[1] = mixing_errors[number // 2] + lost(passed[1].terms, gap)
        if number + 1 < len(left):  # the sum with what the chain was given
            sums = left[number + 1][0], right[number + 1][0]
            of_sum = sum_rounding(one[0], one[-1]) + sum_rounding(two[0], two[-1])
            local.append(of_sum + lost(0, jnp.abs(sums[0] - sums[1])))
        sublayers.append(passed)
        errors.append(local)

    def through(places: Any) -> Array:
        """The logits' difference, if such numbers are added to the difference at each place."""
        d = jnp.zeros_like(left[0][0])
        for passed, added in zip(sublayers, places, strict=True):
            kept = d
            for each, more in zip(passed, added, strict=False):
                d = each.secant(d) + more
            if len(added) > len(passed):
                d = kept + d + added[-1]
        return d

    _, transposed = jax.vjp(through, jax.tree.map(jnp.zeros_like, errors))

    def one_class(unit: Array) -> Array:
        (found,) = transposed(jnp.broadcast_to(unit, left[-1][-1].shape))
        parts = jax.tree.map(lambda g, error: summed(jnp.abs(g) * error), found, errors)
        return jax.tree.reduce(jnp.add, parts)

    return jax.vmap(one_class)(units)


def lost(terms: int, size: Array) -> Array:
    """What float64 can lose of a map of so many terms, of its transpose, and of sums of cotangents.

    >>> 63 < float(lost(0, jnp.ones(1))[0]) / WIDE < 65
    True
    """
    return gamma(4 * terms + 64, WIDE) * size


def summed(values: Float[Array, "batch *shape"]) -> Float[Array, "batch"]:
    """One number for each image."""
    return values.reshape(len(values), -1).sum(axis=1)
