"""Vision transformers read from state dicts, by the names of timm and of Hugging Face.

Read are networks of pre-norm blocks, x + s₁·Attention(LN(x)), then x + s₂·MLP(LN(x)), with or
without layer scale s: ViT and DeiT (class, distillation and register tokens, absolute positions)
and BEiT (a table of relative positions in each block or one for all); of Swin the attention alone.
Linear maps are PyTorch's `[out, in]`. What stands behind the last block is not read.

Two numbers are in no tensor: the heads of a network without tables, and the ε of LayerNorm, which
is 1e-6 in timm and 1e-12 in Hugging Face's ViT, DeiT and BEiT.
"""

import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np

from convattn.networks.diagnosis.naming import Naming, find_naming
from convattn.networks.weights.files import WeightsFile, refuse

HEAD_DIM = 64  # of ViT, DeiT and BEiT in every size
BEHIND = re.compile(
    r"(norm|fc_norm|layernorm|head|head_dist|pre_logits|pooler|classifier|cls_classifier|"
    r"distillation_classifier|lm_head|decoder|mask_token|embeddings\.mask_token)\b.*"
)
UNREAD = "relative_position_index"

Block = Mapping[str, np.ndarray]
Shape = tuple[int | None, ...]


TOKENS = ("class", "distillation", "registers")
OPTIONAL = frozenset(
    [
        *("query.bias", "key.bias", "value.bias", "qkv.bias", "query_bias", "value_bias"),
        *("scale1", "scale2", "table"),
    ]
)


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
        is_eva: Whether layer scale or biases have the names of timm's EVA and BEiT.
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
    is_eva: bool = False

    @property
    def is_rotary(self) -> bool:
        """Whether its queries and keys are turned, as far as its tensors tell.

        So it is without positions and tables (timm's ViTs with rotary positions, DINOv3); and with
        positions, if its layer scale or its biases have the names of timm's EVA, but no table as in
        BEiT. The angles stand in no tensor.
        """
        block = self.blocks[0]
        if self.table is not None or "table" in block:
            return False
        return self.positions is None or self.is_eva


def read_transformer(
    file: WeightsFile, heads: int | None = None, epsilon: float | None = None
) -> VisionTransformer:
    """The network of a state dict.

    Args:
        file: Its tensors by name, as timm or Hugging Face call them, also below `vit.`, `deit.`,
            `beit.` or another name.
        heads: Of every block; None takes those of the tables, or width / 64.
        epsilon: Of LayerNorm; None takes that of the library's ViT.

    Raises:
        ValueError: For an ε that is not positive; for a re-parametrised tensor that cannot be
            computed; with every tensor that is missing, unexpected or
            of another shape; for heads that do not divide the width of attention; and for what is
            no such network.
    """
    if epsilon is not None and not 0 < epsilon < 1:
        raise ValueError(f"norm_epsilon={epsilon}, but expected a number in (0, 1), such as 1e-6")
    file.require_computed()
    naming, root = find_naming(file)
    wanted, places = _wanted(file, naming, root)
    _require(file, naming, root, wanted)
    stem: dict[str, np.ndarray] = {}
    blocks: list[dict[str, np.ndarray]] = []
    for name, (block, part) in places.items():
        while block is not None and len(blocks) <= block:
            blocks.append({})
        (stem if block is None else blocks[block])[part] = file[name].astype(np.float64)
    for held in blocks:
        _split(held)
    tables = [held["table"] for held in (stem, blocks[0]) if "table" in held]
    number = _number_of_heads(len(blocks[0]["query.weight"]), tables, heads)
    width = len(stem["patch.bias"])
    others = [stem[part].reshape(-1, width) for part in TOKENS if part in stem]
    positions = stem.get("positions")
    return VisionTransformer(
        naming.name,
        number,
        heads is None and not tables,
        naming.epsilon if epsilon is None else epsilon,
        stem["patch.weight"],
        stem["patch.bias"],
        np.concatenate([np.zeros((0, width)), *others]),
        None if positions is None else positions[0],
        stem.get("table"),
        tuple(blocks),
        any(re.fullmatch(r".*\b(gamma_1|q_bias)", name) for name in places),
    )


def with_parts(file: WeightsFile, model: VisionTransformer) -> dict[str, np.ndarray]:
    """The tensors of a file, those that `read_transformer` reads taken from a network.

    Returns:
        All tensors by their names, each in the shape and dtype that it has in the file.
    """
    naming, root = find_naming(file)
    stem = {"patch.weight": model.patch, "patch.bias": model.patch_bias}
    held = dict(file.arrays)
    first = 0
    for name, (block, part) in _wanted(file, naming, root)[1].items():
        shape, dtype = held[name].shape, held[name].dtype
        if block is not None:
            array = _joined(model.blocks[block], part)
        elif part in TOKENS:
            count = shape[1]
            array, first = model.prefix[first : first + count], first + count
        elif part == "positions":
            array = model.positions
        else:
            array = model.table if part == "table" else stem[part]
        held[name] = np.asarray(array).reshape(shape).astype(dtype)
    return held


