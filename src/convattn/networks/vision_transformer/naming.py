"""How libraries call the tensors of a vision transformer, and in which order they have the axes.

One entry of `NAMINGS` is one library's kind of network. A tensor's axes are a string with a letter
for each: w width, c channels of the image, p side of a patch, a features of all heads together, t
three times these, h heads, d features of a head, f features inside the MLP, r and k rows and
columns of a table, 1 an axis of length one, * any.
"""

import re
from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass, field, replace

from convattn.networks.weights.files import WeightsFile

TOKENS = ("class", "distillation", "registers")
AXES = {  # of our parts, as PyTorch has them
    **{"patch.weight": "wcpp", "patch.bias": "w", "pre_norm.weight": "w", "pre_norm.bias": "w"},
    **dict.fromkeys((*TOKENS, "positions"), "1*w"),
    **{"shared_table": "**", "norm1.weight": "w", "norm1.bias": "w"},
    **{"query.weight": "aw", "query.bias": "a", "key.weight": "aw", "key.bias": "a"},
    **{"value.weight": "aw", "value.bias": "a", "qkv.weight": "tw", "qkv.bias": "t"},
    **{"query_bias": "a", "value_bias": "a", "output.weight": "wa", "output.bias": "w"},
    **{"norm2.weight": "w", "norm2.bias": "w", "fc1.weight": "fw", "fc1.bias": "f"},
    **{"fc2.weight": "wf", "fc2.bias": "w", "scale1": "w", "scale2": "w", "table": "rk"},
}
OPTIONAL = frozenset(
    [
        *(*TOKENS, "positions", "shared_table", "scale1", "scale2", "table"),
        *("query.bias", "key.bias", "value.bias", "qkv.bias", "query_bias", "value_bias"),
    ]
)


@dataclass(frozen=True)
class Naming:
    """How one library calls the parts of a network.

    Attributes:
        name: What messages call it.
        block: What stands before the tensors of block {}.
        epsilon: Of LayerNorm.
        stem: By our names, those of the tensors outside the blocks.
        parts: By our names, those of the tensors of a block; where there are several, separated by
            bars, the first that some block has.
        activation: Of the MLP, a name in `state_dicts.ACTIVATIONS`.
        axes: Those of the tensors that do not have them as in `AXES`.
        late_registers: Whether registers come in after the positions have been added, which then
            are those of the other tokens.
    """

    name: str
    block: str
    epsilon: float
    stem: Mapping[str, str]
    parts: Mapping[str, str]
    activation: str = "gelu"
    axes: Mapping[str, str] = field(default_factory=dict)
    late_registers: bool = False


def _modules(names: Mapping[str, str], weight: str = ".weight", bias: str = ".bias") -> dict:
    """The weight and the bias of modules, by our names."""
    return {
        f"{part}.{kind}": "|".join(f"{name}{end}" for name in module.split("|"))
        for part, module in names.items()
        for kind, end in (("weight", weight), ("bias", bias))
    }


TIMM = Naming(
    "timm",
    "blocks.{}.",
    1e-6,
    {
        **_modules({"patch": "patch_embed.proj"}),
        **{"class": "cls_token", "distillation": "dist_token", "registers": "reg_token"},
        **{"positions": "pos_embed", "shared_table": "rel_pos_bias.relative_position_bias_table"},
    },
    {
        **_modules({"norm1": "norm1", "qkv": "attn.qkv", "output": "attn.proj"}),
        **_modules({"norm2": "norm2", "fc1": "mlp.fc1", "fc2": "mlp.fc2"}),
        **{"query_bias": "attn.q_bias", "value_bias": "attn.v_bias"},
        **{"scale1": "ls1.gamma|gamma_1", "scale2": "ls2.gamma|gamma_2"},
        "table": "attn.relative_position_bias_table",
    },
)
TABLE = "relative_position_bias.relative_position_bias_table"
HUGGING_FACE = Naming(  # its files
    "Hugging Face",
    "encoder.layer.{}.",
    1e-12,
    {
        **_modules({"patch": "embeddings.patch_embeddings.projection"}),
        **{"class": "embeddings.cls_token", "distillation": "embeddings.distillation_token"},
        "registers": "embeddings.register_tokens",
        **{"positions": "embeddings.position_embeddings", "shared_table": f"encoder.{TABLE}"},
    },
    {
        **_modules({part: f"attention.attention.{part}" for part in ("query", "key", "value")}),
        **_modules({"norm1": "layernorm_before", "output": "attention.output.dense"}),
        **_modules({"norm2": "layernorm_after", "fc1": "intermediate.dense"}),
        **_modules({"fc2": "output.dense"}),
        **{"scale1": "lambda_1", "scale2": "lambda_2"},
        "table": f"attention.attention.{TABLE}|{TABLE}",
    },
)
_IN_MEMORY = {part: f"attention.{part[0]}_proj" for part in ("query", "key", "value")}
SIGLIP = Naming(
    "Hugging Face's SigLIP",
    "encoder.layers.{}.",
    1e-6,
    {
        **_modules({"patch": "embeddings.patch_embedding"}),
        "positions": "embeddings.position_embedding.weight",
    },
    {
        **_modules({part: f"self_attn.{part[0]}_proj" for part in ("query", "key", "value")}),
        **_modules({"norm1": "layer_norm1", "output": "self_attn.out_proj"}),
        **_modules({"norm2": "layer_norm2", "fc1": "mlp.fc1", "fc2": "mlp.fc2"}),
    },
    "gelu_tanh",
    {"positions": "*w"},
)
_GOOGLE_AXES = {
    **{f"{part}.weight": "whd" for part in ("query", "key", "value")},
    **{f"{part}.bias": "hd" for part in ("query", "key", "value")},
    **{"output.weight": "hdw", "fc1.weight": "wf", "fc2.weight": "fw", "patch.weight": "ppcw"},
}

