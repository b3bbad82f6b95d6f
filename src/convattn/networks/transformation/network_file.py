"""A converted function in one file: its attention layers, and the program that they go into.

The arrays of a layer are stored under its name and their own path in it, such as
`stem/encoding.values`; what is no array of it is JSON in the metadata. The program is
`jax.export`'s, with the layers as its arguments, so that the file runs without the code of the
function; images may come in batches of any size where the function takes them.
"""

import hashlib
import json
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import Any

import jax
import numpy as np
from jax import Array, export

from convattn.encodings.layer import AttentionLayer
from convattn.extras import require
from convattn.files import brief, parse_json, write_file
from convattn.networks.transformation.application import Application, Layers, require_layers
from convattn.networks.transformation.report import output_differences
from convattn.networks.transformation.with_attention import is_array
from convattn.networks.weights.files import WeightsFile, read_weights
from convattn.networks.weights.formats import WeightsRefused, write_safetensors
from convattn.networks.weights.stored_layer import (
    check_step,
    describe,
    described_layer,
    layer_arrays,
)

FORMAT, VERSION = "convattn function", "1"
PROGRAM = "program"  # the name of its bytes among the arrays
PLATFORMS = ("cpu", "cuda", "tpu")
REMEDY = "convert the network again"


@dataclass(frozen=True)
class Network:
    """A converted function from a file: `network(*arguments)`.

    Attributes:
        layers: By name.
        exported: The program, on the arrays of the layers and the arguments.
    """

    layers: dict[str, AttentionLayer]
    exported: export.Exported = field(repr=False)

    def __call__(self, *args: Any) -> Any:
        """The function with these layers."""
        return self.apply(self.layers, *args)

    def apply(self, layers: Layers, *args: Any) -> Any:
        """The function with others of the same structure, such as trained ones."""
        require_layers(layers, self.layers)
        return self.exported.call(jax.tree.leaves(dict(layers)), *args)[0]

    def inputs(self, *args: Any) -> dict[str, Array]:
        """The images `[batch, *space, channels]` of each layer, but of those in loops."""
        return self.exported.call(jax.tree.leaves(self.layers), *args)[1]

    @property
    def arguments(self) -> Sequence[Any]:
        """Shapes and dtypes of what it is called with, its leaves in their order."""
        return self.exported.in_avals[len(jax.tree.leaves(self.layers)) :]


def save_network(layers: Layers, apply: Application, path: Path | str, *example: Any) -> None:
    """Save a converted function so that `load_network` runs it; the file is whole or not there.

    Args:
        layers, apply: From `attention_of`; the layers trained or not.
        path: Ends in `.safetensors`.
        example: What the function is called with. Arrays whose first axis is as long as that of the
            first array are batches: the file takes any number of images, unless the function needs
            to know it, or is another one for one image, two, or as many as these.

    Raises:
        ValueError: For another ending, for numbers that are not finite, and for a function that
            `jax.export` refuses. `OSError` if the file cannot be written.

    >>> import tempfile, jax.numpy as jnp, convattn as ca
    >>> images, kernel = jnp.ones((1, 4, 1)), jnp.ones((3, 1, 1))
    >>> def blur(images):
    ...     order = ("NWC", "WIO", "NWC")
    ...     return jax.lax.conv_general_dilated(
    ...         images, kernel, (1,), "SAME", dimension_numbers=order
    ...     )
    >>> layers, apply, _ = ca.attention_of(blur, images)
    >>> path = Path(tempfile.mkdtemp()) / "blur.safetensors"
    >>> save_network(layers, apply, path, images)
    >>> network = load_network(path)
    >>> network(jnp.ones((5, 4, 1))).shape, list(network.layers)
    ((5, 4, 1), ['convolution'])
    """
    if Path(path).suffix != ".safetensors":
        raise ValueError(f"{path}: a network is written as .safetensors; name it so")
    write_file(Path(path), network_bytes(layers, apply, *example))


def network_bytes(layers: Layers, apply: Application, *example: Any) -> bytes:
    """The content of the file."""
    leaves, structure = jax.tree.flatten(dict(layers))

    def program(leaves: Sequence[Array], *args: Any) -> Any:
        return apply.outputs_and_inputs(jax.tree.unflatten(structure, leaves), *args)

    _require_arrays(example)
    batched = 1 if _is_for_any_batch(apply.function, example) else None
    content = exported_bytes(program, leaves, *example, batched=batched)
    arrays = {PROGRAM: np.frombuffer(content, np.uint8)}
    described = {}
    for name, layer in layers.items():
        axes = len(apply.depths[name])
        check_step(layer, axes)
        arrays |= {f"{name}/{path}": array for path, array in layer_arrays(layer).items()}
        text = json.loads(json.dumps(describe(layer), default=int))
        described[name] = {"layer": text, "axes": axes}
    metadata = {
        "format": FORMAT,
        "version": VERSION,
        "layers": json.dumps(described),
        "sha256": hashlib.sha256(content).hexdigest(),
    }
    return write_safetensors(arrays, metadata)


