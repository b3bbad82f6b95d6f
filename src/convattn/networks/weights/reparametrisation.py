"""Tensors that PyTorch has re-parametrised, computed from the parts that a state dict holds.

| norm       | parts                     | below `parametrizations.weight.` | `weight`           |
|------------|---------------------------|----------------------------------|--------------------|
| weight     | `weight_g`, `_v`          | `original0`, `original1`         | g·v/‖v‖            |
| spectral   | `weight_orig`, `_u`, `_v` | `original`, `0._u`, `0._v`       | W/σ, with σ = uᵀWv |
| pruning    | `weight_orig`, `_mask`    |                                  | W⊙mask             |

‖v‖ is taken over the axes in which g has size 1. For a spectral norm W is a matrix whose rows are
the axis that is as long as u; of several axes that of which u = Wv/‖Wv‖ or v = Wᵀu/‖Wᵀu‖, as a step
of training makes it, else the first axis, which is PyTorch's for all but transposed convolutions.
Other parts are refused, since no part is the tensor itself.
"""

import re
from collections.abc import Iterator, Mapping
from typing import Any, NamedTuple

import numpy as np

from convattn.files import brief
from convattn.networks.weights.names import is_subsequence, path_of

_SUFFIXED = re.compile(r"(?P<tensor>.*?(weight|kernel|bias)[^.]*)_(?P<part>g|v|u|q|k|orig|mask)")
_PARAMETRIZED = re.compile(r"(?P<module>|.*\.)parametrizations\.(?P<tensor>[^.]+)\.(?P<part>.+)")
PARTS = {"original0": "g", "original1": "v", "original": "orig", "0._u": "u", "0._v": "v"}
INSIDE = re.compile(  # of PEFT, flax.nnx and kohya's scripts
    r"(base_layer|original_module|layer_instance|base_module|org_module)[./]"
)
_WRAPPED = re.compile(rf"(?P<above>(?:.*[./])?){INSIDE.pattern}(weight|kernel)")
_SCALE = re.compile(  # of quantised weights, beside the tensor or in its module
    r"(?P<tensor>.*(?:weight|kernel))[_.](scales?|scale_inv|zero_points?)|"
    r"(?P<module>(?:.*[./])?)(scales?|zero_points?|SCB|absmax)"
)
BESIDE = {  # what changes a weight each time that the module is called, by its name beside it
    "gain": "a gain on a standardised weight, as timm's ScaledStdConv2d has",
    "mask": "a mask",
    "lora_A": "an update of low rank (LoRA)",
}
_BY_PARTS = (
    "its parametrizations are taken for a {} norm alone, as their tensors allow; one without "
    "tensors of its own would not be seen"
)
_FIRST_AXIS = (
    "its spectral norm is taken along the first axis, which is PyTorch's for all but transposed "
    "convolutions; its parts do not tell the axis"
)
_REMEDY = (
    "save the state dict after torch.nn.utils.parametrize.remove_parametrizations(module, 'weight')"
    ", or remove_weight_norm, remove_spectral_norm or prune.remove where that made it"
)


class Reparametrised(NamedTuple):
    """A state dict with its re-parametrised tensors computed.

    Attributes:
        arrays: By name, without the parts.
        parts: The tensor that each part belongs to.
        refused: Why a tensor cannot be computed, by its name; it is not among the arrays.
        assumed: What its parts do not say of a tensor, and how it was read, by its name.
    """

    arrays: dict[str, Any]
    parts: dict[str, str]
    refused: dict[str, str]
    assumed: dict[str, str]


def computed(arrays: Mapping[str, Any]) -> Reparametrised:
    """The tensors that the modules of a state dict use.

    >>> v = np.array([[3.0, 4.0]])
    >>> computed({"net.weight_g": np.array([[10.0]]), "net.weight_v": v}).arrays
    {'net.weight': array([[6., 8.]])}
    >>> computed({"net.weight_orig": v, "net.weight_u": np.ones(1)}).refused["net.weight"][:29]
    'net.weight is re-parametrised'
    """
    result, parts, refused = dict(arrays), dict[str, str](), dict[str, str]()
    assumed: dict[str, str] = {}
    while groups := _groups(result):
        for tensor, names in groups.items():
            if any(other.startswith(f"{tensor}_") for other in groups):
                continue  # a part is re-parametrised itself, and comes first
            stored = {part: result.pop(name) for part, name in names.items()}
            parts |= dict.fromkeys(names.values(), tensor)
            value, is_sure = (None, True) if tensor in result else _value(stored)
            if value is None:
                result.pop(tensor, None)
                listed = ", ".join(brief(name, 100) for name in list(names.values())[:6])
                refused[tensor] = (
                    f"{tensor} is re-parametrised ({listed}), but expected a weight norm, a "
                    f"spectral norm or a mask with all its parts and no other tensor; {_REMEDY}"
                )
            else:
                result[tensor] = value
                sentences = [] if is_sure else [_FIRST_AXIS]
                if any(_PARAMETRIZED.fullmatch(name) for name in names.values()):
                    norm = "weight" if "g" in stored else "spectral"
                    sentences.append(_BY_PARTS.format(norm))
                if sentences:
                    assumed[tensor] = f"{tensor}: {'; '.join(sentences)}"
    for tensor, name, kind in _beside(result):
        if result.pop(tensor, None) is not None:
            refused[tensor] = (
                f"{tensor} has {kind} beside it ({brief(name, 100)}), but expected the weight that "
                "the module computes with; put that in its place before the state dict is saved"
            )
    return Reparametrised(result, parts, refused, assumed)


