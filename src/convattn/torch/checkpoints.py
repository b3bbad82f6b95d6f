"""State dicts in files, and modules of PyTorch that take them strictly.

A file of `torch.save` is read with `weights_only=True`, which builds tensors and containers and
runs nothing else. One that needs more is refused with the script that converts it where it is
trusted.
"""

import pickle
import zipfile
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import numpy as np
import torch

from convattn.files import brief, read_file
from convattn.networks.weights.files import WeightsFile, WeightsRefused, parse_weights
from convattn.networks.weights.formats import read_safetensors
from convattn.networks.weights.names import common_prefix, looks_like, prefixes_of
from convattn.networks.weights.pickles import refused_archive, refused_pickle

_CONTAINERS = ("state_dict", "model_state_dict", "model", "net", "network", "params", "weights")
MAX_LISTED = 10
_COUNTER = "num_batches_tracked"  # of batch norms: steps of training, which old files have not

State = dict[str, torch.Tensor]


def read_state_dict(path: Path | str) -> State:
    """The tensors of a file by name.

    Args:
        path: `.safetensors`, `.npz`, or what `torch.save` wrote, whatever it is called. Of a
            checkpoint that holds more than a state dict the one under `state_dict`, `model` or
            another usual name is taken.
    """
    content, name = read_file(Path(path)), str(path)
    if content[8:9] == b"{":
        arrays, _ = read_safetensors(content, name)
    elif _is_of_torch_save(Path(path), content):
        return _tensors_in(_unpickled(Path(path), content, name), name)
    else:
        arrays = dict(parse_weights(content, name).arrays)
    return {key: _tensor(array, f"{name}: {key}") for key, array in arrays.items()}


def _is_of_torch_save(path: Path, content: bytes) -> bool:
    if content[:4] != b"PK\x03\x04":
        return content[:1] == b"\x80"
    try:
        with zipfile.ZipFile(path) as archive:
            return any(member.endswith(".pkl") for member in archive.namelist())
    except zipfile.BadZipFile:
        return False


def _unpickled(path: Path, content: bytes, name: str) -> Any:
    try:
        return torch.load(path, map_location="cpu", weights_only=True)
    except (pickle.UnpicklingError, AttributeError, RuntimeError) as error:
        message = None
        if content[:1] == b"\x80":
            message = refused_pickle(content, name)
        else:
            with zipfile.ZipFile(path) as archive:
                message = refused_archive(archive, len(content), name)
        raise WeightsRefused(message or f"{name} cannot be read: {error}") from error


def _tensors_in(value: Any, name: str) -> State:
    """The state dict in what a file holds: itself, or under the first usual name."""
    if isinstance(value, Mapping):
        for container in _CONTAINERS:
            if isinstance(value.get(container), Mapping):
                return _tensors_in(value[container], name)
        if any(map(torch.is_tensor, value.values())):
            return {str(key): tensor for key, tensor in value.items() if torch.is_tensor(tensor)}
        raise WeightsRefused(
            f"{name} holds {', '.join(map(brief, list(value)[:MAX_LISTED])) or 'nothing'}, but "
            f"expected tensors by name, or such a dictionary under {', '.join(_CONTAINERS)}; save "
            "model.state_dict() alone"
        )
    raise WeightsRefused(
        f"{name} holds a {type(value).__name__}, but expected tensors by name; save "
        "model.state_dict()"
    )


def _tensor(array: np.ndarray, label: str) -> torch.Tensor:
    if array.dtype.name == "bfloat16":
        return torch.from_numpy(array.view(np.uint16).copy().view(np.int16)).view(torch.bfloat16)
    if array.dtype.kind not in "fiub":
        raise WeightsRefused(
            f"{label} has the format {array.dtype}, but expected numbers of PyTorch; cast it"
        )
    native = np.ascontiguousarray(array, array.dtype.newbyteorder("="))
    return torch.from_numpy(native.reshape(array.shape).copy())