def exported_bytes(
    function: Callable[..., Any], *example: Any, batched: int | None = None
) -> bytes:
    """A function as StableHLO for CPU, CUDA and TPU, as `jax.export.deserialize` reads it.

    Args:
        example: Arrays, and containers of them.
        batched: From which of them on first axes as long as that of the first array are batches of
            any size; None takes all sizes as they are.

    >>> images = np.ones((1, 4, 3), np.float32)
    >>> content = exported_bytes(lambda images: images.mean(1), images)
    >>> export.deserialize(content).call(images).tolist()
    [[1.0, 1.0, 1.0]]
    """
    require("flatbuffers")
    _require_arrays(example)
    exact = jax.tree.map(lambda array: jax.ShapeDtypeStruct(array.shape, array.dtype), example)
    shapes_to_try = [exact]
    if batched is not None:
        shapes_to_try.insert(0, (*exact[:batched], *_with_batch(exact[batched:])))
    problems = []
    for shapes in shapes_to_try:
        try:
            exported = export.export(jax.jit(function), platforms=PLATFORMS)(*shapes)
            return bytes(exported.serialize())
        except Exception as error:  # the function's own, on a size that it needs to know
            problems.append(error)
    raise ValueError(f"the function cannot be exported: {brief(str(problems[-1]))}")


def _require_arrays(example: Any) -> None:
    """Refuse numbers of Python, which would be no arguments of a program."""
    for leaf in jax.tree.leaves(example):
        if not is_array(leaf):
            raise ValueError(
                f"example holds {leaf!r}, but expected arrays; put numbers of Python into the "
                "function"
            )


def _with_batch(shapes: Sequence[Any]) -> Sequence[Any]:
    """Shapes whose first axis, where it is the batch, has any size."""
    sizes = [leaf.shape[0] for leaf in jax.tree.leaves(shapes) if leaf.shape]
    (batch,) = export.symbolic_shape("batch")

    def of_any_size(leaf: Any) -> Any:
        if leaf.shape[:1] != (sizes[0],):
            return leaf
        return jax.ShapeDtypeStruct((batch, *leaf.shape[1:]), leaf.dtype)

    return jax.tree.map(of_any_size, shapes) if sizes else shapes


def _is_for_any_batch(function: Callable[..., Any], example: Sequence[Any]) -> bool:
    """Whether a function traced with any size of batch is itself on one image, two, and all.

    It may ask for the size: a symbolic one is equal to no number.
    """
    sizes = [leaf.shape[0] for leaf in jax.tree.leaves(example) if leaf.shape]
    compiled = jax.jit(function)

    def of_size(leaf: Any, size: int) -> Any:
        return leaf[np.arange(size) % sizes[0]] if leaf.shape[:1] == (sizes[0],) else leaf

    try:
        program = export.export(compiled)(*_with_batch(example)).call
        for size in {1, 2, *sizes[:1]}:
            images = jax.tree.map(partial(of_size, size=size), example)
            outputs = [each(*images) for each in (compiled, program)]
            kinds = [jax.tree.map(jax.typeof, each) for each in outputs]
            compared = output_differences(*outputs) or []
            near = all(difference <= most * 2.0**-11.5 for difference, most, _ in compared)
            if kinds[0] != kinds[1] or not near:
                return False
    except Exception:  # the function's own, on a size that it does not take
        return False
    return True


def load_network(path: Path | str) -> Network:
    """Load a network that `save_network` or `convattn convert network` has written.

    The code of the network is not needed.

    Raises:
        WeightsRefused: A `ValueError`, for other files, and for what is missing, surplus, damaged
            or does not fit together. `OSError` if the file cannot be read.
    """
    try:
        return restore_network(read_weights(path))
    except FileNotFoundError as error:
        raise FileNotFoundError(
            error.errno,
            "no such file, but expected one that convattn convert network has written; networks "
            "are loaded from files, not by their names",
            str(path),
        ) from None


def restore_network(file: WeightsFile) -> Network:
    """The network that a file holds."""
    layout = file.metadata.get("format"), file.metadata.get("version")
    if layout != (FORMAT, VERSION):
        raise WeightsRefused(
            f"{file.name} holds no network of this library (format and version "
            f"{brief(layout)}, expected {(FORMAT, VERSION)}); expected a file from convattn "
            "convert network"
        )
    require("flatbuffers")
    arrays = dict(file.arrays)
    try:
        content = np.asarray(arrays.pop(PROGRAM)).tobytes()
        described = parse_json(file.metadata["layers"])
        layers: dict[str, Any] = {}
        for name, parts in described.items():
            own = [key for key in arrays if key.rpartition("/")[0] == name]
            stripped = {key.rpartition("/")[2]: arrays.pop(key) for key in own}
            layer_file = WeightsFile(f"{file.name}: {brief(name)}", stripped, {})
            layers[name] = described_layer(layer_file, parts["layer"], parts["axes"])
        if hashlib.sha256(content).hexdigest() != file.metadata["sha256"]:
            raise ValueError("the program is not the one that was written")
        exported = export.deserialize(bytearray(content))
    except WeightsRefused:
        raise
    except Exception as error:
        raise WeightsRefused(
            f"{file.name} is damaged ({brief(str(error) or repr(error))}); {REMEDY}"
        ) from error
    if arrays:
        raise WeightsRefused(
            f"{file.name} holds {brief(min(arrays))}, of which no layer knows; {REMEDY}"
        )
    leaves = jax.tree.leaves(layers)
    parameters = exported.in_avals[: len(leaves)]
    if [(a.shape, a.dtype) for a in parameters] != [(a.shape, a.dtype) for a in leaves]:
        raise WeightsRefused(f"{file.name}: its layers are not those of its program; {REMEDY}")
    return Network(layers, exported)