NAMINGS = (
    TIMM,
    replace(
        TIMM,
        name="timm's CLIP",
        epsilon=1e-5,
        stem={name: TIMM.stem[name] for name in ("patch.weight", "class", "positions")}
        | _modules({"pre_norm": "norm_pre"}),
    ),
    HUGGING_FACE,
    replace(  # the same in memory, since transformers 5
        HUGGING_FACE,
        block="layers.{}.",
        parts={
            **HUGGING_FACE.parts,
            **_modules({**_IN_MEMORY, "output": "attention.o_proj"}),
            **_modules({"fc1": "mlp.fc1", "fc2": "mlp.fc2"}),
        },
    ),
    replace(
        HUGGING_FACE,
        name="Hugging Face's DINOv2",
        epsilon=1e-6,
        parts={
            **_modules({p: f"attention.attention.{p}|{name}" for p, name in _IN_MEMORY.items()}),
            **_modules({"output": "attention.output.dense|attention.o_proj", "norm1": "norm1"}),
            **_modules({"norm2": "norm2", "fc1": "mlp.fc1", "fc2": "mlp.fc2"}),
            **{"scale1": "layer_scale1.lambda1", "scale2": "layer_scale2.lambda1"},
        },
        late_registers=True,
    ),
    SIGLIP,
    replace(
        SIGLIP,
        name="Hugging Face's CLIP",
        epsilon=1e-5,
        stem={
            **{part: SIGLIP.stem[part] for part in ("patch.weight", "positions")},
            **_modules({"pre_norm": "pre_layrnorm"}),
            "class": "embeddings.class_embedding",
        },
        activation="quick_gelu",
        axes={"positions": "*w", "class": "w"},
    ),
    Naming(
        "torchvision",
        "encoder.layers.encoder_layer_{}.",
        1e-6,
        {
            **_modules({"patch": "conv_proj"}),
            **{"class": "class_token", "positions": "encoder.pos_embedding"},
        },
        {
            **_modules({"qkv": "self_attention.in_proj"}, "_weight", "_bias"),
            **_modules({"norm1": "ln_1", "output": "self_attention.out_proj", "norm2": "ln_2"}),
            **_modules({"fc1": "mlp.0|mlp.linear_1", "fc2": "mlp.3|mlp.linear_2"}),
        },
    ),
    Naming(
        "Google",
        "Transformer/encoderblock_{}/",
        1e-6,
        {
            **_modules({"patch": "embedding"}, "/kernel", "/bias"),
            **{"class": "cls", "positions": "Transformer/posembed_input/pos_embedding"},
        },
        {
            **_modules(  # the first as in the published files, numbered along all kinds
                {"norm1": "LayerNorm_0", "norm2": "LayerNorm_2|LayerNorm_1"}, "/scale", "/bias"
            ),
            **_modules(
                {
                    part: f"MultiHeadDotProductAttention_1/{n}|MultiHeadDotProductAttention_0/{n}"
                    for part, n in zip(
                        ("query", "key", "value", "output"),
                        ("query", "key", "value", "out"),
                        strict=True,
                    )
                }
                | {
                    part: f"MlpBlock_3/Dense_{number}|MlpBlock_0/Dense_{number}"
                    for number, part in enumerate(("fc1", "fc2"))
                },
                "/kernel",
                "/bias",
            ),
        },
        "gelu_tanh",
        _GOOGLE_AXES,
    ),
)


def _known() -> dict[str, list[tuple[int, bool]]]:
    """Every name, of block 0 where it is of a block: the numbers of the namings that have it."""
    known: dict[str, list[tuple[int, bool]]] = {}
    for number, naming in enumerate(NAMINGS):
        for name in naming.stem.values():
            known.setdefault(name, []).append((number, False))
        for several in naming.parts.values():
            for name in several.split("|"):
                known.setdefault(naming.block.format(0) + name, []).append((number, True))
    return known


KNOWN = _known()
_DEEPEST = max(len(re.split("[./]", name)) for name in KNOWN)


def find_naming(file: WeightsFile) -> tuple[Naming, str]:
    """The naming that has most of the names, and what stands before each of them."""
    hits: Counter[tuple[str, int]] = Counter()
    in_blocks: dict[tuple[str, int], None] = {}
    for name in file.arrays:
        starts = [0, *(match.end() for match in re.finditer("[./]", name))]
        for start in starts[-_DEEPEST:]:
            for number, is_block in KNOWN.get(name[start:], ()):
                hits[name[:start], number] += 1
                if is_block:
                    in_blocks[name[:start], number] = None
    if in_blocks:
        above, number = min(in_blocks, key=lambda key: (-hits[key], key[1]))
        return NAMINGS[number], above
    blocks = {naming.block.format(0): naming.name for naming in reversed(NAMINGS)}
    known = ", ".join(f"{block}… ({name})" for block, name in reversed(blocks.items()))
    raise ValueError(
        f"{file.name} is no state dict of a vision transformer: expected blocks called {known} or "
        f"layers.0.blocks.0.… (Swin), but {file.listing('blocks.0.attn.qkv.weight', 3)}"
    )
