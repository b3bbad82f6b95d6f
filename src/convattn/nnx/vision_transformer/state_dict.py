"""A `VisionTransformer` of ours as a state dict by timm's names, and back.

With rotary positions it is timm's `Eva` with `attn_type="rope"` and without a class token.
"""

from collections.abc import Mapping
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from flax import nnx
from jax import Array

from convattn.nnx.layers.compute import wide_dtype
from convattn.nnx.vision_transformer.model import VisionTransformer

ATTENTION = ("query", "key", "value")


def state_dict(model: VisionTransformer) -> dict[str, np.ndarray]:
    """Its parameters as timm's `vision_transformer` names and lays them out.

    Raises:
        ValueError: For a model with convolutions, patches that are tokens as they are, or a table
            of relative positions, which timm's does not have.

    >>> from flax import nnx
    >>> from convattn.nnx.vision_transformer.settings import VisionTransformerSettings
    >>> settings = VisionTransformerSettings(
    ...     depth=1, width=12, inner=6, heads=2, head_width=6, patch_size=4, projection="learned",
    ...     position="absolute")
    >>> model = VisionTransformer(settings, classes=10, image_size=(8, 8), rngs=nnx.Rngs(0))
    >>> arrays = state_dict(model)
    >>> arrays["pos_embed"].shape, arrays["blocks.0.attn.qkv.weight"].shape
    ((1, 4, 12), (36, 12))
    """
    _require(model)
    return {name: np.asarray(array) for name, array in _arrays(model).items()}


def load_state_dict(model: VisionTransformer, arrays: Mapping[str, np.ndarray]) -> None:
    """Put the parameters of a state dict into a model, in place: in float32, or float64 where it
    computes in that.

    A state dict has each entry of the parameters once, so the map to it is undone by its transpose.

    Raises:
        ValueError: As `state_dict`; for names that are missing or unexpected, and other shapes.
    """
    _require(model)
    expected = _arrays(model)
    problems = [f"{name} is missing" for name in expected if name not in arrays]
    problems += [f"{name} is unexpected" for name in arrays if name not in expected]
    problems += [
        f"{name} has shape {np.shape(arrays[name])}, expected {array.shape}"
        for name, array in expected.items()
        if name in arrays and np.shape(arrays[name]) != array.shape
    ]
    if problems:
        raise ValueError("the parameters are not those of this model: " + "; ".join(problems))
    wide = wide_dtype(model.dtype)
    graph, state = nnx.split(model)
    shapes = jax.tree.map(lambda leaf: jax.ShapeDtypeStruct(leaf.shape, wide), state)
    parameters = {name: jnp.asarray(arrays[name], wide) for name in expected}
    laid_out = jax.linear_transpose(lambda state: _arrays(nnx.merge(graph, state)), shapes)
    nnx.update(model, laid_out(parameters)[0])


def _require(model: VisionTransformer) -> None:
    settings = model.settings
    kinds = settings.mixing, settings.projection
    if kinds != ("attention", "learned") or settings.position == "relative":
        raise ValueError(
            f"the model has mixing={settings.mixing!r}, projection={settings.projection!r} and "
            f"position={settings.position!r}, but expected 'attention', 'learned' and 'absolute' "
            "or 'rotary', as timm's vision transformers have"
        )


def _arrays(model: Any) -> dict[str, Array]:
    settings = model.settings
    arrays: dict[str, Array] = {}
    kernel = model.projection.kernel[...]
    sides = (settings.patch_size, settings.patch_size, model.channels, settings.width)
    arrays["patch_embed.proj.weight"] = kernel.reshape(sides).transpose(3, 2, 0, 1)
    arrays["patch_embed.proj.bias"] = model.projection.bias[...]
    if model.class_token is not None:
        arrays["cls_token"] = model.class_token[...][None, None]
    if model.positions is not None:
        arrays["pos_embed"] = model.positions[...][None]
    for number, layer in enumerate(model.layers):
        for name, array in _block(layer).items():
            arrays[f"blocks.{number}.{name}"] = array
    arrays |= _norm("norm", model.norm) | _linear("head", model.classifier)
    return arrays


def _norm(name: str, norm: Any) -> dict[str, Array]:
    return {
        f"{name}.weight": norm.scale[...],
        f"{name}.bias": norm.bias[...],
    }


def _linear(name: str, linear: Any) -> dict[str, Array]:
    kernel, bias = linear.kernel[...], linear.bias[...]
    return {f"{name}.weight": kernel.T, f"{name}.bias": bias}


def _block(layer: Any) -> dict[str, Array]:
    mixing = layer.mixing
    weights = [getattr(mixing, name)[...] for name in ATTENTION]
    flat = [array.swapaxes(1, 2).reshape(-1, array.shape[1]) for array in weights]
    biases = [getattr(mixing, f"{name}_bias")[...].ravel() for name in ATTENTION]
    output = mixing.output[...]
    return {
        **_norm("norm1", layer.mixing_norm),
        "attn.qkv.weight": jnp.concatenate(flat),
        "attn.qkv.bias": jnp.concatenate(biases),
        "attn.proj.weight": output.reshape(-1, output.shape[-1]).T,
        "attn.proj.bias": mixing.bias[...],
        **_norm("norm2", layer.inner_norm),
        **_linear("mlp.fc1", layer.inner),
        **_linear("mlp.fc2", layer.outer),
    }
