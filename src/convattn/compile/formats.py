"""State dicts by the names of libraries, and what builds their models."""

from collections.abc import Callable, Mapping
from typing import Any

import numpy as np

from convattn.compile.plan import Plan

EPSILON = {"timm": 1e-6, "transformers": 1e-12, "transformers4": 1e-12}  # the libraries' defaults
Arrays = Mapping[str, np.ndarray]


def named_arrays(arrays: Arrays, name: str) -> dict[str, np.ndarray]:
    """The arrays of timm's names by those of a library.

    Args:
        name: A key of `EPSILON`: `"transformers"` for the names of version 5, `"transformers4"` for
            those before, which files on Hugging Face's hub have.
    """
    return dict(arrays) if name == "timm" else _NAMINGS[name](arrays)


def constructor_arguments(plan: Plan, epsilon: float, name: str) -> dict[str, Any]:
    """What the library's own class is built with, in evaluation.

    For timm, `timm.models.VisionTransformer(**arguments, norm_layer=partial(LayerNorm, eps=ε))`;
    its default ε, 1e-6, needs no `norm_layer`. For transformers, `ViTConfig(**arguments)`.
    """
    image = plan.network.image
    lattice = image.lattice
    assert lattice is not None
    sides = plan.network.image_size
    size: Any = sides[0] if sides[0] == sides[1] else list(sides)
    patch: Any = lattice.patch[0] if lattice.patch[0] == lattice.patch[1] else list(lattice.patch)
    if name == "timm":
        return {
            "img_size": size,
            "patch_size": patch,
            "in_chans": image.channels,
            "num_classes": plan.network.logits.channels,
            "embed_dim": plan.width,
            "depth": len(plan.blocks),
            "num_heads": plan.num_heads,
            "mlp_ratio": plan.hidden // plan.width,
        }
    return {
        "image_size": size,
        "patch_size": patch,
        "num_channels": image.channels,
        "num_labels": plan.network.logits.channels,
        "hidden_size": plan.width,
        "num_hidden_layers": len(plan.blocks),
        "num_attention_heads": plan.num_heads,
        "intermediate_size": plan.hidden,
        "layer_norm_eps": epsilon,
        "hidden_act": "gelu",
        "qkv_bias": True,
        "hidden_dropout_prob": 0.0,
        "attention_probs_dropout_prob": 0.0,
    }


def _renamed(
    arrays: Arrays, block: str, names: Mapping[str, str], split: tuple[str, str, str]
) -> dict[str, np.ndarray]:
    """With other names, and queries, keys and values apart."""
    outer = {
        "cls_token": "vit.embeddings.cls_token",
        "pos_embed": "vit.embeddings.position_embeddings",
        "patch_embed.proj": "vit.embeddings.patch_embeddings.projection",
        "norm": "vit.layernorm",
        "head": "classifier",
    }
    renamed: dict[str, np.ndarray] = {}
    for name, array in arrays.items():
        if not name.startswith("blocks."):
            stem, _, last = name.rpartition(".")
            key = f"{outer[stem]}.{last}" if last in ("weight", "bias") else outer[name]
            renamed[key] = array
            continue
        _, number, rest = name.split(".", 2)
        stem, _, last = rest.rpartition(".")
        if stem == "attn.qkv":
            for part, own in zip(split, np.split(array, 3), strict=True):
                renamed[f"{block.format(number)}.{part}.{last}"] = own
        else:
            renamed[f"{block.format(number)}.{names[stem]}.{last}"] = array
    return renamed


def _transformers(arrays: Arrays) -> dict[str, np.ndarray]:
    names = {
        "norm1": "layernorm_before",
        "norm2": "layernorm_after",
        "attn.proj": "attention.o_proj",
        "mlp.fc1": "mlp.fc1",
        "mlp.fc2": "mlp.fc2",
    }
    split = ("attention.q_proj", "attention.k_proj", "attention.v_proj")
    return _renamed(arrays, "vit.layers.{}", names, split)


def _transformers4(arrays: Arrays) -> dict[str, np.ndarray]:
    names = {
        "norm1": "layernorm_before",
        "norm2": "layernorm_after",
        "attn.proj": "attention.output.dense",
        "mlp.fc1": "intermediate.dense",
        "mlp.fc2": "output.dense",
    }
    own = "attention.attention"
    split = (f"{own}.query", f"{own}.key", f"{own}.value")
    return _renamed(arrays, "vit.encoder.layer.{}", names, split)


_NAMINGS: dict[str, Callable[[Arrays], dict[str, np.ndarray]]] = {
    "transformers": _transformers,
    "transformers4": _transformers4,
}
