"""``convattn convert``: turn a convolution's weights into those of an attention layer."""

import io
import json as json_format
import math
from collections.abc import Sequence
from dataclasses import dataclass, fields, is_dataclass
from pathlib import Path
from typing import Any

from convattn.commands.consoles import console
from convattn.commands.output_file import require_writable, write_file, write_json
from convattn.commands.usage import UsageError

ENCODINGS = ("bias", "quadratic", "enumerated", "scalar")
METADATA = "metadata"


@dataclass(frozen=True)
class Conversion:
    """The arguments of `convattn.conv_to_attention` apart from the weights."""

    patch_size: int | tuple[int, ...] = 1
    encoding: str = "bias"
    exact: bool | None = None
    leak: float = 0.5
    stride: int | tuple[int, ...] = 1
    dilation: int | tuple[int, ...] = 1
    groups: int = 1
    head_dim: int | None = None


def convert(
    kernel: Path,
    output: Path | None = None,
    bias: Path | None = None,
    conversion: Conversion | None = None,
    seed: int = 0,
    json: Path | None = None,
) -> int:
    """Convert a kernel, compare both on a random image, and save the layer.

    The archive holds every array of the layer under its path in the layer, such as
    ``encoding.bias``, and under ``metadata`` a JSON string with everything else.

    Args:
        kernel: A ``.npy`` file of shape [K, K, in, out] or [K, in, out].
        output: The ``.npz`` file to write; the kernel's name with ``.npz`` if ``None``.
        bias: A ``.npy`` file of shape [out].
        conversion: How to convert.
        seed: The seed of the random image.
        json: Where to write the figures.

    Returns:
        0, or 1 if the layer's result is not finite on the random image.

    Raises:
        UsageError: If a file cannot be read or written, or the conversion is refused.
    """
    conversion = conversion or Conversion()
    if kernel.is_dir():
        raise UsageError(f"KERNEL got {kernel}, which is a directory, but expected a .npy file")
    target = output or kernel.with_suffix(".npz")
    require_writable(target, "--output")
    require_distinct({"KERNEL": kernel, "--bias": bias, "--output": target, "--json": json})
    if json is not None:
        require_writable(json, "--json")
    weights, offset = _load(kernel, "KERNEL"), None if bias is None else _load(bias, "--bias")
    if weights.ndim not in (3, 4):
        raise UsageError(
            f"{kernel} has shape {weights.shape}, but expected [K, K, in, out] or [K, in, out]"
        )
    import jax

    import convattn

    if any(array.dtype.itemsize == 8 for array in (weights, offset) if array is not None):
        jax.config.update("jax_enable_x64", True)
    arguments = {field.name: getattr(conversion, field.name) for field in fields(conversion)}
    try:
        layer = convattn.conv_to_attention(weights, offset, **arguments)
        arrays = layer_arrays(layer)
        metadata = {"arguments": arguments, "layer": describe(layer)}
        comparison = _compare(layer, weights, offset, conversion, seed)
    except ValueError as error:
        raise UsageError(str(error)) from error
    figures = {
        "heads": layer.heads,
        "kernel": list(weights.shape),
        "output": str(target),
        "arrays": {
            name: {"shape": list(array.shape), "dtype": str(array.dtype)}
            for name, array in arrays.items()
        },
        "metadata": metadata,
        "comparison": comparison,
    }
    _save(target, arrays, metadata)
    _print(figures)
    if json is not None:
        write_json(json, {"schema": 1, **figures})
    return 0 if comparison["finite"] else 1


def require_distinct(paths: dict[str, Path | None]) -> None:
    """Refuse to read and write one file, or to write two outputs to one.

    Raises:
        UsageError: If two of the named paths are the same file.
    """
    seen: dict[Path, str] = {}
    for name, path in paths.items():
        if path is None:
            continue
        resolved = path.resolve()
        if resolved in seen and {name, seen[resolved]} & {"--output", "--json"}:
            raise UsageError(
                f"{name} and {seen[resolved]} are both {path}, but one would overwrite the other; "
                "name another file"
            )
        seen.setdefault(resolved, name)


def layer_arrays(layer: Any) -> dict[str, Any]:
    """Every array of a layer as a NumPy array, named by its path in the layer.

    Args:
        layer: An `AttentionLayer`, or any pytree.

    Returns:
        Names such as ``encoding.bias`` and their arrays.
    """
    import jax
    import numpy

    leaves = jax.tree_util.tree_flatten_with_path(layer)[0]
    return {
        jax.tree_util.keystr(path, simple=True, separator="."): numpy.asarray(leaf)
        for path, leaf in leaves
    }


