"""How timm and Hugging Face call the tensors of a vision transformer."""

import re
from collections.abc import Mapping
from dataclasses import dataclass

from convattn.networks.weights.files import WeightsFile


@dataclass(frozen=True)
class Naming:
    """How one library calls the parts of a network.

    Attributes:
        name: What messages call it.
        root: The blocks are `root.0`, `root.1` and so on.
        epsilon: Of LayerNorm.
        stem: By our names, those of the tensors outside the blocks.
        parts: By our names, the modules and tensors of a block; where there are several, the first
            that some block has.
    """

    name: str
    root: str
    epsilon: float
    stem: Mapping[str, str]
    parts: Mapping[str, tuple[str, ...]]


def _hugging_face(
    name: str, root: str, attention: str, output: str, mlp: tuple[str, str]
) -> Naming:
    """Hugging Face's names, those of its files and those of transformers 5 in memory."""
    table = "relative_position_bias.relative_position_bias_table"
    query, key, value = (attention.format(part, part[0]) for part in ("query", "key", "value"))
    stem = {
        "patch": "embeddings.patch_embeddings.projection",
        "class": "embeddings.cls_token",
        "distillation": "embeddings.distillation_token",
        "registers": "embeddings.register_tokens",
        "positions": "embeddings.position_embeddings",
        "table": f"encoder.{table}",
    }
    parts = {
        **{"norm1": ("layernorm_before",), "query": (query,), "key": (key,), "value": (value,)},
        **{"output": (output,), "norm2": ("layernorm_after",), "fc1": mlp[:1], "fc2": mlp[1:]},
        **{"scale1": ("lambda_1",), "scale2": ("lambda_2",)},
        "table": (f"attention.attention.{table}", table),
    }
    return Naming(name, root, 1e-12, stem, parts)


NAMINGS = (
    Naming(
        "timm",
        "blocks",
        1e-6,
        {
            **{"patch": "patch_embed.proj", "class": "cls_token", "distillation": "dist_token"},
            **{"registers": "reg_token", "positions": "pos_embed"},
            "table": "rel_pos_bias.relative_position_bias_table",
        },
        {
            **{"norm1": ("norm1",), "qkv": ("attn.qkv",), "output": ("attn.proj",)},
            **{"query_bias": ("attn.q_bias",), "value_bias": ("attn.v_bias",)},
            **{"norm2": ("norm2",), "fc1": ("mlp.fc1",), "fc2": ("mlp.fc2",)},
            **{"scale1": ("ls1.gamma", "gamma_1"), "scale2": ("ls2.gamma", "gamma_2")},
            "table": ("attn.relative_position_bias_table",),
        },
    ),
    _hugging_face(
        "Hugging Face",
        "encoder.layer",
        "attention.attention.{0}",
        "attention.output.dense",
        ("intermediate.dense", "output.dense"),
    ),
    _hugging_face(
        "Hugging Face", "layers", "attention.{1}_proj", "attention.o_proj", ("mlp.fc1", "mlp.fc2")
    ),
)


def find_naming(file: WeightsFile) -> tuple[Naming, str]:
    """Whose names the tensors have, and what stands before the numbers of the blocks.

    Raises:
        ValueError: If there are no blocks.
    """
    for naming in NAMINGS:
        for name in file.arrays:
            found = re.match(rf"(?:\w+\.)*?{re.escape(naming.root)}\.(?=\d+\.)", name)
            if found:
                return naming, found[0]
    raise ValueError(
        f"{file.name} is no state dict of a vision transformer: expected blocks called "
        "blocks.0.… (timm), encoder.layer.0.… or layers.0.… (Hugging Face), or layers.0.blocks.0.… "
        f"(Swin), but {file.listing('blocks.0.attn.qkv.weight')}"
    )
