"""What arrays stand for: layers, networks, state dicts and vision transformers."""

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
        ca.conv_to_attention(kernel[0], form="limit"),
        ca.conv_to_two_layers(kernel),
        *(
            ca.conv_to_attention(kernel, encoding=encoding, form="limit")
            for encoding in ("quadratic", "enumerated", "polygon", "rotary")
        ),
    ]
    parts = [(layer_arrays(layer), layer_metadata(layer)) for layer in layers]
    return [encode(arrays, metadata, ".safetensors") for arrays, metadata in parts]


def read_network(content: bytes, folder: Path) -> None:
    """A converted network."""
    from convattn.networks.transformation.network_file import restore_network

    restore_network(weights(content))


def network_seeds() -> list[bytes]:
    """A small ResNet that was converted."""
    from networks.small import small_attention, small_images

    from convattn.networks.transformation.network_file import network_bytes

    layers, apply, _ = small_attention()
    return [network_bytes(layers, apply, small_images(1))]


def read_state_dict(content: bytes, folder: Path) -> None:
    """A state dict, its re-parametrised tensors computed."""
    weights(content).tensors()


def state_dict_seeds() -> list[bytes]:
    """A kernel by weight normalisation, one by spectral normalisation, and a masked one."""
    from convattn.networks.weights.formats import write_safetensors

    ones = np.ones((2, 3, 3, 3), np.float32)
    spectral = {
        "b.parametrizations.weight.original": ones,
        "b.parametrizations.weight.0._u": ones[:, 0, 0, 0],
        "b.parametrizations.weight.0._v": ones[0].ravel(),
    }
    arrays = {
        "a.weight_g": ones[:, :1, :1, :1],
        "a.weight_v": ones,
        "c.weight_orig": ones,
        "c.weight_mask": ones,
        "c.bias": ones[:, 0, 0, 0],
        **spectral,
    }
    return [write_safetensors(arrays, {}), saved_by(np.savez_compressed, **arrays)]


def read_diagnosed(content: bytes, folder: Path) -> None:
    """What `convattn diagnose` reads, measured on an image of zeros."""
    from convattn.diagnosis.models import diagnose

    with np.errstate(all="ignore"):
        diagnose(weights(content), kernel_size=3)


def diagnosed_seeds() -> list[bytes]:
    """Vision transformers by the names of several libraries, and attention probabilities."""
    from diagnosis.library_models import stored_dict
    from diagnosis.small_transformers import hugging_face, timm_dict

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
