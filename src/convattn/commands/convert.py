"""``convattn convert``: turn a convolution's weights into those of an attention layer."""

from dataclasses import asdict, dataclass, fields
from pathlib import Path
from typing import Any

from convattn.atomic_file import write_file
from convattn.commands.consoles import console
from convattn.commands.output_file import require_writable, write_json
from convattn.commands.usage import UsageError

SUFFIXES = (".safetensors", ".npz")
WIDE = 8  # bytes of a 64-bit number


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


@dataclass(frozen=True)
class Source:
    """Where the convolution's weights stand."""

    weights: Path
    layer: str | None = None
    layout: str = "auto"
    bias: Path | None = None


def convert(
    source: Source,
    output: Path | None = None,
    write: str = "ours",
    image_size: int | tuple[int, ...] | None = None,
    conversion: Conversion | None = None,
    seed: int = 0,
    json: Path | None = None,
) -> int:
    """Convert a kernel, run what would be written against the convolution, and write it.

    Args:
        source: The file of weights and which of them.
        output: The file to write; ``NAME.attention.safetensors`` beside the weights if ``None``.
        write: The layout: ``ours``, ``flax`` or ``torch``.
        image_size: The pixels on each axis, which ``flax`` and ``torch`` need; for ``ours`` the
            size of the image that it is checked on.
        conversion: How to convert.
        seed: The seed of the random image.
        json: Where to write the figures.

    Returns:
        0, or 1 if a result was further from the convolution than its bound, and then nothing is
        written.

    Raises:
        UsageError: If a file cannot be read or written, or the conversion is refused.
    """
    conversion = conversion or Conversion()
    target = prepare_output(source.weights, output, "attention", json, {"--bias": source.bias})
    if write != "ours" and image_size is None:
        raise UsageError(f"--write {write} needs --image-size: its scores are stored pair by pair")
    try:
        found = _find(source)
        figures, content = _convert(found, conversion, write, image_size, seed, target)
    except ValueError as error:
        raise UsageError(str(error)) from error
    except OSError as error:
        raise UsageError(f"cannot read {error.filename}: {error.strerror}") from error
    passed = all(comparison["passed"] for comparison in figures["comparisons"])
    _print(figures)
    if passed:
        write_file(target, content)
    finish(target, passed, json, figures)
    return 0 if passed else 1


def prepare_output(
    weights: Path, output: Path | None, kind: str, json: Path | None, others: dict[str, Path | None]
) -> Path:
    """The file to write, refused before the work starts if it could not be written.

    Args:
        weights: What is read.
        output: What ``--output`` says.
        kind: What the default name says of the content.
        json: What ``--json`` says.
        others: Further files that are read, by their options.

    Raises:
        UsageError: If it could not be written, has another ending, or is a file that is read.
    """
    target = output or weights.with_name(f"{weights.stem}.{kind}{SUFFIXES[0]}")
    if target.suffix not in SUFFIXES:
        raise UsageError(f"--output got {target}, but expected a name in {' or '.join(SUFFIXES)}")
    require_writable(target, "--output")
    require_distinct({"WEIGHTS": weights, **others, "--output": target, "--json": json})
    if json is not None:
        require_writable(json, "--json")
    return target


def finish(target: Path, passed: bool, json: Path | None, figures: dict[str, Any]) -> None:
    """Say whether the file was written, and write the figures.

    Args:
        target: The file.
        passed: Whether it was written.
        json: What ``--json`` says.
        figures: What it shall hold.
    """
    said = f"written to {target}" if passed else f"FAILED: nothing written to {target}"
    console().print(said, markup=False, soft_wrap=True)
    if json is not None:
        write_json(json, {"schema": 1, **figures, "written": passed})


