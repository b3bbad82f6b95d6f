"""What arrays stand for: layers, networks, state dicts and vision transformers."""

import functools
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np

from fuzz.array_readers import saved_by, weights
from fuzz.reader import same


def read_layer(content: bytes, folder: Path) -> None:
    """A stored layer; what was taken is written and read again."""
    from convattn.networks.weights.stored_layer import (
        encode,
        layer_arrays,
        layer_metadata,
        restore_layer,
    )

    layer = restore_layer(weights(content))
    again = encode(layer_arrays(layer), layer_metadata(layer), ".safetensors")
    same(layer_metadata(restore_layer(weights(again))), layer_metadata(layer), "written again")


def layer_seeds() -> list[bytes]:
    """Layers of every encoding, with padding, content and two of them."""
    import jax.numpy as jnp

    import convattn as ca
    from convattn.networks.weights.stored_layer import encode, layer_arrays, layer_metadata

    kernel = jnp.asarray(np.random.default_rng(0).normal(size=(3, 3, 1, 1)), jnp.float32)
    layers: list[Any] = [
        ca.conv_to_attention(kernel),
        ca.conv_to_attention(kernel, patch_size=2, stride=2),
        ca.conv_to_attention(kernel, padding="EDGE"),
        ca.conv_to_attention(kernel[0], exact=False),
        ca.two_layers(kernel),
        *(
            ca.conv_to_attention(kernel, encoding=encoding, exact=False)
            for encoding in ("quadratic", "enumerated", "polygon", "rotary")
        ),
    ]
    held = [(layer_arrays(layer), layer_metadata(layer)) for layer in layers]
    return [encode(*each, suffix) for each, suffix in zip(held, [".safetensors"] * 9, strict=True)]


def read_network(content: bytes, folder: Path) -> None:
    """A network of steps."""
    from convattn.networks.network_file import restore_network

    restore_network(weights(content))


def network_seeds() -> list[bytes]:
    """A small converted network, and steps without layers."""
    import jax.numpy as jnp
    from networks.small import small_network

    from convattn.networks.network_file import network_bytes
    from convattn.networks.steps import Linear, Mean, Relu

    plain = (Relu(), Mean(), Linear(jnp.ones((1, 2)), jnp.zeros(2)))
    return [network_bytes(plain), network_bytes(small_network().attention)]


def read_model(content: bytes, folder: Path) -> None:
    """A network of one of the architectures, made small."""
    from convattn.nnx.network_file import restore_model

    _small_architectures()
    restore_model(weights(content))


@functools.cache
def _small_architectures() -> None:
    from convattn.nnx import architectures

    small = {"small": functools.partial(architectures.ConvNeXt, (1, 1), (4, 8))}
    architectures.ARCHITECTURES.update(small)


def model_seeds() -> list[bytes]:
    """A small ConvNeXt that was converted."""
    import jax.numpy as jnp
    from flax import nnx

    from convattn.nnx import to_attention
    from convattn.nnx.architectures import ARCHITECTURES
    from convattn.nnx.network_file import fold_batch_norms, model_bytes

    _small_architectures()
    model = ARCHITECTURES["small"](classes=2, rngs=nnx.Rngs(0))
    model.eval()
    folded = fold_batch_norms(model)
    made, _ = to_attention(folded, jnp.zeros((1, 16, 16, 3)))
    return [model_bytes(made, "small", 2, exact=True, head_dim=None)]


def read_state_dict(content: bytes, folder: Path) -> None:
    """A state dict of one of the architectures, by the names of torchvision and timm."""
    from convattn.nnx.checkpoint import from_state_dict

    _small_architectures()
    file = weights(content)
    from_state_dict({name: file[name] for name in file.arrays}, "small")


def state_dict_seeds() -> list[bytes]:
    """A small ConvNeXt."""
    from flax import nnx

    from convattn.networks.weights.formats import write_safetensors
    from convattn.nnx.architectures import ARCHITECTURES
    from convattn.nnx.checkpoint import tensors

    _small_architectures()
    model = nnx.eval_shape(lambda: ARCHITECTURES["small"](classes=3, rngs=nnx.Rngs(0)))
    arrays = {name: np.ones(tensor.shape, np.float32) for name, tensor in tensors(model)}
    return [write_safetensors(arrays, {}), saved_by(np.savez_compressed, **arrays)]


def read_diagnosed(content: bytes, folder: Path) -> None:
    """What `convattn diagnose` reads, measured on an image of zeros."""
    from convattn.networks.diagnosis.diagnose import diagnose

    with np.errstate(all="ignore"):
        diagnose(weights(content), kernel_size=3)


def diagnosed_seeds() -> list[bytes]:
    """Vision transformers by the names of several libraries, and attention probabilities."""
    from networks.diagnosis.library_models import stored_dict
    from networks.diagnosis.small_transformers import hugging_face, timm_dict

    from convattn.networks.weights.formats import write_safetensors

    def saved(arrays: Mapping[str, np.ndarray]) -> bytes:
        return write_safetensors({k: a.astype(np.float32) for k, a in arrays.items()}, {})

    square = timm_dict(1)
    square["pos_embed"] = square["pos_embed"][:, :5]
    beit = timm_dict(1, beit=True)
    rows = np.random.default_rng(3).dirichlet(np.ones(4), size=(2, 3, 4)).astype(np.float32)
    libraries = [stored_dict(kind) for kind in ("Google", "Hugging Face DINOv2 with registers")]
    networks = [square, hugging_face(square), beit, *libraries]
    return [*map(saved, networks), saved_by(np.save, rows)]
