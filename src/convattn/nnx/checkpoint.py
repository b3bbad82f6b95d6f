"""State dicts of torchvision and timm, read into the modules of `architectures` by their names.

PyTorch's kernels are `[out, in, K, K]` and its linear maps `[out, in]`; `weight` and `bias` of a
norm are its scale and bias, `running_mean` and `running_var` its statistics. `num_batches_tracked`
counts steps of training and is not read.
"""

from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import Any, NamedTuple

import jax.numpy as jnp
import numpy as np
from flax import nnx
from jax import Array

from convattn.networks.weights.convolution_layout import arrange, from_layout
from convattn.networks.weights.files import WeightsFile, read_weights, refuse
from convattn.networks.weights.names import common_prefix, looks_like, prefixes_of
from convattn.nnx.architectures import ARCHITECTURES, MOBILE_STAGES
from convattn.operators.arrays import as_array

CLASSIFIERS = ("fc", "classifier.6", "classifier.1", "classifier", "head.fc")
FEW = 3  # problems that a message lists beside what the tensors look like
UNREAD = "num_batches_tracked"


class Tensor(NamedTuple):
    """A tensor that a module holds.

    Attributes:
        module: The module that holds it, under `attribute`.
        attribute: Its name there.
        kind: The class of the variable.
        layout: Of its axes in PyTorch, `"oihw"` for kernels and linear maps.
        shape: In PyTorch's order.
    """

    module: nnx.Module
    attribute: str
    kind: type
    layout: str
    shape: tuple[int, ...]


def load_checkpoint(path: Path | str, architecture: str) -> Any:
    """A network with the weights of a file, in evaluation mode.

    Args:
        path: A `.safetensors` or `.npz` file of a state dict.
        architecture: One of `ARCHITECTURES`, such as `"torchvision/resnet50"`. The number of
            classes is the file's.

    Returns:
        An `nnx.Module` on images `[batch, height, width, 3]`, in the file's dtype.

    Raises:
        ValueError: For an unknown architecture; and with the tensors that are missing, unexpected
            or of another shape, or what network they look like if those are many.
            `WeightsRefused`, a ValueError, for what is no such file, pickles among them; `OSError`
            if it cannot be read.
    """
    known_architecture(architecture)
    arrays = read_weights(path).tensors()
    try:
        return from_state_dict(arrays, architecture)
    except ValueError as error:
        raise ValueError(f"{path}: {error}") from error


def from_state_dict(arrays: Mapping[str, Any], architecture: str) -> Any:
    """The same, from arrays by name.

    A prefix that all names share, such as `module.`, is left out.

    Raises:
        ValueError: As `load_checkpoint` does.
    """
    names = TIMM_MOBILE if architecture == "timm/mobilenetv2_100" else {}
    make = known_architecture(architecture)
    stored = WeightsFile("the state dict", {k: np.asarray(v) for k, v in arrays.items()}, {})
    stored.require_computed()
    prefix = common_prefix(stored.arrays)
    arrays = {
        renamed(name.removeprefix(prefix), names): value
        for name, value in stored.arrays.items()
        if not name.endswith(UNREAD)
    }
    heads = [f"{name}.weight" for name in CLASSIFIERS if f"{name}.weight" in arrays]
    classes = max([*np.shape(arrays[heads[0]])[:1], 1]) if heads else 1000
    model = nnx.eval_shape(lambda: make(classes=classes, rngs=nnx.Rngs(0)))
    wanted = dict(tensors(model))
    problems = [f"{name} is missing" for name in wanted if name not in arrays]
    problems += [f"{name} is unexpected" for name in arrays if name not in wanted]
    problems += [
        f"{name} has shape {tuple(np.shape(arrays[name]))}, expected {tensor.shape}"
        for name, tensor in wanted.items()
        if name in arrays and tuple(np.shape(arrays[name])) != tensor.shape
    ]
    what = f"the tensors are not those of {architecture}"
    if len(problems) > FEW and (kind := looks_like(arrays)):
        first = "; ".join(problems[:FEW])
        raise ValueError(f"{what}, but look like {kind} ({len(problems)} differ: {first})")
    if problems and (prefixes := prefixes_of(arrays, next(iter(wanted)))):
        what += f" (some stand below {prefixes[0]!r}: give these alone, without it)"
    refuse(problems, what)
    for name, tensor in wanted.items():
        value = parameter(from_layout(np.asarray(arrays[name]), tensor.layout), name)
        setattr(tensor.module, tensor.attribute, tensor.kind(value))
    model.eval()
    return model


