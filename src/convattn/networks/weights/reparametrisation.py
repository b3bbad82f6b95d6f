"""Tensors that PyTorch has re-parametrised, computed from the parts that a state dict holds.

| norm       | parts                     | below `parametrizations.weight.` | `weight`           |
|------------|---------------------------|----------------------------------|--------------------|
| weight     | `weight_g`, `_v`          | `original0`, `original1`         | g·v/‖v‖            |
| spectral   | `weight_orig`, `_u`, `_v` | `original`, `0._u`, `0._v`       | W/σ, with σ = uᵀWv |
| pruning    | `weight_orig`, `_mask`    |                                  | W⊙mask             |

‖v‖ is taken over the axes in which g has size 1. For a spectral norm W is a matrix whose rows are
the axis that is as long as u. Other parts are refused, since no part is the tensor itself.
"""

import re
from collections.abc import Mapping
from typing import Any, NamedTuple

import numpy as np

from convattn.files import shown

SUFFIXED = re.compile(r"(?P<tensor>.*?(weight|kernel|bias)[^.]*)_(?P<part>g|v|u|q|k|orig|mask)")
PARAMETRIZED = re.compile(r"(?P<module>|.*\.)parametrizations\.(?P<tensor>[^.]+)\.(?P<part>.+)")
PARTS = {"original0": "g", "original1": "v", "original": "orig", "0._u": "u", "0._v": "v"}
BESIDE = {  # what changes a weight each time that the module is called, by its name beside it
    "gain": "a gain on a standardised weight, as timm's ScaledStdConv2d has",
    "mask": "a mask",
    "lora_A": "an update of low rank (LoRA)",
}
REMEDY = (
    "save the state dict after torch.nn.utils.parametrize.remove_parametrizations(module, 'weight')"
    ", or remove_weight_norm, remove_spectral_norm or prune.remove where that made it"
)


class Reparametrised(NamedTuple):
    """A state dict with its re-parametrised tensors computed.

    Attributes:
        arrays: By name, without the parts.
        parts: The tensor that each part belongs to.
        refused: Why a tensor cannot be computed, by its name; it is not among the arrays.
    """

    arrays: dict[str, Any]
    parts: dict[str, str]
    refused: dict[str, str]


def computed(arrays: Mapping[str, Any]) -> Reparametrised:
    """The tensors that the modules of a state dict use.

    >>> v = np.array([[3.0, 4.0]])
    >>> computed({"net.weight_g": np.array([[10.0]]), "net.weight_v": v}).arrays
    {'net.weight': array([[6., 8.]])}
    >>> computed({"net.weight_orig": v, "net.weight_u": np.ones(1)}).refused["net.weight"][:29]
    'net.weight is re-parametrised'
    """
    result, parts, refused = dict(arrays), dict[str, str](), dict[str, str]()
    while groups := _groups(result):
        for tensor, names in groups.items():
            if any(other.startswith(f"{tensor}_") for other in groups):
                continue  # a part is re-parametrised itself, and comes first
            stored = {part: result.pop(name) for part, name in names.items()}
            parts |= dict.fromkeys(names.values(), tensor)
            value = None if tensor in result else _value(stored)
            if value is None:
                result.pop(tensor, None)
                listed = ", ".join(shown(name, 100) for name in list(names.values())[:6])
                refused[tensor] = (
                    f"{tensor} is re-parametrised ({listed}), but expected a weight norm, a "
                    f"spectral norm or a mask with all its parts and no other tensor; {REMEDY}"
                )
            else:
                result[tensor] = value
    for name in [*result]:
        module, _, last = name.rpartition(".")
        kind = BESIDE.get(last)
        tensor = f"{module}.weight".lstrip(".")
        if last == "lora_A" or ".lora_A." in f"{name}.":
            module, kind = name.partition(".lora_A")[0], BESIDE["lora_A"]
            found = [f"{module}.{inner}weight" for inner in ("", "base_layer.", "conv.")]
            tensor = next((name for name in found if name in result), "")
        if kind is None or tensor not in result or not _changes(result[tensor], result[name], last):
            continue
        del result[tensor]
        refused[tensor] = (
            f"{tensor} has {kind} beside it ({shown(name, 100)}), but expected the weight that the "
            "module computes with; put that in its place before the state dict is saved"
        )
    return Reparametrised(result, parts, refused)


