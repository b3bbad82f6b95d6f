"""A converted network of `architectures` as one file, and any converted network as StableHLO.

The file holds every parameter under its path in the model, such as `layer1.0.conv1.output`, and in
its metadata the architecture, which is built anew when the file is read; batch norms are folded
into the convolutions before them. StableHLO needs nothing of this library, at one shape of images.
"""

import json
from collections.abc import Callable, Iterator
from functools import partial
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from flax import nnx
from jax import Array
from jax.typing import DTypeLike

from convattn.extras import remedy
from convattn.files import parse_json, shown
from convattn.networks.folding import fold_batch_norm
from convattn.networks.network_file import FORMAT as STEPS
from convattn.networks.network_file import restore_network
from convattn.networks.steps import apply_network
from convattn.networks.weights.files import WeightsFile, read_weights, refuse
from convattn.networks.weights.formats import WeightsRefused, write_safetensors
from convattn.nnx.architectures import ARCHITECTURES, Identity
from convattn.nnx.checkpoint import parameter
from convattn.nnx.surgery import Site, replaced

FORMAT, VERSION = "convattn model", "1"
PLATFORMS = ("cpu", "cuda", "tpu")


def fold_batch_norms(model: Any) -> Any:
    """A copy of one of our architectures with each batch norm folded into its convolution.

    Raises:
        ValueError: For statistics that are not finite, negative variances, and where the folded
            numbers leave the dtype.

    >>> make = ARCHITECTURES["torchvision/resnet18"]
    >>> model = nnx.eval_shape(lambda: without_batch_norms(make(classes=2, rngs=nnx.Rngs(0))))
    >>> model.conv1.bias.shape, model.bn1
    ((64,), Identity())
    """
    model = nnx.clone(model)
    for conv, site in normalised(model):
        norm, kernel = site.module, np.asarray(conv.kernel[...])
        held = (norm.mean, norm.var, norm.scale, norm.bias)
        if any(part is None for part in held):
            raise ValueError(f"{site.key} has no scale or no bias, but expected both")
        parts = (np.asarray(part[...]) for part in held if part is not None)
        mean, variance, scale, shift = parts
        if conv.bias is not None:
            mean = mean - np.asarray(conv.bias[...])
        try:
            found = fold_batch_norm(
                kernel, mean, variance, scale, shift, norm.epsilon, kernel.dtype
            )
        except ValueError as error:
            raise ValueError(f"{site.path}: {error}") from error
        conv.kernel[...] = jnp.asarray(found.kernel)
        conv.bias, conv.use_bias = nnx.Param(jnp.asarray(found.bias)), True
        site.put(Identity())
    return model


def without_batch_norms(model: Any) -> Any:
    """The same model with biases of zeros in place of its batch norms: what a folded one holds."""
    for conv, site in normalised(model):
        conv.bias = nnx.Param(jnp.zeros(conv.kernel.shape[-1:], conv.kernel.dtype))
        site.put(Identity())
    return model


def normalised(model: Any) -> Iterator[tuple[nnx.Conv, Site]]:
    """Each convolution with the batch norm after it: `convN` and `bnN`, or neighbours in lists."""
    for path, node in [*nnx.iter_graph(model)]:
        held = vars(node) if isinstance(node, nnx.Module) else {}
        for key, conv in [*held.items()]:
            after = str(int(key) + 1) if key.isdigit() else key.replace("conv", "bn")
            norm = held.get(after)
            if isinstance(conv, nnx.Conv) and isinstance(norm, nnx.BatchNorm):
                yield conv, Site(".".join(map(str, (*path, after))), node, after, norm)


def model_bytes(model: Any, architecture: str, classes: int, **options: Any) -> bytes:
    """The content of the file of a model from `fold_batch_norms` and `to_attention`.

    Args:
        architecture: The name that it was loaded by.
        classes: The number of its logits.
        options: exact and head_dim, as given to `to_attention`.
    """
    described = {"architecture": architecture, "classes": classes, **options}
    metadata = {"format": FORMAT, "version": VERSION, "model": json.dumps(described)}
    arrays = {name: np.asarray(variable[...]) for name, variable in parameters(model)}
    return write_safetensors(arrays, metadata)


