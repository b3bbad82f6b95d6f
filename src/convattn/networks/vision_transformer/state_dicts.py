"""Vision transformers read from state dicts, by the names of several libraries (`naming.py`).

Read are networks of pre-norm blocks, x + s₁·Attention(LN(x)), then x + s₂·MLP(LN(x)), with or
without layer scale s: ViT, DeiT and DINOv2 (class, distillation and register tokens, absolute
positions), SigLIP (no such tokens), CLIP (a LayerNorm before the blocks) and BEiT (a table of
relative positions in each block or one for all); of Swin the attention alone. Linear maps are
PyTorch's `[out, in]`. What stands behind the last block is not read.

Three things are in no tensor: the heads, but for tables and Google's kernels; the ε of LayerNorm;
and the activation of the MLP. `naming.py` has each library's. The files of `convattn compile` have
heads and ε in their metadata.
"""

import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from scipy.special import erf, expit

from convattn.files import parse_json
from convattn.networks.vision_transformer.naming import SIGLIP, TIMM, TOKENS, Naming, find_naming
from convattn.networks.vision_transformer.tensors import find_roles, from_file, to_file
from convattn.networks.weights.files import WeightsFile
from convattn.networks.weights.names import unread_network

HEAD_DIM = 64  # of ViT, DeiT and BEiT in every size
ACTIVATIONS: dict[str, Callable[[np.ndarray], np.ndarray]] = {
    "gelu": lambda x: x * (1 + erf(x / np.sqrt(2))) / 2,
    "gelu_tanh": lambda x: x * (1 + np.tanh(np.sqrt(2 / np.pi) * (x + 0.044715 * x**3))) / 2,
    "quick_gelu": lambda x: x * expit(1.702 * x),
}

Block = Mapping[str, np.ndarray]


@dataclass(frozen=True)
class VisionTransformer:
    """The arrays of a network, in float64.

    Attributes:
        naming: Whose names the file had.
        heads: Of every block.
        assumed: Whether the heads were taken to have 64 features, as nothing said their number.
        epsilon: Of LayerNorm.
        patch: `[width, channels, P, P]`.
        patch_bias: `[width]`.
        prefix: `[others, width]`, class, distillation and register tokens.
        positions: `[tokens, width]` or None; of the grid, with or without the others before.
        table: `[rows, heads]` or None, shared by all blocks.
        blocks: By our names, the arrays of each block.
        may_turn: Whether networks with rotary positions beside absolute ones have these names:
            timm's EVA, of layer scale or biases, as in BEiT; its Perception Encoders, as its CLIP;
            PaddleOCR-VL's, which else is Hugging Face's SigLIP.
        activation: Of the MLP, a name in `ACTIVATIONS`.
        pre_norm: Weight and bias of a LayerNorm before the blocks, by our names; empty without one.
    """

    naming: str
    heads: int
    assumed: bool
    epsilon: float
    patch: np.ndarray
    patch_bias: np.ndarray
    prefix: np.ndarray
    positions: np.ndarray | None
    table: np.ndarray | None
    blocks: tuple[Block, ...]
    may_turn: bool = False
    activation: str = "gelu"
    pre_norm: Block = field(default_factory=dict)

    @property
    def is_rotary(self) -> bool:
        """Whether its queries and keys are turned, as far as its tensors tell.

        So it is without positions and tables (timm's ViTs with rotary positions, DINOv3); and with
        positions, if such networks have its names, but without a table as in BEiT. The angles stand
        in no tensor.
        """
        block = self.blocks[0]
        if self.table is not None or "table" in block:
            return False
        return self.positions is None or self.may_turn

    @property
    def settings(self) -> str:
        """Whose names, and what is in no tensor, as messages say it."""
        epsilon = f"LayerNorm with ε = {self.epsilon:g}"
        tables = ""
        if self.naming.startswith("Hugging Face") and (
            self.table is not None or "table" in self.blocks[0]
        ):
            tables = (
                " Tables of relative positions are read as in timm; Hugging Face's code takes the "
                "sides of a grid that is not square in another order."
            )
        return (
            f"Names: {self.naming}; {epsilon} before attention and MLP, which no tensor tells; MLP "
            f"with {self.activation}.{tables}"
        )