def known_architecture(name: str) -> Callable[..., nnx.Module]:
    """What builds the network of that name.

    Raises:
        ValueError: With the names that there are.
    """
    if name not in ARCHITECTURES:
        raise ValueError(
            f"architecture={name!r}, but expected one of {', '.join(ARCHITECTURES)}; for another "
            "network load the weights into its own nnx.Module"
        )
    return ARCHITECTURES[name]


def parameter(array: np.ndarray, name: str) -> Array:
    """An array of floats as JAX holds it, without losing bits.

    Raises:
        ValueError: For other numbers, and for float64 while 64-bit types are off.
    """
    value = as_array(array, name)
    if not jnp.issubdtype(value.dtype, jnp.floating):
        raise ValueError(f"{name}.dtype={value.dtype}, but expected floats")
    return value


def tensors(model: nnx.Module) -> Iterator[tuple[str, Tensor]]:
    """Every tensor that a model holds, under PyTorch's name.

    >>> model = nnx.List([nnx.Linear(2, 3, rngs=nnx.Rngs(0))])
    >>> [(name, tensor.shape) for name, tensor in tensors(model)]
    [('0.weight', (3, 2)), ('0.bias', (3,))]
    """
    for path, module in nnx.iter_graph(model):
        if not isinstance(module, nnx.Module):
            continue
        where = "".join(f"{part}." for part in path)
        for attribute, name, layout in held(module):
            variable = getattr(module, attribute)
            if variable is None:
                continue
            shape = arrange(np.empty(variable.shape, np.int8), layout).shape
            yield f"{where}{name}", Tensor(module, attribute, type(variable), layout, shape)


def held(module: nnx.Module) -> Iterator[tuple[str, str, str]]:
    """The attributes of one module with tensors, PyTorch's names, and the order of its axes."""
    if isinstance(module, nnx.Conv | nnx.Linear):
        yield "kernel", "weight", "oihw"
        yield "bias", "bias", "hwio"
    elif isinstance(module, nnx.BatchNorm | nnx.LayerNorm):
        yield "scale", "weight", "hwio"
        yield "bias", "bias", "hwio"
        if isinstance(module, nnx.BatchNorm):
            yield "mean", "running_mean", "hwio"
            yield "var", "running_var", "hwio"
    else:
        for name, value in vars(module).items():
            if isinstance(value, nnx.Param):
                yield name, name, "hwio"


def renamed(name: str, names: Mapping[str, str]) -> str:
    """A name whose module has another name in the architecture."""
    module, _, tensor = name.rpartition(".")
    return f"{names[module]}.{tensor}" if module in names else name


def _timm_mobile() -> Iterator[tuple[str, str]]:
    """timm's names of MobileNetV2's modules, and torchvision's."""
    yield from {
        "conv_stem": "features.0.0",
        "bn1": "features.0.1",
        "conv_head": "features.18.0",
        "bn2": "features.18.1",
        "classifier": "classifier.1",
    }.items()
    number = 0
    for stage, (expansion, _, count, _) in enumerate(MOBILE_STAGES):
        theirs = ["conv_pw", "bn1", "conv_dw", "bn2", "conv_pwl", "bn3"]
        ours = ["0.0", "0.1", "1.0", "1.1", "2", "3"]
        if expansion == 1:
            theirs, ours = ["conv_dw", "bn1", "conv_pw", "bn2"], ["0.0", "0.1", "1", "2"]
        for index in range(count):
            number += 1
            for their, our in zip(theirs, ours, strict=True):
                yield f"blocks.{stage}.{index}.{their}", f"features.{number}.conv.{our}"


TIMM_MOBILE = dict(_timm_mobile())
