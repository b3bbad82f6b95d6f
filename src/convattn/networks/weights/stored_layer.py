"""An `AttentionLayer` as arrays and text, and back, without losing a bit.

Every array of the layer is stored under its path, such as `encoding.values`. Everything else, the
classes, the sizes and which parts are absent, is JSON under `layer` in the file's metadata.
"""

import json
from collections.abc import Mapping
from dataclasses import fields, is_dataclass
from pathlib import Path
from typing import Any, get_args, get_origin

import jax
import numpy as np

from convattn import encodings
from convattn.constructions.two_layers import TwoLayers
from convattn.encodings.layer import AttentionLayer, ContentScores, Register
from convattn.files import brief, parse_json, write_file
from convattn.networks.weights.consistency import check_layer
from convattn.networks.weights.files import WeightsFile, read_weights, require_finite
from convattn.networks.weights.formats import WeightsRefused, write_npz, write_safetensors
from convattn.operators.arrays import as_array
from convattn.operators.padding import FILLS, Padding

FORMAT, VERSION = "convattn", "1"
STORED_NAMES = {"uniform_weight": "leak"}  # fields whose name in files is another
REMEDY = "convert the kernel again, or save the layer anew"
# Every encoding is stored by its class's name and fields; the package lists them all.
CLASSES: Mapping[str, type] = {
    name: member
    for name, member in vars(encodings).items()
    if isinstance(member, type) and issubclass(member, encodings.Encoding) and is_dataclass(member)
} | {kind.__name__: kind for kind in (AttentionLayer, ContentScores, Register, TwoLayers)}
LAYERS = ("AttentionLayer", "TwoLayers")
LATER = {"padding": None, "register": None, "causal": False}  # what older files do not have
PARTS = {
    "encoding": tuple(sorted(name for name in CLASSES if name.endswith("Encoding"))),
    "content": ("ContentScores",),
    "register": ("Register",),
    "first": ("AttentionLayer",),
    "second": ("AttentionLayer",),
}


def save_layer(layer: AttentionLayer | TwoLayers, path: Path | str) -> None:
    """Save a layer so that `load_layer` restores it exactly; the file is whole or not there.

    Args:
        path: Ends in `.safetensors` or `.npz`.

    Raises:
        ValueError: For another ending, for a layer whose parts do not fit together, and for numbers
            that are not finite. `OSError` if it cannot be written.

    >>> import tempfile, convattn as ca
    >>> path = Path(tempfile.mkdtemp()) / "layer.safetensors"
    >>> ca.save_layer(ca.conv_to_attention([[[1.0]], [[2.0]], [[3.0]]]), path)
    >>> ca.apply_attention(ca.load_layer(path), [[[1.0], [2.0], [4.0]]]).ravel().round(4).tolist()
    [8.0, 17.0, 10.0]
    """
    path = Path(path)
    if not isinstance(layer, AttentionLayer | TwoLayers):
        raise ValueError(
            f"layer={type(layer).__name__}, but expected an AttentionLayer or TwoLayers"
        )
    check_layer(layer)
    write_file(path, encode(layer_arrays(layer), layer_metadata(layer), path.suffix))


def load_layer(path: Path | str) -> Any:
    """Restore a layer that `save_layer` or `convattn convert kernel` has written.

    Args:
        path: The file.

    Returns:
        An `AttentionLayer`, or `TwoLayers`.

    Raises:
        WeightsRefused: A `ValueError`, for what `read_weights` refuses, for another layout, and for
            parts that are missing, surplus or do not fit together; `ValueError` for 64-bit arrays
            while JAX's 64-bit types are off. `OSError` if the file cannot be read.
    """
    return restore_layer(read_weights(path))


def encode(arrays: Mapping[str, np.ndarray], metadata: Mapping[str, str], suffix: str) -> bytes:
    """The content of a file with that ending."""
    if suffix == ".safetensors":
        return write_safetensors(arrays, metadata)
    if suffix == ".npz":
        return write_npz(dict(arrays), dict(metadata))
    raise ValueError(
        f"the file's name ends in {suffix or 'nothing'!r}, but weights are written as .safetensors "
        "or .npz"
    )