def read_transformer(
    file: WeightsFile,
    heads: int | None = None,
    epsilon: float | None = None,
    activation: str | None = None,
) -> VisionTransformer:
    """The network of a state dict.

    Args:
        file: Its tensors by name, as one of `NAMINGS` has them, also below `vit.`, `deit.`,
            `beit.` or another name.
        heads: Of every block; None takes those of the tables, of Google's kernels or of the
            metadata, or width / 64.
        epsilon: Of LayerNorm; None takes that of the metadata, or of the library for this kind of
            network.
        activation: Of the MLP, a name in `ACTIVATIONS`; None takes the library's.
    """
    if epsilon is not None and not 0 < epsilon < 1:
        raise ValueError(f"norm_epsilon={epsilon}, but expected a number in (0, 1), such as 1e-6")
    if activation is not None and activation not in ACTIVATIONS:
        raise ValueError(f"activation={activation!r}, but expected {', '.join(ACTIVATIONS)}")
    file.require_computed()
    if (network := unread_network(file.arrays)) is not None:
        raise ValueError(f"{file.name} has the tensors of {network}")
    naming, above = find_naming(file)
    roles, sizes = find_roles(file, naming, above)
    stem: dict[str, np.ndarray] = {}
    blocks: list[dict[str, np.ndarray]] = []
    for name, role in roles.items():
        while role.block is not None and len(blocks) <= role.block:
            blocks.append({})
        array = from_file(file.floats(name), role)
        (stem if role.block is None else blocks[role.block])[role.part] = array
    for block in blocks:
        _split(block)
    parts = {"shared_table": stem, "table": blocks[0]}
    tables = [block[part].shape[1] for part, block in parts.items() if part in block]
    stated = dict.fromkeys(tables[:1], "columns of the table of relative positions")
    stated |= {
        sizes[letter]: "heads of the kernels of queries" for letter in sizes if letter == "h"
    }
    arguments = _constructor_arguments(file)
    for name in ("num_heads", "num_attention_heads"):
        if isinstance(arguments.get(name), int):
            stated[arguments[name]] = f"{name} of the file's metadata"
    if epsilon is None and isinstance(arguments.get("layer_norm_eps"), float):
        epsilon = arguments["layer_norm_eps"]
    number = _number_of_heads(len(blocks[0]["query.weight"]), stated, heads)
    width = len(stem["patch.weight"])
    others = [stem[part].reshape(-1, width) for part in TOKENS if part in stem]
    positions = stem.get("positions")
    if positions is not None:
        rows = _late_registers(naming, stem)
        zeros = np.zeros((rows.stop - rows.start, width))
        positions = positions.reshape(-1, width)
        positions = np.concatenate([positions[: rows.start], zeros, positions[rows.start :]])
    return VisionTransformer(
        naming.name,
        number,
        heads is None and not stated,
        _usual_epsilon(naming, stem) if epsilon is None else epsilon,
        stem["patch.weight"],
        stem.get("patch.bias", np.zeros(width)),
        np.concatenate([np.zeros((0, width)), *others]),
        positions,
        stem.get("shared_table"),
        tuple(blocks),
        any(re.fullmatch(r".*\b(gamma_1|q_bias)", name) for name in roles)
        or _may_be_perception_encoder(file, above, naming, blocks[0])
        or (naming == SIGLIP and not any(n.startswith(f"{above}head.") for n in file.arrays)),
        naming.activation if activation is None else activation,
        {part: array for part, array in stem.items() if part.startswith("pre_norm.")},
    )


def _constructor_arguments(file: WeightsFile) -> dict[str, Any]:
    """What the library's class is built with, in a file of `convattn compile`; else none."""
    try:
        arguments = parse_json(file.metadata.get("arguments", "{}"))
    except ValueError:  # another program's metadata
        return {}
    return arguments if isinstance(arguments, dict) else {}


def _usual_epsilon(naming: Naming, stem: Mapping[str, np.ndarray]) -> float:
    """The library's; of timm's networks without positions those with both tokens are DINOv3."""
    is_dinov3 = {"class", "registers"} <= stem.keys() and not {"positions", "shared_table"} & {
        *stem
    }
    return 1e-5 if naming == TIMM and is_dinov3 else naming.epsilon


