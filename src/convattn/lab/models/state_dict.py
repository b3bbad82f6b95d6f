"""A `VisionTransformer` of ours as a state dict by timm's names, and back.

With rotary positions it is timm's `Eva` with `attn_type="rope"` and without a class token.
"""

from collections.abc import Mapping
from typing import Any

import jax.numpy as jnp
import numpy as np

from convattn.lab.models.vision_transformer import VisionTransformer

ATTENTION = ("query", "key", "value")


def state_dict(model: VisionTransformer) -> dict[str, np.ndarray]:
    """Its parameters as timm's `vision_transformer` names and lays them out, in float32.

    Raises:
        ValueError: For a model with convolutions, patches that are tokens as they are, or a table
            of relative positions, which timm's does not have.

    >>> from flax import nnx
    >>> from convattn.lab.models.settings import VisionTransformerSettings
    >>> settings = VisionTransformerSettings(
    ...     depth=1, width=12, inner=6, heads=2, head_width=6, patch_size=4, projection="learned",
    ...     position="absolute")
    >>> model = VisionTransformer(settings, classes=10, image_size=(8, 8), rngs=nnx.Rngs(0))
    >>> arrays = state_dict(model)
    >>> arrays["pos_embed"].shape, arrays["blocks.0.attn.qkv.weight"].shape
    ((1, 4, 12), (36, 12))
    """
    _require(model)
    return {name: np.asarray(array, np.float32) for name, array in _arrays(model).items()}


def load_state_dict(model: VisionTransformer, arrays: Mapping[str, np.ndarray]) -> None:
    """Put the parameters of a state dict into a model, in place.

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
    _put(model, {name: jnp.asarray(arrays[name], jnp.float32) for name in expected})


def _require(model: VisionTransformer) -> None:
    settings = model.settings
    kinds = settings.mixing, settings.projection
    if kinds != ("attention", "learned") or settings.position == "relative":
        raise ValueError(
            f"the model has mixing={settings.mixing!r}, projection={settings.projection!r} and "
            f"position={settings.position!r}, but expected 'attention', 'learned' and 'absolute' "
            "or 'rotary', as timm's vision transformers have"
        )


def _arrays(model: Any) -> dict[str, np.ndarray]:
    settings = model.settings
    found: dict[str, np.ndarray] = {}
    kernel = np.asarray(model.projection.kernel[...])
    sides = (settings.patch_size, settings.patch_size, model.channels, settings.width)
    found["patch_embed.proj.weight"] = kernel.reshape(sides).transpose(3, 2, 0, 1)
    found["patch_embed.proj.bias"] = np.asarray(model.projection.bias[...])
    if model.class_token is not None:
        found["cls_token"] = np.asarray(model.class_token[...])[None, None]
    if model.positions is not None:
        found["pos_embed"] = np.asarray(model.positions[...])[None]
    for number, layer in enumerate(model.layers):
        for name, array in _block(layer).items():
            found[f"blocks.{number}.{name}"] = array
    found |= _norm("norm", model.norm) | _linear("head", model.classifier)
    return found


def _norm(name: str, norm: Any) -> dict[str, np.ndarray]:
    return {
        f"{name}.weight": np.asarray(norm.scale[...]),
        f"{name}.bias": np.asarray(norm.bias[...]),
    }


def _linear(name: str, linear: Any) -> dict[str, np.ndarray]:
    kernel, bias = np.asarray(linear.kernel[...]), np.asarray(linear.bias[...])
    return {f"{name}.weight": kernel.T, f"{name}.bias": bias}


def _block(layer: Any) -> dict[str, np.ndarray]:
    mixing = layer.mixing
    weights = [np.asarray(getattr(mixing, part)[...]) for part in ATTENTION]
    flat = [array.swapaxes(1, 2).reshape(-1, array.shape[1]) for array in weights]
    biases = [np.asarray(getattr(mixing, f"{part}_bias")[...]).ravel() for part in ATTENTION]
    output = np.asarray(mixing.output[...])
    return {
        **_norm("norm1", layer.mixing_norm),
        "attn.qkv.weight": np.concatenate(flat),
        "attn.qkv.bias": np.concatenate(biases),
        "attn.proj.weight": output.reshape(-1, output.shape[-1]).T,
        "attn.proj.bias": np.asarray(mixing.bias[...]),
        **_norm("norm2", layer.inner_norm),
        **_linear("mlp.fc1", layer.inner),
        **_linear("mlp.fc2", layer.outer),
    }


def _put(model: Any, arrays: Mapping[str, Any]) -> None:
    kernel = arrays["patch_embed.proj.weight"].transpose(2, 3, 1, 0)
    model.projection.kernel[...] = kernel.reshape(-1, kernel.shape[-1])
    model.projection.bias[...] = arrays["patch_embed.proj.bias"]
    if model.class_token is not None:
        model.class_token[...] = arrays["cls_token"][0, 0]
    if model.positions is not None:
        model.positions[...] = arrays["pos_embed"][0]
    for number, layer in enumerate(model.layers):
        own = {
            name.removeprefix(f"blocks.{number}."): array
            for name, array in arrays.items()
            if name.startswith(f"blocks.{number}.")
        }
        mixing = layer.mixing
        heads, width, inner = mixing.query.shape
        weights = own["attn.qkv.weight"].reshape(3, heads, inner, width).swapaxes(2, 3)
        biases = own["attn.qkv.bias"].reshape(3, heads, inner)
        for part, weight, bias in zip(ATTENTION, weights, biases, strict=True):
            getattr(mixing, part)[...] = weight
            getattr(mixing, f"{part}_bias")[...] = bias
        mixing.output[...] = own["attn.proj.weight"].T.reshape(heads, inner, width)
        mixing.bias[...] = own["attn.proj.bias"]
        for name, norm in (("norm1", layer.mixing_norm), ("norm2", layer.inner_norm)):
            norm.scale[...], norm.bias[...] = own[f"{name}.weight"], own[f"{name}.bias"]
        for name, linear in (("mlp.fc1", layer.inner), ("mlp.fc2", layer.outer)):
            linear.kernel[...], linear.bias[...] = own[f"{name}.weight"].T, own[f"{name}.bias"]
    model.norm.scale[...], model.norm.bias[...] = arrays["norm.weight"], arrays["norm.bias"]
    model.classifier.kernel[...] = arrays["head.weight"].T
    model.classifier.bias[...] = arrays["head.bias"]