def layer_arrays(layer: Any) -> dict[str, np.ndarray]:
    """Every array of a layer, or of any pytree, under its path in it."""
    leaves = jax.tree_util.tree_flatten_with_path(layer)[0]
    paths = [jax.tree_util.keystr(path, simple=True, separator=".") for path, _ in leaves]
    names = (".".join(map(_stored_name, path.split("."))) for path in paths)
    return {name: np.asarray(leaf) for name, (_, leaf) in zip(names, leaves, strict=True)}


def _stored_name(field: str) -> str:
    """The name of a field in files.

    >>> _stored_name("uniform_weight"), _stored_name("values")
    ('leak', 'values')
    """
    return STORED_NAMES.get(field, field)


def layer_metadata(layer: AttentionLayer | TwoLayers) -> dict[str, str]:
    """The text that goes with `layer_arrays`."""
    text = json.dumps(describe(layer), sort_keys=True, default=int)
    return {"format": FORMAT, "version": VERSION, "layer": text}


def describe(node: Any) -> dict[str, Any]:
    """What a layer holds apart from arrays: classes, static fields, absent parts, tuples."""
    description: dict[str, Any] = {"class": type(node).__name__}
    for field in fields(node):
        value = getattr(node, field.name)
        if field.name in LATER and value is LATER[field.name]:
            continue  # as files were before rings could be filled, before registers and masks
        name = _stored_name(field.name)
        if is_dataclass(value):
            description[name] = describe(value)
        elif isinstance(value, Padding) and not value.lower:
            description[name] = value[:3]  # as files were before SAME_LOWER
        elif field.metadata.get("static") or value is None:
            description[name] = value
        elif isinstance(value, tuple):
            description[name] = {"arrays": len(value)}
    return description


def restore_layer(file: WeightsFile) -> AttentionLayer | TwoLayers:
    """The `AttentionLayer` or `TwoLayers` that a file of our layout holds."""
    if file.metadata.get("format") != FORMAT or "layer" not in file.metadata:
        raise WeightsRefused(
            f"{file.name} holds no layer of this library (metadata format="
            f"{brief(file.metadata.get('format'))}); expected a file from save_layer or "
            "convattn convert kernel"
        )
    if file.metadata.get("version") != VERSION:
        raise WeightsRefused(
            f"{file.name} has version {brief(file.metadata.get('version'))} of the layout, but "
            f"this library reads {VERSION!r}; use the library that wrote it, or convert anew"
        )
    try:
        description = parse_json(file.metadata["layer"])
    except ValueError as error:
        raise WeightsRefused(
            f"{file.name}: its description is no JSON ({error}); {REMEDY}"
        ) from error
    return described_layer(file, description)


def check_step(layer: AttentionLayer | TwoLayers, axes: int) -> None:
    """`check_layer` of the first step of a loop, and all numbers finite.

    Args:
        axes: How many axes each array has before its own.
    """
    for path, array in layer_arrays(layer).items() if axes else ():
        require_finite(array, path)
    check_layer(jax.tree.map(lambda array: array[(0,) * axes], layer) if axes else layer)


def described_layer(
    file: WeightsFile, description: Any, axes: int = 0
) -> AttentionLayer | TwoLayers:
    """The layer of these arrays.

    Args:
        description: From `describe`.
        axes: How many axes each array has before its own, as of the layers of all steps of a loop.
    """
    used: set[str] = set()
    layer: AttentionLayer | TwoLayers = _restore(file, description, "", LAYERS, used)
    surplus = [name for name in file.arrays if name not in used]
    if surplus:
        raise WeightsRefused(
            f"{file.name} holds {brief(surplus[0])}, of which its layer knows nothing; {REMEDY}"
        )
    try:
        check_step(layer, axes)
    except (ArithmeticError, AttributeError, LookupError, TypeError, ValueError) as error:
        raise WeightsRefused(
            f"{file.name} describes no layer that works: {str(error)[:1000]}; {REMEDY}"
        ) from error
    return layer