def _may_be_perception_encoder(
    file: WeightsFile, above: str, naming: Naming, first: Mapping[str, np.ndarray]
) -> bool:
    """Whether timm's Perception Encoders have these names, with any pooling.

    With their LayerNorm before the blocks they are timm's CLIP. Without it they are its ViT, which
    is told by layer scale, or a last LayerNorm but no attention pooling beside a class token.
    """
    names = {name.removeprefix(above) for name in file.arrays}
    pools = "cls_token" in names and any(name.startswith("attn_pool.") for name in names)
    is_plain = "scale1" in first or (not pools and names & {"norm.weight", "fc_norm.weight"})
    return naming.name == "timm's CLIP" or (naming == TIMM and not is_plain)


def _late_registers(naming: Naming, stem: Mapping[str, np.ndarray]) -> slice:
    """The rows of positions that belong to registers and stand in no tensor; mostly none."""
    counts = {p: stem[p].size // max(stem[p].shape[-1], 1) for p in TOKENS if p in stem}
    first = counts.get("class", 0) + counts.get("distillation", 0)
    return slice(first, first + (counts.get("registers", 0) if naming.late_registers else 0))


def with_parts(file: WeightsFile, model: VisionTransformer) -> dict[str, np.ndarray]:
    """The tensors of a file, those that `read_transformer` reads taken from a network.

    Returns:
        All tensors by their names, each in the shape and dtype that it has in the file.
    """
    naming, above = find_naming(file)
    roles, _ = find_roles(file, naming, above)
    arrays, first = dict(file.arrays), 0
    parts = {role.part: name for name, role in roles.items() if role.block is None}
    if "patch.bias" not in parts and model.patch_bias.any():
        raise ValueError(f"{file.name} has no bias of the patches, but expected one to be set")
    rows = _late_registers(naming, {part: arrays[name] for part, name in parts.items()})
    stem: dict[str, Any] = {"patch.weight": model.patch, "patch.bias": model.patch_bias}
    stem |= {**model.pre_norm, "shared_table": model.table, "positions": model.positions}
    late = np.zeros((0, len(model.patch)))
    if model.positions is not None:
        stem["positions"] = np.delete(model.positions, rows, axis=0)
        late = model.positions[rows]
    for name, role in roles.items():
        shape, dtype = arrays[name].shape, arrays[name].dtype
        if role.block is not None:
            array = _joined(model.blocks[role.block], role.part)
        elif role.part in TOKENS:
            count = arrays[name].size // len(model.patch)
            array, first = model.prefix[first : first + count], first + count
            array = array + late if role.part == "registers" and len(late) else array
        else:
            array = stem[role.part]
        arrays[name] = to_file(np.asarray(array), role, shape).astype(dtype)
    return arrays


def _joined(block: Block, part: str) -> Any:
    """A part of a block; query, key and value in one tensor if the file has them so."""
    module, _, kind = part.partition(".")
    if module == "qkv":
        return np.concatenate([block[f"{name}.{kind}"] for name in ("query", "key", "value")])
    return block[{"query_bias": "query.bias", "value_bias": "value.bias"}.get(part, part)]


def _number_of_heads(width: int, stated: Mapping[int, str], heads: int | None) -> int:
    """What the tensors say, or what was given, or that of heads of 64 features."""
    actual = f"heads={heads}" if heads is not None else "no number of heads was given"
    number, expected = heads, f"a divisor of {width}, the width of attention"
    if stated:
        number, what = next(iter(stated.items()))
        expected = f"{number}, the {what}"
    elif heads is None:
        number = 0 if width % HEAD_DIM else width // HEAD_DIM
    if not number or number < 1 or width % number or heads not in (None, number):
        raise ValueError(
            f"{actual}, but expected {expected}; give heads (--heads) as the network was built with"
        )
    return number


def _split(block: dict[str, Any]) -> None:
    """Query, key and value of a block that holds them in one tensor."""
    if "qkv.weight" in block:
        parts = np.split(block.pop("qkv.weight"), 3)
        biases = np.split(block.pop("qkv.bias"), 3) if "qkv.bias" in block else [None] * 3
        if "query_bias" in block:
            biases = [block.pop("query_bias"), None, block.pop("value_bias", None)]
        for name, weight, bias in zip(("query", "key", "value"), parts, biases, strict=True):
            block[f"{name}.weight"] = weight
            if bias is not None:
                block[f"{name}.bias"] = bias
