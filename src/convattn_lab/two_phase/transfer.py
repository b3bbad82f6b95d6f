"""From the convolution phase to the attention phase: L21 Theorem 1, layer by layer.

The tokens of both networks are the patches of an image, so that a layer's convolution is expressed
by (2m + 1)² heads with m = ⌈(K-1)/(2P)⌉, W^V = I, the maps of `li_output_map` for W^O, and a bias
of M at each head's shift. The exact kind is S.finite's: M(N) = log(1 + N(1/ε - 1)) for the N keys
of this network, and one uniform head more, which takes the leak back.

The bias becomes a full table, one trainable number for each head and each shift of the grid. What
is not mixing is copied. Queries are zero, hence all content scores, and the function is that of the
positions; so is the gradient of the keys then, but not that of the queries as long as the keys are
not zero, too.

*How far the function is the same.* The exact kind: up to rounding. The limit: each head is off by
the total variation (N - 1)/(e^M + N - 1) (`ConversionSettings.total_variation`), nothing in float32
at M = 40 and 1.1 % at M = 10 for L21's 256 keys; `mixing_bound` bounds what that makes of a layer.
"""

from dataclasses import replace
from functools import partial
from typing import Any

import jax
import jax.numpy as jnp
from flax import nnx
from jax import Array

from convattn.constructions.conversion import conv_to_attention
from convattn.encodings.bias import BiasEncoding
from convattn.encodings.layer import AttentionLayer
from convattn.nnx.layers.linear import DEVIATION
from convattn.nnx.vision_transformer.model import VisionTransformer
from convattn.nnx.vision_transformer.settings import Border, VisionTransformerSettings
from convattn.operators.shifts import TokenGrid
from convattn_lab.settings import changed_fields
from convattn_lab.two_phase.settings import ConversionSettings, phase_two_settings

# What the second phase is free to have otherwise than `phase_two_settings` gives it.
FREE = ("dropout", "attention_dropout", "stochastic_depth", "projection")


def convert_layer(
    kernel: Any,
    bias: Any,
    patch_size: int,
    grid: tuple[int, int],
    conversion: ConversionSettings,
    *,
    border: Border = "zero",
) -> AttentionLayer:
    """The attention that computes a convolution on images of one size, with a full table of biases.

    Args:
        kernel, bias: `[K, K, C, C]` and `[C]`, K odd.
        grid: Rows and columns of patches.
        border: What the convolution has outside its images.

    Returns:
        A layer without content for images that consist of these patches; the shifts of its encoding
        are all those of the grid, the ring included.

    Raises:
        ValueError: For what `conv_to_attention` refuses.

    Source: L21 Theorem 1; S.finite, S.boundary.

    >>> layer = convert_layer(jnp.ones((3, 3, 1, 1)), None, 2, (4, 5), ConversionSettings("exact"))
    >>> layer.heads, layer.encoding.values.shape, layer.ring
    (10, (10, 99), ((1, 1), (1, 1)))
    """
    options: dict[str, Any] = (
        {"form": "exact", "uniform_weight": conversion.leak}
        if conversion.kind == "exact"
        else {"form": "limit", "sharpness": conversion.logit}
    )
    layer = conv_to_attention(kernel, bias, patch_size=patch_size, encoding="bias", **options)
    keeps_zeros = border == "zero" and conversion.border == "kept"
    ring = layer.ring if keeps_zeros else ((0, 0), (0, 0))
    token_grid = TokenGrid(grid, ring)
    encoding: Any = layer.encoding
    table = encoding.shift_scores(token_grid.shifts, token_grid.number_of_keys)
    shifts = tuple(map(tuple, token_grid.shifts.tolist()))
    return replace(layer, encoding=BiasEncoding(table, None, shifts), ring=ring)