def load_into(
    module: torch.nn.Module,
    state: Mapping[str, torch.Tensor],
    name: str,
    *,
    architecture: str = "",
    rebuild: Callable[[int], torch.nn.Module] | None = None,
) -> tuple[torch.nn.Module, tuple[str, ...]]:
    """A module with the tensors of a file, every one of them in its place.

    A prefix that all names share, such as `module.`, is left out. What re-parametrisations left in
    the file is computed where the module has no such parts.

    Args:
        module: Is written to.
        name: Of the file, for messages.
        architecture: What messages call the module; its class if not given.
        rebuild: Makes the same architecture with another number of classes, which is taken where
            the classifier is all that differs.

    Returns:
        The module, or the one that was rebuilt; and what was done, one sentence each.

    >>> layer, weight = torch.nn.Linear(2, 1), torch.ones(1, 2)
    >>> _, notes = load_into(layer, {"module.weight": weight, "module.bias": weight[0, :1]}, "f.pt")
    >>> notes
    ("f.pt: the prefix 'module.' of all names is left out",)
    """
    notes: list[str] = []
    own = module.state_dict()
    expected = {key: tuple(tensor.shape) for key, tensor in own.items()}
    arrays = dict(state)
    if not set(expected) & set(arrays) and (prefix := common_prefix(arrays)):
        arrays = {key.removeprefix(prefix): tensor for key, tensor in arrays.items()}
        notes.append(f"{name}: the prefix {prefix!r} of all names is left out")
    arrays, assumed = _with_computed(arrays, expected, name)
    notes += [f"{name}: {sentence}" for sentence in assumed]
    for key, tensor in arrays.items():
        if key in own and own[key].is_floating_point() and not tensor.is_floating_point():
            raise WeightsRefused(
                f"{name}: {brief(key)} is of {tensor.dtype}, but expected {own[key].dtype}; of "
                "quantised weights save those that they stand for"
            )
    problems, differing = _problems(arrays, expected)
    classes = {(shape[:1], expected[key][:1]) for key, shape in differing.items()}
    if rebuild is not None and problems and len(problems) == len(differing) and len(classes) == 1:
        count = next(iter(classes))[0][0]
        other = rebuild(count)
        if not _problems(arrays, {k: tuple(t.shape) for k, t in other.state_dict().items()})[0]:
            notes.append(f"{name}: the classifier has {count} classes")
            module, problems = other, []
    if problems:
        raise WeightsRefused(
            _message(problems, arrays, expected, architecture or type(module).__name__, name)
        )
    floats = {tensor.dtype for tensor in arrays.values() if tensor.is_floating_point()}
    if floats == {torch.float64}:
        module.double()
    module.load_state_dict(arrays, strict=False)  # but for the counters nothing is missing
    return module, tuple(notes)


def _with_computed(
    arrays: State, expected: Mapping[str, Any], name: str
) -> tuple[State, tuple[str, ...]]:
    """The same, what is re-parametrised in the file and not in the module computed; how."""
    if set(expected) <= set(arrays) or not any(
        key.endswith(("_g", "_v", "_orig", "_mask")) or "parametrizations." in key for key in arrays
    ):
        return arrays, ()
    plain = {
        key: tensor.float().numpy() if tensor.dtype == torch.bfloat16 else tensor.numpy()
        for key, tensor in arrays.items()
    }
    stored = WeightsFile(name, plain, {})
    stored.require_computed()
    own = {key: tensor for key, tensor in arrays.items() if key in expected}
    computed = {key: _tensor(array, key) for key, array in stored.arrays.items() if key not in own}
    return own | computed, tuple(text for key, text in stored.assumed.items() if key in computed)


def _problems(
    arrays: State, expected: Mapping[str, tuple[int, ...]]
) -> tuple[list[str], dict[str, tuple[int, ...]]]:
    """What does not fit, one line each; and the shapes that differ."""
    differing = {
        key: tuple(arrays[key].shape)
        for key, shape in expected.items()
        if key in arrays and tuple(arrays[key].shape) != shape
    }
    missing = [key for key in expected if key not in arrays and not key.endswith(_COUNTER)]
    unexpected = [key for key in arrays if key not in expected and not key.endswith(_COUNTER)]
    problems = [f"{brief(key)} is missing" for key in missing]
    problems += [f"{brief(key)} is unexpected" for key in unexpected]
    problems += [
        f"{brief(key)} has shape {shape}, expected {expected[key]}"
        for key, shape in differing.items()
    ]
    return problems, differing


def _message(
    problems: list[str],
    arrays: State,
    expected: Mapping[str, tuple[int, ...]],
    architecture: str,
    name: str,
) -> str:
    listed = "; ".join(problems[:MAX_LISTED])
    rest = len(problems) - MAX_LISTED
    more = f"; and {rest} more" if rest > 0 else ""
    first = next((key for key in expected if key not in arrays), None)
    prefixes = prefixes_of(arrays, first) if first is not None else []
    shapes = {key: np.empty(tuple(tensor.shape), np.int8) for key, tensor in arrays.items()}
    if prefixes:
        remedy = (
            f"its tensors stand below {prefixes[0]!r} beside others; save those alone, as in "
            f"{{k.removeprefix({prefixes[0]!r}): v for k, v in state.items() if "
            f"k.startswith({prefixes[0]!r})}}"
        )
    elif len(problems) > MAX_LISTED and (kind := looks_like(shapes)):
        remedy = f"they look like {kind}: name the architecture that they are of"
    else:
        remedy = "name the architecture that they are of, or build it in MODULE:FUNCTION"
    return (
        f"{name}: {len(problems)} tensors are not those of {architecture}: {listed}{more}; {remedy}"
    )