def load_network(path: Path | str) -> Callable[[Array], Array]:
    """A network that `convattn convert --network` has written, as a function of images.

    Args:
        path: A file from a run of ours, or from a checkpoint of torchvision or timm.

    Returns:
        From images `[batch, height, width, channels]` to logits: of a checkpoint an `nnx.Module`,
        which trains; of a run its steps, as `convattn.networks.load_network` returns them, applied.

    Raises:
        WeightsRefused: A `ValueError`, for other files, and for parameters that are missing,
            surplus or of another shape. `OSError` if the file cannot be read.
    """
    try:
        file = read_weights(path)
    except FileNotFoundError as error:
        raise FileNotFoundError(
            error.errno,
            "no such file, but expected one that convattn convert --network has written; "
            "networks are loaded from files, not by their names",
            str(path),
        ) from None
    if file.metadata.get("format") == STEPS:
        return partial(apply_network, restore_network(file))
    return restore_model(file)


def restore_model(file: WeightsFile) -> Any:
    """The model that a file holds.

    Raises:
        WeightsRefused: As `load_network` does.
    """
    found = file.metadata.get("format"), file.metadata.get("version")
    if found != (FORMAT, VERSION):
        raise WeightsRefused(
            f"{file.name} holds no network of this library (format and version "
            f"{shown(found)}, expected {(FORMAT, VERSION)}); expected a file from convattn "
            "convert --network"
        )
    try:
        described = parse_json(file.metadata["model"])
        make = ARCHITECTURES[described["architecture"]]
        classes, exact, head_dim = (described[key] for key in ("classes", "exact", "head_dim"))
        model = nnx.eval_shape(
            lambda: replaced(
                without_batch_norms(make(classes=classes, rngs=nnx.Rngs(0))),
                exact=exact,
                head_dim=head_dim,
            )[0]
        )
    except (
        ValueError,
        ArithmeticError,
        LookupError,
        TypeError,
        AttributeError,
    ) as error:
        raise WeightsRefused(
            f"{file.name}: its description is damaged ({shown(error)}); convert the network again"
        ) from error
    wanted = dict(parameters(model))
    problems = [f"{name} is missing" for name in wanted if name not in file.arrays]
    problems += [f"{name} is unexpected" for name in file.arrays if name not in wanted]
    problems += [
        f"{name} has shape {file.arrays[name].shape}, expected {variable.shape}"
        for name, variable in wanted.items()
        if name in file.arrays and file.arrays[name].shape != variable.shape
    ]
    refuse(problems, f"{file.name} is damaged")
    for name, variable in wanted.items():
        variable.set_value(parameter(file[name], name))
    model.eval()
    return model


def parameters(model: Any) -> Iterator[tuple[str, nnx.Variable]]:
    """Every variable of a model by its path."""
    for path, node in nnx.iter_graph(model):
        if isinstance(node, nnx.Variable):
            yield ".".join(map(str, path)), node


def export_network(
    network: Callable[[Array], Array], shape: tuple[int, ...], dtype: DTypeLike = jnp.float32
) -> bytes:
    """A network at one shape of images as StableHLO, for CPU, CUDA and TPU.

    Args:
        network: From `load_network` or `to_attention`; its parameters become constants.
        shape: Of the images, `[batch, height, width, channels]`.

    Returns:
        What `jax.export.deserialize` reads; `.mlir_module()` of that is the text.

    Raises:
        ValueError: Without the package flatbuffers, and as the network does.

    >>> content = export_network(lambda images: images.mean((1, 2)), (1, 4, 4, 3))
    >>> jax.export.deserialize(content).call(jnp.ones((1, 4, 4, 3))).tolist()
    [[1.0, 1.0, 1.0]]
    """
    if find_spec("flatbuffers") is None:
        raise ValueError(f"jax.export needs flatbuffers: {remedy('flatbuffers')}")
    images = jax.ShapeDtypeStruct(shape, dtype)
    call = jax.jit(lambda images: network(images))
    return bytes(jax.export.export(call, platforms=PLATFORMS)(images).serialize())