def transfer(
    phase_one: VisionTransformer,
    settings_two: VisionTransformerSettings,
    conversion: ConversionSettings,
    *,
    rngs: nnx.Rngs,
) -> VisionTransformer:
    """The network of the attention phase that begins where the convolution phase ended.

    Args:
        settings_two: As `phase_two_settings` gives them; rates of dropout and of stochastic depth
            are free, and the projection may be learned after an identity.
        rngs: W_K is drawn from its stream of parameters.

    Returns:
        A network whose arrays are its own: training it leaves `phase_one` as it is.

    Raises:
        ValueError: For networks that do not fit.

    Source: L21 §4.1.

    >>> one = VisionTransformerSettings("convolution", depth=1, width=12, inner=6, patch_size=2)
    >>> given = {"classes": 3, "image_size": (4, 6), "rngs": nnx.Rngs(0)}
    >>> how = ConversionSettings("exact")
    >>> two = transfer(VisionTransformer(one, **given), phase_two_settings(one, how), how, \
rngs=nnx.Rngs(1))
    >>> two(jnp.ones((1, 4, 6, 3))).shape, float(jnp.abs(two.layers[0].mixing.query[...]).max())
    ((1, 3), 0.0)
    """
    _check_settings(phase_one.settings, settings_two, conversion)
    shapes = nnx.eval_shape(
        lambda: VisionTransformer(
            settings_two,
            classes=phase_one.classes,
            image_size=phase_one.image_size,
            rngs=nnx.Rngs(0),
            dtype=phase_one.dtype,
            channels=phase_one.channels,
            backend=phase_one.backend,
        )
    )
    structure, shape_state = nnx.split(shapes)
    convolutions: list[Any] = [layer.mixing for layer in phase_one.layers]
    source: dict[tuple[Any, ...], Any] = dict(nnx.to_flat_state(nnx.state(phase_one, nnx.Param)))
    mixed = [
        _converted_mixing(
            mixing.kernel[...],
            mixing.bias[...],
            rngs.params(),
            settings=phase_one.settings,
            grid=phase_one.tokens,
            conversion=conversion,
        )
        for mixing in convolutions
    ]
    if not all(bool(jnp.isfinite(arrays["output"]).all()) for arrays in mixed):
        raise ValueError(
            "the output maps of a converted layer are not finite: the convolution is not, or is so "
            "large that the sums of the exact kind overflow; look at the first phase's losses"
        )
    filled = []
    for path, shape in nnx.to_flat_state(shape_state):
        if "mixing" in path:
            array = mixed[int(str(path[1]))][str(path[-1])]
        elif path in source:
            array = jnp.array(source[path][...], copy=True)
        else:  # a learned projection begins as the identity, where there was none before
            array = jnp.eye(*shape.shape) if len(shape.shape) == 2 else jnp.zeros(shape.shape)
        filled.append((path, shape.replace(array)))
    return nnx.merge(structure, nnx.from_flat_state(filled))


@partial(jax.jit, static_argnames=("settings", "grid", "conversion"))
def _converted_mixing(
    kernel: Array,
    bias: Array,
    random_key: Array,
    *,
    settings: VisionTransformerSettings,
    grid: tuple[int, int],
    conversion: ConversionSettings,
) -> dict[str, Array]:
    """The parameters of `AttentionMixing` that make it compute a convolution.

    Args:
        settings: Of the convolution phase.
    """
    layer: Any = convert_layer(
        kernel, bias, settings.patch_size, grid, conversion, border=settings.border
    )
    heads, width, dtype = layer.heads, layer.output.shape[1], kernel.dtype
    maps = (heads, width, width)
    noise = jax.random.normal(random_key, maps, dtype) if conversion.content == "key" else None
    return {
        "query": jnp.zeros(maps, dtype),
        "key": jnp.zeros(maps, dtype) if noise is None else DEVIATION * noise,
        "value": jnp.tile(jnp.eye(width, dtype=dtype), (heads, 1, 1)),
        "output": layer.output,
        **{f"{name}_bias": jnp.zeros(maps[:2], dtype) for name in ("query", "key", "value")},
        "bias": layer.bias,
        "position_bias": layer.encoding.values,
    }


def _check_settings(
    one: VisionTransformerSettings,
    two: VisionTransformerSettings,
    conversion: ConversionSettings,
) -> None:
    """Refuse phases of which the second cannot go on where the first ended."""
    if one.mixing != "convolution" or one.position != "relative":
        raise ValueError(
            f"the first phase has mixing={one.mixing!r} and position={one.position!r}, but "
            "expected 'convolution' and 'relative': convolutions need no positions added"
        )
    free = {name: getattr(two, name) for name in FREE}
    changed = changed_fields(two, replace(phase_two_settings(one, conversion), **free))
    if changed:
        raise ValueError(
            f"settings_two has another {', '.join(changed)} than phase_two_settings(settings_one, "
            f"conversion), but expected that with other {', '.join(FREE)} at most: every head "
            "holds a whole token (d_H ≥ d of Theorem 1)"
        )
    if one.projection == "learned" and two.projection == "identity":
        raise ValueError(
            "settings_two.projection='identity', but the first phase has learned one; take "
            "projection='learned'"
        )
