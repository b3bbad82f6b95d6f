"""Which tensors of a state dict are which parts of a vision transformer, and their axes."""

import re
from collections.abc import Mapping
from typing import NamedTuple

import numpy as np

from convattn.networks.vision_transformer.naming import AXES, OPTIONAL, Naming
from convattn.networks.weights.files import WeightsFile, refuse
from convattn.networks.weights.names import common_prefix

BEHIND = re.compile(  # the blocks, or beside them
    r"(norm|fc_norm|layernorm|head|head_dist|heads|pre_logits|pooler|classifier|cls_classifier|"
    r"distillation_classifier|lm_head|decoder|mask_token|embeddings\.mask_token|attn_pool|"
    r"post_layernorm|encoder\.ln|Transformer/encoder_norm|visual_projection|text_projection|"
    r"text_model|logit_scale|logit_bias)\b.*"
)
UNREAD = ("relative_position_index", "position_ids")

Shape = tuple[int | None, ...]


class TensorRole(NamedTuple):
    """What a tensor is.

    Attributes:
        block: Its number; None outside the blocks.
        part: What we call it.
        axes: Those that it has in the file.
    """

    block: int | None
    part: str
    axes: str


def find_roles(
    file: WeightsFile, naming: Naming, above: str
) -> tuple[dict[str, TensorRole], dict[str, int]]:
    """What each tensor is, of those that are there and those that should be, and the sizes.

    Args:
        above: What stands before all names.

    Returns:
        The roles by the tensors' names, and the size of each letter of their axes.
    """
    roles = {}
    for part in (part for part in AXES if part in naming.stem):
        name = above + naming.stem[part]
        if part not in OPTIONAL or name in file.arrays:
            roles[name] = TensorRole(None, part, naming.axes.get(part, AXES[part]))
    pattern = re.compile(re.escape(above + naming.block).replace(r"\{\}", r"(\d{1,9})") + "(.+)")
    in_blocks = {name: match for name in file.arrays if (match := pattern.fullmatch(name))}
    numbers, there = (
        {int(match[1]) for match in in_blocks.values()},
        {m[2] for m in in_blocks.values()},
    )
    for part, several in naming.parts.items():
        names = several.split("|")
        name = next((name for name in names if name in there), names[0])
        if part not in OPTIONAL or name in there:
            for block in sorted(numbers | {*range(len(numbers))}):
                role = TensorRole(block, part, naming.axes.get(part, AXES[part]))
                roles[above + naming.block.format(block) + name] = role
    sizes = _sizes(file, roles)
    problems = [f"{name} is missing" for name in roles if name not in file.arrays]
    beside = common_prefix(file.arrays)
    for name in file.arrays:
        is_behind = name not in in_blocks and any(
            BEHIND.fullmatch(name.removeprefix(prefix)) for prefix in (above, beside)
        )
        if name not in roles and not is_behind and not name.endswith(UNREAD):
            problems.append(f"{name} is unexpected")
    for name, role in roles.items():
        shape = file.arrays[name].shape if name in file.arrays else None
        expected = _expected(role.axes, sizes)
        if shape is not None and not _fits(shape, expected):
            sides = ", ".join("any" if side is None else str(side) for side in expected)
            problems.append(f"{name} has shape {shape}, expected ({sides})")
    what = f"the tensors of {file.name} are not those of a vision transformer that is read"
    refuse(problems, f"{what} ({naming.name}'s names; for others see docs/diagnose.md)")
    return roles, sizes


def _sizes(file: WeightsFile, roles: Mapping[str, TensorRole]) -> dict[str, int]:
    """The size of each letter, as the first of a few tensors that have it says."""
    sizes: dict[str, int] = {}
    for part in ("patch.weight", "output.weight", "fc1.weight", "table"):
        for name, role in roles.items():
            if role.part == part and role.block in (None, 0) and name in file.arrays:
                for letter, side in zip(role.axes, file.arrays[name].shape, strict=False):
                    sizes.setdefault(letter, side)
    return sizes | ({"t": 3 * sizes["a"]} if "a" in sizes else {})


def _expected(axes: str, sizes: Mapping[str, int]) -> Shape:
    return tuple({"1": 1, "*": None}.get(letter, sizes.get(letter)) for letter in axes)


def _fits(shape: tuple[int, ...], expected: Shape) -> bool:
    return len(shape) == len(expected) and all(
        side is None or side == actual for side, actual in zip(expected, shape, strict=True)
    )


def from_file(array: np.ndarray, role: TensorRole) -> np.ndarray:
    """A tensor with the axes in our order, those of heads and of their features as one.

    >>> role = TensorRole(0, "query.weight", "whd")
    >>> from_file(np.ones((6, 2, 3)), role).shape, to_file(np.ones((6, 6)), role, (6, 2, 3)).shape
    ((6, 6), (6, 2, 3))
    """
    order = _order(role)
    moved = array.transpose(order)
    if "h" not in role.axes:
        return moved
    first = order.index(role.axes.index("h"))
    return moved.reshape(*moved.shape[:first], -1, *moved.shape[first + 2 :])


def to_file(array: np.ndarray, role: TensorRole, shape: tuple[int, ...]) -> np.ndarray:
    """The inverse: of the shape that the tensor has in the file."""
    order = _order(role)
    return array.reshape([shape[axis] for axis in order]).transpose(np.argsort(order))


def _order(role: TensorRole) -> list[int]:
    """The axes of the file in our order."""
    ours, left = AXES[role.part], dict(enumerate(role.axes))
    order = []
    for letter in ours.replace("a", "hd") if "h" in role.axes else ours:
        axis = next((axis for axis, other in left.items() if other == letter), None)
        if axis is not None:
            order.append(axis)
            del left[axis]
    return order