def describe(node: Any) -> dict[str, Any]:
    """What a layer holds apart from arrays: its class, its static fields, which parts are absent.

    Args:
        node: A dataclass.

    Returns:
        A tree of what JSON can hold; nested dataclasses become nested descriptions.
    """
    description: dict[str, Any] = {"class": type(node).__name__}
    for field in fields(node):
        value = getattr(node, field.name)
        if is_dataclass(value):
            description[field.name] = describe(value)
        elif field.metadata.get("static") or value is None:
            description[field.name] = value
    return description


def _load(path: Path, option: str) -> Any:
    import numpy

    try:
        array = numpy.load(path, allow_pickle=False)
    except OSError as error:
        raise UsageError(f"{option}: cannot read {path}: {error.strerror or error}") from error
    except (ValueError, EOFError) as error:
        raise UsageError(f"{option}: {path} is not a .npy file of numbers: {error}") from error
    if not isinstance(array, numpy.ndarray) or array.dtype.kind not in "iuf":
        what = getattr(array, "dtype", "several arrays")
        raise UsageError(f"{option}: {path} holds {what}, but expected one .npy array of numbers")
    return array


def _compare(
    layer: Any, kernel: Any, bias: Any, conversion: Conversion, seed: int
) -> dict[str, Any]:
    """Convolve a random image and apply the layer to it; every axis has a different size."""
    import jax.numpy as jnp
    import numpy

    import convattn

    axes = kernel.ndim - 2
    patches = _per_axis(conversion.patch_size, axes)
    spans = zip(patches, kernel.shape[:axes], _per_axis(conversion.dilation, axes), strict=True)
    sides: list[int] = []
    for p, k, d in spans:
        side = p * (math.ceil((k - 1) * d / p) + 1)
        sides.append(side + p * (side in sides))
    channels = kernel.shape[-2] * conversion.groups
    draw = numpy.random.default_rng(seed).standard_normal((1, *sides, channels))
    images = draw.astype(kernel.dtype if kernel.dtype.kind == "f" else numpy.float32)
    expected = convattn.conv(
        images,
        kernel,
        bias,
        stride=conversion.stride,
        dilation=conversion.dilation,
        groups=conversion.groups,
    )
    actual = convattn.apply_attention(layer, images)
    if actual.shape != expected.shape:
        raise ValueError(
            f"apply_attention gave shape {actual.shape}, but conv gave {expected.shape}"
        )
    difference = float(jnp.max(jnp.abs(actual - expected)))
    largest = float(jnp.max(jnp.abs(expected)))
    finite = math.isfinite(difference)
    return {
        "image": list(images.shape),
        "dtype": str(actual.dtype),
        "max_abs_difference": difference if finite else None,
        "max_abs_convolution": largest if math.isfinite(largest) else None,
        "finite": finite,
    }


def _per_axis(value: int | tuple[int, ...], axes: int) -> tuple[int, ...]:
    sizes = (value,) * axes if isinstance(value, int) else value
    if len(sizes) != axes:
        raise ValueError(f"got the sizes {sizes}, but the kernel has {axes} spatial axes")
    return sizes


def _save(path: Path, arrays: dict[str, Any], metadata: dict[str, Any]) -> None:
    import numpy

    if METADATA in arrays:
        raise ValueError(f"a layer's array may not be called {METADATA!r}")
    buffer = io.BytesIO()
    text = json_format.dumps(metadata, sort_keys=True, default=str)
    numpy.savez(buffer, allow_pickle=False, **{**arrays, METADATA: numpy.array(text)})
    write_file(path, buffer.getvalue())


def _print(figures: dict[str, Any]) -> None:
    plain, comparison = console(), figures["comparison"]
    lines: Sequence[str] = (
        f"kernel {tuple(figures['kernel'])} -> {figures['heads']} heads",
        *(
            f"  {name}  {tuple(array['shape'])}  {array['dtype']}"
            for name, array in figures["arrays"].items()
        ),
        f"largest difference between apply_attention and conv on a random image of shape "
        f"{tuple(comparison['image'])} in {comparison['dtype']}: "
        f"{comparison['max_abs_difference']} (largest value {comparison['max_abs_convolution']})",
        f"saved to {figures['output']}",
    )
    for line in lines:
        plain.print(line, markup=False, soft_wrap=True)