def _beside(arrays: Mapping[str, Any]) -> list[tuple[str, str, str]]:
    """The tensors that a module does not compute with as they are: what changes it, and its kind.

    >>> scaled = {"net.weight": np.ones((2, 2), np.int8), "net.weight_scale": np.ones(2)}
    >>> _beside(scaled)
    [('net.weight', 'net.weight_scale', 'a scale')]
    """
    wrapped_names = [
        (name, match["above"]) for name in arrays if (match := _WRAPPED.fullmatch(name))
    ]
    wrapped = {above: name for name, above in wrapped_names}
    by_path: dict[tuple[str, ...], list[str]] = {}
    for name in arrays:
        by_path.setdefault(path_of(name)[-2:], []).append(name)
    changes = []
    for name, array in arrays.items():
        module, _, last = name.rpartition(".")
        weight = f"{module}.weight".lstrip(".")
        if weight in arrays and last in ("gain", "mask") and _changes(arrays[weight], array, last):
            changes.append((weight, name, BESIDE[last]))
        if ".lora_A." in f"{name}.":
            module = name.partition(".lora_A")[0]
            tensors = [f"{module}.{infix}weight" for infix in ("conv.", "base_layer.", "")]
            tensors = [tensor for tensor in tensors if tensor in arrays]
            changes += [(tensor, name, BESIDE["lora_A"]) for tensor in tensors[-1:]]
        if match := _SCALE.fullmatch(name):
            tensors = [match["tensor"] or f"{match['module']}{end}" for end in ("weight", "kernel")]
            changes += [
                (tensor, name, "a scale")
                for tensor in dict.fromkeys(tensors)
                if tensor in arrays and (match["tensor"] or arrays[tensor].dtype.kind in "iu")
            ]
        starts = [0, *(match.end() for match in re.finditer("[./]", name))]
        changes += [
            (wrapped[name[:start]], name, "a tensor of the module around it")
            for start in starts
            if name[:start] in wrapped and not INSIDE.match(name, start)
        ]
        changes += [(tensor, name, "a norm of Flax or Haiku") for tensor in _normed(name, by_path)]
    return changes


def _normed(name: str, by_path: Mapping[tuple[str, ...], list[str]]) -> Iterator[str]:
    """The kernel that this is the scale, σ or u of, in `WeightNorm` or `SpectralNorm`.

    As Linen names them, and Haiku's trees of them: they hold the kernel's path.

    Args:
        by_path: The names of the arrays whose paths end in the same two parts.

    >>> by_path = {("conv", "kernel"): ["params/conv/kernel"], ("conv", "w"): ["net/conv/w"]}
    >>> [*_normed("params/WeightNorm_0/conv/kernel/scale", by_path)]
    ['params/conv/kernel']
    >>> [*_normed("net/sn_params_tree/net__conv__w/sigma", by_path)]
    ['net/conv/w']
    """
    *path, last = path_of(name) or ("",)
    if re.fullmatch(r"scale|sigma\d*|u\d*", last):
        path = ["params" if part == "batch_stats" else part for part in path]
        for tensor in by_path.get(tuple(path[-2:]), ()):
            if len(path_of(tensor)) < len(path) and is_subsequence(path_of(tensor), path):
                yield tensor


def _groups(arrays: Mapping[str, Any]) -> dict[str, dict[str, str]]:
    """The names of the parts of each re-parametrised tensor."""
    groups: dict[str, dict[str, str]] = {}
    for name in arrays:
        if match := _PARAMETRIZED.fullmatch(name):
            tensor, part = match["module"] + match["tensor"], match["part"]
            groups.setdefault(tensor, {})[PARTS.get(part, part)] = name
        elif match := _SUFFIXED.fullmatch(name):
            groups.setdefault(match["tensor"], {})[match["part"]] = name
    return {
        tensor: names
        for tensor, names in groups.items()
        if "orig" in names
        or any(_PARAMETRIZED.fullmatch(name) for name in names.values())
        or (tensor.rpartition(".")[2] == "weight" and not names.keys() & {"q", "k"})
        or _value({part: arrays[name] for part, name in names.items()})[0] is not None
    }