def require_distinct(paths: dict[str, Path | None]) -> None:
    """Refuse to read and write one file, or to write two outputs to one.

    Args:
        paths: The files, by their options.

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


def _find(source: Source) -> Any:
    """The kernel and the bias, and 64-bit types where they have 64 bits."""
    from dataclasses import replace

    from convattn.weights.convolution_layout import find_convolution
    from convattn.weights.files import read_weights

    weights = read_weights(source.weights)
    found = find_convolution(weights, source.layer, source.layout, source.weights.stem)
    if source.bias is not None:
        file = read_weights(source.bias)
        if len(file.arrays) != 1:
            raise UsageError(f"--bias got {source.bias}, but expected one array: {file.listing()}")
        found = replace(found, bias=file[next(iter(file.arrays))], bias_name=str(source.bias))
    return found


def _convert(
    found: Any,
    conversion: Conversion,
    write: str,
    image_size: int | tuple[int, ...] | None,
    seed: int,
    target: Path,
) -> tuple[dict[str, Any], bytes]:
    import jax
    import numpy

    import convattn
    from convattn.shifts import per_axis
    from convattn.weights.files import parse_weights
    from convattn.weights.stated_size import smallest_image
    from convattn.weights.stored_layer import encode
    from convattn.weights.verification import reference

    kernel, bias = found.kernel, found.bias
    parts = [part for part in (kernel, bias) if part is not None]
    if any(part.dtype.itemsize == WIDE for part in parts):
        jax.config.update("jax_enable_x64", True)
    if write != "ours" and any(part.dtype.itemsize < 4 for part in parts):
        kernel = kernel.astype(numpy.float32)
        bias = None if bias is None else bias.astype(numpy.float32)
    arguments = {field.name: getattr(conversion, field.name) for field in fields(conversion)}
    layer = convattn.conv_to_attention(kernel, bias, **arguments)
    axes = len(layer.patch_size)
    sides = (
        smallest_image(kernel.shape[:axes], layer.patch_size, layer.stride, layer.dilation)
        if image_size is None
        else per_axis(image_size, axes, "image_size")
    )
    arrays, metadata, bounded, routes = _pack(layer, write, sides)
    content = encode(arrays, metadata, target.suffix)
    stored = parse_weights(content, target.name)
    expected = reference(bounded, kernel, bias, sides, groups=conversion.groups, seed=seed)
    comparisons = [
        expected.compare(name, lambda images, run=run: run(stored, images))  # type: ignore[misc]
        for name, run in routes.items()
    ]
    figures = {
        "heads": layer.heads,
        "kernel": list(kernel.shape),
        "kernel_name": found.kernel_name,
        "bias_name": found.bias_name,
        "layout": found.layout,
        "layout_told_by": found.told_by,
        "write": write,
        "output": str(target),
        "arrays": {
            name: {"shape": list(array.shape), "dtype": str(array.dtype)}
            for name, array in arrays.items()
        },
        "arguments": arguments,
        "comparisons": [asdict(comparison) for comparison in comparisons],
    }
    return figures, content


def _pack(layer: Any, write: str, sides: tuple[int, ...]) -> tuple[Any, Any, Any, dict[str, Any]]:
    """The arrays and text of a layout, the layer to bound, and how to run what is stored."""
    if write == "ours":
        from convattn.application import apply_attention
        from convattn.weights.stored_layer import layer_arrays, layer_metadata, restore_layer

        routes = {
            "apply_attention": lambda file, images: apply_attention(restore_layer(file), images)
        }
        return layer_arrays(layer), layer_metadata(layer), layer, routes
    from convattn.weights.stated_size import at_image_size

    stated = at_image_size(layer, sides)
    if write == "flax":
        from convattn.weights.flax_layout import apply_flax, pack_flax

        return *pack_flax(stated), stated.layer, {"flax.nnx.MultiHeadAttention": apply_flax}
    from convattn.weights import torch_layout

    routes = {"the formula of torch.nn.MultiheadAttention": torch_layout.apply_formula}
    if torch_layout.torch_is_installed():
        routes["torch.nn.MultiheadAttention"] = torch_layout.apply_torch
    return *torch_layout.pack_torch(stated), stated.layer, routes


def _print(figures: dict[str, Any]) -> None:
    plain = console()
    lines = [
        f"kernel {figures['kernel_name'] or ''} {tuple(figures['kernel'])}, stored as "
        f"{figures['layout']} ({figures['layout_told_by']}), bias {figures['bias_name'] or 'none'}"
        f" -> {figures['heads']} heads",
        *(
            f"  {name}  {tuple(array['shape'])}  {array['dtype']}"
            for name, array in figures["arrays"].items()
        ),
        *(comparison_line(comparison) for comparison in figures["comparisons"]),
    ]
    for line in lines:
        plain.print(line, markup=False, soft_wrap=True)


def comparison_line(comparison: dict[str, Any]) -> str:
    """What one run against the convolution showed.

    Args:
        comparison: The fields of a `Comparison`.
    """
    run = f"{comparison['route']} against conv on an image of shape {comparison['image']}"
    if comparison["equality"]:
        verdict = "equal" if comparison["passed"] else "NOT EQUAL"
    else:
        verdict = "within" if comparison["passed"] else "NOT WITHIN"
        verdict += f" the derived bound {comparison['bound']:.3g}"
    return (
        f"{run} in {comparison['dtype']}: largest difference {comparison['error']:.3g}, {verdict} "
        f"(largest value {comparison['largest']:.3g})"
    )