def restore_one(file: WeightsFile) -> AttentionLayer:
    """The `AttentionLayer` that a file of our layout holds."""
    layer = restore_layer(file)
    if isinstance(layer, TwoLayers):
        raise WeightsRefused(
            f"{file.name} holds two layers for one convolution, but expected a single one; convert "
            "the kernel without --layers 2"
        )
    return layer


def _restore(
    file: WeightsFile, description: Any, path: str, allowed: tuple[str, ...], used: set[str]
) -> Any:
    where = f"{file.name}: {path or 'the layer'}"
    name = description.get("class") if isinstance(description, dict) else None
    if name not in allowed:
        raise WeightsRefused(
            f"{where} is described as {brief(name)}, but expected {' or '.join(allowed)}; {REMEDY}"
        )
    cls = CLASSES[name]
    surplus = {*description} - {"class", *(_stored_name(field.name) for field in fields(cls))}
    if surplus:
        raise WeightsRefused(
            f"{where} has the unknown fields {brief(sorted(surplus))}, but expected those of "
            f"{name}; {REMEDY}"
        )

    def array(label: str) -> jax.Array:
        used.add(label)
        return as_array(file[label], f"{file.name}: {label}")

    values: dict[str, Any] = {}
    for field in fields(cls):
        stored = _stored_name(field.name)
        label = f"{path}.{stored}" if path else stored
        value = description.get(stored, LATER.get(field.name))
        if field.name == "padding":
            values[field.name] = _restore_padding(value, f"{file.name}: {label}")
        elif field.metadata.get("static"):
            values[field.name] = _frozen(value, f"{file.name}: {label}")
            if not _is_of(values[field.name], field.type):
                raise WeightsRefused(
                    f"{file.name}: {label}={brief(value)}, but expected {field.type}; {REMEDY}"
                )
        elif field.name in PARTS and name in LAYERS and value is not None:
            values[field.name] = _restore(file, value, label, PARTS[field.name], used)
        elif value is None and (stored in description or field.name in LATER):
            values[field.name] = None
        elif isinstance(value, dict) and isinstance(value.get("arrays"), int):
            values[field.name] = tuple(array(f"{label}.{i}") for i in range(value["arrays"]))
        elif value is None and (name, field.name) == ("ContentScores", "tables"):
            values[field.name] = None  # a file from before there were tables
        elif value is None:
            values[field.name] = array(label)
        else:
            raise WeightsRefused(
                f"{file.name}: {label} is described as {brief(value)}, but expected an array; "
                f"{REMEDY}"
            )
    return cls(**values)


def _is_of(value: Any, kind: Any) -> bool:
    """Whether a size is as its field is annotated: an integer, a truth value, tuples of them.

    >>> _is_of(((1, 2),), tuple[tuple[int, ...], ...]), _is_of((((), 2),), tuple[tuple[int, ...]])
    (True, False)
    """
    if get_origin(kind) is not tuple:
        return type(value) is kind
    kinds = get_args(kind)
    if not isinstance(value, tuple):
        return False
    if kinds[-1] is Ellipsis:
        return all(_is_of(part, kinds[0]) for part in value)
    return len(value) == len(kinds) and all(map(_is_of, value, kinds))


def _restore_padding(value: Any, name: str) -> Padding | None:
    """A padding from its fill, widths and reach."""
    if value is None:
        return None
    parts = value if isinstance(value, list) else []
    if len(parts) not in (3, 4) or parts[0] not in [*FILLS]:
        raise WeightsRefused(
            f"{name}={brief(value)}, but expected one of {[*FILLS]}, widths and reach; {REMEDY}"
        )
    return Padding(parts[0], *(_frozen(part, name) for part in parts[1:]))


def _frozen(value: Any, name: str) -> Any:
    """Lists as tuples; only integers and truth values may be in them."""
    if isinstance(value, list):
        return tuple(_frozen(part, name) for part in value)
    if isinstance(value, int):
        return value
    raise WeightsRefused(
        f"{name}={brief(value)}, but expected integers, or lists of them; {REMEDY}"
    )