def _value(parts: Mapping[str, np.ndarray]) -> tuple[np.ndarray | None, bool]:
    """The tensor, or None for parts that are of no known kind or do not fit; whether it is sure."""
    stored = parts.get("orig", parts.get("v"))
    if stored is None or not stored.size or not _floats(stored):
        return None, True
    if any(not _floats(part) and part.dtype.kind not in "bi" for part in parts.values()):
        return None, True
    is_sure = True
    float_parts = {part: array.astype(np.float64) for part, array in parts.items()}
    with np.errstate(all="ignore"):  # what is not finite is refused when it is read
        if float_parts.keys() == {"g", "v"}:
            value = _weight_norm(float_parts["g"], float_parts["v"])
        elif float_parts.keys() == {"orig", "u", "v"}:
            epsilon = _epsilon(stored.dtype)
            value, is_sure = _spectral_norm(
                float_parts["orig"], float_parts["u"], float_parts["v"], epsilon
            )
        elif float_parts.keys() == {"orig", "mask"} and float_parts["mask"].shape == stored.shape:
            value = np.where(
                float_parts["mask"] == 0, 0.0, float_parts["orig"] * float_parts["mask"]
            )
        else:
            return None, True
        return (None if value is None else value.astype(stored.dtype)), is_sure


def _weight_norm(g: np.ndarray, v: np.ndarray) -> np.ndarray | None:
    shape = g.shape or (1,) * v.ndim
    if len(shape) != v.ndim or any(a not in (1, b) for a, b in zip(shape, v.shape, strict=True)):
        return None
    if sum(size != 1 for size in shape) > 1:
        return None
    axes = tuple(axis for axis, size in enumerate(shape) if size == 1)
    return g.reshape(shape) * v / np.sqrt((v * v).sum(axes, keepdims=True))


def _spectral_norm(
    stored: np.ndarray, u: np.ndarray, v: np.ndarray, epsilon: float
) -> tuple[np.ndarray | None, bool]:
    """W/uᵀWv, or None where u fits several axes and it cannot be told which is meant.

    Also whether the axis is told by the numbers, rather than the first of several that u fits.

    It is the one along which u = Wv/‖Wv‖ up to rounding, as `spectral_norm` leaves it, or
    v = Wᵀu/‖Wᵀu‖, as the parametrization does; else the first, if u fits it, unless Wv of another
    is nearer to u and within 45° of it, as it is if the weights went a step further.
    """
    products, stepped = {}, []
    for axis, size in enumerate(stored.shape):
        if u.shape == (size,) and v.shape == (stored.size // size,):
            matrix = np.moveaxis(stored, axis, 0).reshape(size, -1)
            product = matrix @ v
            length = np.linalg.norm(product)
            products[axis] = float(u @ product), float(u @ product / length)
            if _is_direction(u, matrix, v, epsilon) or _is_direction(v, matrix.T, u, epsilon):
                stepped.append(axis)
    if len(stepped) == 1 or len(products) == 1:
        (axis,) = stepped or products
        return stored / products[axis][0], True
    if 0 not in products:
        return None, True
    (_, cosine), (sigma, first) = max(products.values(), key=lambda pair: pair[1]), products[0]
    return (None if cosine > max(first, 0.5**0.5) else stored / sigma), False


def _is_direction(
    direction: np.ndarray, matrix: np.ndarray, vector: np.ndarray, epsilon: float
) -> bool:
    """Whether the first is W·vector over its length, up to rounding."""
    product = matrix @ vector
    rounding = (sum(matrix.shape) + 3) * epsilon * np.linalg.norm(abs(matrix) @ abs(vector))
    return bool(np.linalg.norm(np.linalg.norm(product) * direction - product) <= rounding)


def _epsilon(dtype: np.dtype) -> float:
    from ml_dtypes import finfo

    return float(finfo(dtype).eps)


def _changes(weight: np.ndarray, beside: np.ndarray, kind: str) -> bool:
    """Whether what stands beside a weight changes what the module computes with."""
    if kind == "mask":
        return beside.shape == weight.shape and bool(weight[beside != 1].any())
    return kind != "gain" or beside.shape == (len(weight), *(1,) * (weight.ndim - 1))


def _floats(array: np.ndarray) -> bool:
    return array.dtype.kind == "f" or array.dtype.name == "bfloat16"