def _groups(arrays: Mapping[str, Any]) -> dict[str, dict[str, str]]:
    """The names of the parts of each re-parametrised tensor."""
    groups: dict[str, dict[str, str]] = {}
    for name in arrays:
        if match := PARAMETRIZED.fullmatch(name):
            tensor, part = match["module"] + match["tensor"], match["part"]
            groups.setdefault(tensor, {})[PARTS.get(part, part)] = name
        elif match := SUFFIXED.fullmatch(name):
            groups.setdefault(match["tensor"], {})[match["part"]] = name
    return {
        tensor: names
        for tensor, names in groups.items()
        if "orig" in names
        or any(PARAMETRIZED.fullmatch(name) for name in names.values())
        or (tensor.rpartition(".")[2] == "weight" and not names.keys() & {"q", "k"})
        or _value({part: arrays[name] for part, name in names.items()}) is not None
    }


def _value(parts: Mapping[str, np.ndarray]) -> np.ndarray | None:
    """The tensor, or None for parts that are of no known kind or do not fit."""
    stored = parts.get("orig", parts.get("v"))
    if stored is None or not stored.size or not _floats(stored):
        return None
    if any(not _floats(part) and part.dtype.kind not in "bi" for part in parts.values()):
        return None
    wide = {part: array.astype(np.float64) for part, array in parts.items()}
    with np.errstate(all="ignore"):  # what is not finite is refused when it is read
        if wide.keys() == {"g", "v"}:
            value = _weight_norm(wide["g"], wide["v"])
        elif wide.keys() == {"orig", "u", "v"}:
            value = _spectral_norm(wide["orig"], wide["u"], wide["v"])
        elif wide.keys() == {"orig", "mask"} and wide["mask"].shape == stored.shape:
            value = np.where(wide["mask"] == 0, 0.0, wide["orig"] * wide["mask"])
        else:
            return None
        return None if value is None else value.astype(stored.dtype)


def _weight_norm(g: np.ndarray, v: np.ndarray) -> np.ndarray | None:
    shape = g.shape or (1,) * v.ndim
    if len(shape) != v.ndim or any(a not in (1, b) for a, b in zip(shape, v.shape, strict=True)):
        return None
    if sum(size != 1 for size in shape) > 1:
        return None
    axes = tuple(axis for axis, size in enumerate(shape) if size == 1)
    return g.reshape(shape) * v / np.sqrt((v * v).sum(axes, keepdims=True))


def _spectral_norm(stored: np.ndarray, u: np.ndarray, v: np.ndarray) -> np.ndarray | None:
    """W/uᵀWv; where u fits several axes, the one whose Wv points most along u."""
    products = []
    for axis, size in enumerate(stored.shape):
        if u.shape == (size,) and v.shape == (stored.size // size,):
            product = np.moveaxis(stored, axis, 0).reshape(size, -1) @ v
            products.append((float(u @ product / np.linalg.norm(product)), float(u @ product)))
    return stored / max(products)[1] if products else None


def _changes(weight: np.ndarray, beside: np.ndarray, kind: str) -> bool:
    """Whether what stands beside a weight changes what the module computes with."""
    if kind == "mask":
        return beside.shape == weight.shape and bool(weight[beside != 1].any())
    return kind != "gain" or beside.shape == (len(weight), *(1,) * (weight.ndim - 1))


def _floats(array: np.ndarray) -> bool:
    return array.dtype.kind == "f" or array.dtype.name == "bfloat16"
