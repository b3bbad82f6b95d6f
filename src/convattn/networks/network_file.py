"""A network as one file of arrays and text, and back, without losing a bit.

The arrays of a layer are stored under its name and their own path in it, such as
`blocks.0.first.output` or `stem.encoding.values`. The steps, and of every attention layer what is
no array, are JSON under `network` in the file's metadata.
"""

import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import jax.numpy as jnp
import numpy as np

from convattn.constructions.geometry import MOST_STEPS
from convattn.files import parse_json, shown, write_file
from convattn.networks.steps import (
    Attention,
    Convolution,
    Linear,
    Mean,
    Network,
    Relu,
    Residual,
    Scaling,
    Step,
)
from convattn.networks.weights.files import WeightsFile, read_weights
from convattn.networks.weights.formats import WeightsRefused, write_safetensors
from convattn.networks.weights.stored_layer import FORMAT as LAYER_FORMAT
from convattn.networks.weights.stored_layer import VERSION as LAYER_VERSION
from convattn.networks.weights.stored_layer import describe, layer_arrays, restore_layer
from convattn.operators.integers import as_integer

FORMAT, VERSION = "convattn network", "1"
_LAYER = {"format": LAYER_FORMAT, "version": LAYER_VERSION}
PARTS: dict[str, tuple[type, tuple[str, ...]]] = {
    "convolution": (Convolution, ("kernel", "bias")),
    "linear": (Linear, ("kernel", "bias")),
    "scaling": (Scaling, ("shift", "scale")),
    "relu": (Relu, ()),
    "mean": (Mean, ()),
}


def save_network(network: Network, path: Path | str) -> None:
    """Save a network so that `load_network` restores it exactly; the file is whole or not there.

    Args:
        path: Ends in `.safetensors`.

    Raises:
        ValueError: For another ending, for two layers of one name, and for an attention layer whose
            parts do not fit together. `OSError` if it cannot be written.

    >>> import tempfile
    >>> path = Path(tempfile.mkdtemp()) / "network.safetensors"
    >>> save_network((Relu(), Mean(), Linear(jnp.ones((1, 2)), jnp.zeros(2))), path)
    >>> [type(step).__name__ for step in load_network(path)]
    ['Relu', 'Mean', 'Linear']
    """
    if Path(path).suffix != ".safetensors":
        raise ValueError(f"{path}: a network is written as .safetensors; name it so")
    write_file(Path(path), network_bytes(network))


def network_bytes(network: Network) -> bytes:
    """The content of the file.

    Raises:
        ValueError: For two layers of one name.
    """
    arrays: dict[str, np.ndarray] = {}

    def add(name: str, found: dict[str, np.ndarray]) -> None:
        for part, array in found.items():
            label = f"{name}.{part}"
            if label in arrays:
                raise ValueError(f"two layers are named {name!r}; give each its own name")
            arrays[label] = array

    def described(step: Step, number: str) -> dict[str, Any]:
        if isinstance(step, Residual):
            chains = {"branch": step.branch, "shortcut": step.shortcut}
            return {
                "step": "residual",
                **{
                    key: [described(part, f"{number}.{key}.{i}") for i, part in enumerate(chain)]
                    for key, chain in chains.items()
                },
            }
        if isinstance(step, Attention):
            name = step.name or f"layer.{number}"
            add(name, layer_arrays(step.layer))
            text = json.loads(json.dumps(describe(step.layer), default=int))
            return {"step": "attention", "name": name, "layer": text}
        kind = next(key for key, (of, _) in PARTS.items() if isinstance(step, of))
        if not PARTS[kind][1]:
            return {"step": kind}
        name = getattr(step, "name", "") or f"{kind}.{number}"
        add(name, {part: np.asarray(getattr(step, part)) for part in PARTS[kind][1]})
        stride = {"stride": step.stride} if isinstance(step, Convolution) else {}
        return {"step": kind, "name": name, **stride}

    steps = [described(step, str(number)) for number, step in enumerate(network)]
    metadata = {"format": FORMAT, "version": VERSION, "network": json.dumps(steps)}
    return write_safetensors(arrays, metadata)


def load_network(path: Path | str) -> Network:
    """Restore a network that `save_network` or `convattn convert --network` has written.

    Raises:
        WeightsRefused: A `ValueError`, for what `read_weights` refuses, for another layout, and for
            parts that are missing, surplus or do not fit together. `OSError` if the file cannot be
            read.
    """
    return restore_network(read_weights(path))


def restore_network(file: WeightsFile) -> Network:
    """The network that a file holds.

    Raises:
        WeightsRefused: As described above.
    """
    found = file.metadata.get("format"), file.metadata.get("version")
    if found != (FORMAT, VERSION) or "network" not in file.metadata:
        raise WeightsRefused(
            f"{file.name} holds no network of this library (format and version "
            f"{shown(found)}, expected {(FORMAT, VERSION)}); expected a file from convattn "
            "convert --network"
        )
    used: set[str] = set()
    try:
        described = parse_json(file.metadata["network"])
        network = _restored(file, described, used)
    except WeightsRefused:
        raise
    except (ValueError, LookupError, TypeError, AttributeError) as error:
        raise WeightsRefused(
            f"{file.name}: its description is damaged ({shown(error)}); convert the network again"
        ) from error
    surplus = sorted(set(file.arrays) - used)
    if surplus:
        raise WeightsRefused(
            f"{file.name} holds {shown(surplus[0])}, of which no layer knows; convert the network "
            "again"
        )
    return network


def _restored(file: WeightsFile, steps: Sequence[Any], used: set[str]) -> Network:
    return tuple(_step(file, described, used) for described in steps)


def _use(file: WeightsFile, name: str, labels: set[str], used: set[str]) -> None:
    """Note the arrays of a layer; none may be another's, or a short text could repeat it often."""
    if labels & used:
        raise WeightsRefused(
            f"{file.name} has two layers that are named {shown(name)}, but expected a name of its "
            "own for each; convert the network again"
        )
    used |= labels


def _step(file: WeightsFile, described: dict[str, Any], used: set[str]) -> Step:
    kind, name = described["step"], described.get("name", "")
    if kind == "residual":
        chains = (_restored(file, described[key], used) for key in ("branch", "shortcut"))
        return Residual(*chains)
    if kind == "attention":
        own = {key: file.arrays[key] for key in file.arrays if key.startswith(f"{name}.")}
        _use(file, name, set(own), used)
        stripped = {key.removeprefix(f"{name}."): array for key, array in own.items()}
        text = {**_LAYER, "layer": json.dumps(described["layer"])}
        label = f"{file.name}: {shown(name)}"
        return Attention(restore_layer(WeightsFile(label, stripped, text)), name)
    cls, parts = PARTS[kind]
    _use(file, name, {f"{name}.{part}" for part in parts}, used)
    arrays = {part: jnp.asarray(file[f"{name}.{part}"]) for part in parts}
    if kind != "convolution":
        return cls(**arrays)
    stride = as_integer(described["stride"], f"{shown(name)}: stride", most=MOST_STEPS["stride"])
    return Convolution(**arrays, stride=stride, name=name)