def _joined(block: Block, part: str) -> Any:
    """A part of a block; query, key and value in one tensor if the file has them so."""
    module, _, kind = part.partition(".")
    if module == "qkv":
        return np.concatenate([block[f"{name}.{kind}"] for name in ("query", "key", "value")])
    return block[{"query_bias": "query.bias", "value_bias": "value.bias"}.get(part, part)]


def _number_of_heads(width: int, tables: list[np.ndarray], heads: int | None) -> int:
    """What the tables say, or what was given, or that of heads of 64 features."""
    told = f"heads={heads}" if heads is not None else "no number of heads was given"
    found, expected = heads, f"a divisor of {width}, the width of attention"
    if tables:
        found = tables[0].shape[1]
        expected = f"{found}, the columns of the table of relative positions"
    elif heads is None:
        found = 0 if width % HEAD_DIM else width // HEAD_DIM
    if not found or found < 1 or width % found or heads not in (None, found):
        raise ValueError(
            f"{told}, but expected {expected}; give the number of heads that the network was "
            "trained with"
        )
    return found


def _wanted(
    file: WeightsFile, naming: Naming, root: str
) -> tuple[dict[str, Shape], dict[str, tuple[int | None, str]]]:
    """The shape of each tensor that should be there, and the block and part that it is."""

    def side(name: str, index: int) -> int | None:
        """What other shapes depend on, or None where the tensor does not have it."""
        shape = file.arrays[name].shape if name in file.arrays else ()
        return shape[index] if index < len(shape) else None

    above = root.removesuffix(f"{naming.root}.")
    stem = {part: above + name for part, name in naming.stem.items()}
    patch = f"{stem['patch']}.weight"
    width = side(patch, 0)
    shapes: dict[str, Shape] = {
        "patch.weight": (width, *(side(patch, index) for index in (1, 2, 2))),
        "patch.bias": (width,),
        **{part: (1, side(stem[part], 1), width) for part in (*TOKENS, "positions")},
        "table": (None, None),
    }
    found: dict[str, tuple[Shape, tuple[int | None, str]]] = {}
    for part, shape in shapes.items():
        module, _, kind = part.partition(".")
        name = f"{stem[module]}.{kind}".rstrip(".")
        if kind or name in file.arrays:
            found[name] = shape, (None, part)

    inner = [name[len(root) :].partition(".") for name in file.arrays if _inside(name, root)]
    numbers, there = {int(number) for number, _, _ in inner}, {part for _, _, part in inner}
    chosen = {
        part: next((name for name in names if name in there), names[0])
        for part, names in _tensors(naming).items()
    }
    first = {part: f"{root}0.{name}" for part, name in chosen.items()}
    attended, hidden = side(first["output.weight"], 1), side(first["fc1.weight"], 0)
    outer = {"qkv": attended and 3 * attended, "table": side(first["table"], 0), "fc1": hidden}
    outer |= dict.fromkeys(("query", "key", "value", "query_bias", "value_bias"), attended)
    depth = {"output": attended, "fc2": hidden, "table": side(first["table"], 1)}
    for part, name in chosen.items():
        module, _, kind = part.partition(".")
        if part in OPTIONAL and name not in there:
            continue
        matrix = part == "table" or (kind == "weight" and module not in ("norm1", "norm2"))
        sides = (outer.get(module, width), *([depth.get(module, width)] if matrix else []))
        for block in sorted(numbers | {*range(len(numbers))}):
            found[f"{root}{block}.{name}"] = sides, (block, part)
    return (
        {n: shape for n, (shape, _) in found.items()},
        {n: place for n, (_, place) in found.items()},
    )


def _tensors(naming: Naming) -> dict[str, tuple[str, ...]]:
    """The names of the tensors of a block, modules as their weight and bias."""
    found = {}
    for part, names in naming.parts.items():
        if part in OPTIONAL:
            found[part] = names
        else:
            for kind in ("weight", "bias"):
                found[f"{part}.{kind}"] = tuple(f"{name}.{kind}" for name in names)
    return found


def _inside(name: str, root: str) -> bool:
    return name.startswith(root) and name[len(root) :].partition(".")[0].isdigit()


def _require(file: WeightsFile, naming: Naming, root: str, wanted: Mapping[str, Shape]) -> None:
    """Refuse what is missing, unexpected or of another shape, all in one message."""
    above = root.removesuffix(f"{naming.root}.")
    problems = [f"{name} is missing" for name in wanted if name not in file.arrays]
    for name in file.arrays:
        behind = not _inside(name, root) and (
            BEHIND.fullmatch(name.removeprefix(above)) or BEHIND.fullmatch(name)
        )
        if name not in wanted and not behind and not name.endswith(UNREAD):
            problems.append(f"{name} is unexpected")
    for name, expected in wanted.items():
        shape = file.arrays[name].shape if name in file.arrays else None
        if shape is not None and not _fits(shape, expected):
            sides = ", ".join("any" if side is None else str(side) for side in expected)
            problems.append(f"{name} has shape {shape}, expected ({sides})")
    refuse(problems, f"the tensors of {file.name} are not those of a vision transformer")


def _fits(shape: tuple[int, ...], expected: Shape) -> bool:
    return len(shape) == len(expected) and all(
        side is None or side == given for side, given in zip(expected, shape, strict=True)
    )


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
