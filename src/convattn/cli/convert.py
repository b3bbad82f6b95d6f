"""``convattn convert``: turn a convolution's weights into those of an attention layer."""

from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from convattn.cli.consoles import console
from convattn.cli.usage import UsageError
from convattn.cli.weights_output import finish, prepare_output
from convattn.files import write_file

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


def _find(source: Source) -> Any:
    """The kernel and the bias."""
    from dataclasses import replace

    from convattn.networks.weights.convolution_layout import find_convolution
    from convattn.networks.weights.files import read_weights

    weights = read_weights(source.weights)
    found = find_convolution(
        weights, source.layer, source.layout, source.weights.stem, source.bias is None
    )
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
    """The figures, and the content of the file."""
    import jax

    from convattn.networks.weights.converted_layer import convert_weights

    parts = [part for part in (found.kernel, found.bias) if part is not None]
    if any(part.dtype.itemsize == WIDE for part in parts):
        jax.config.update("jax_enable_x64", True)
    arguments = asdict(conversion)
    converted = convert_weights(
        found.kernel,
        found.bias,
        arguments,
        write=write,
        image_size=image_size,
        seed=seed,
        name=target.name,
    )
    figures = {
        "heads": converted.heads,
        "kernel": list(found.kernel.shape),
        "kernel_name": found.kernel_name,
        "bias_name": found.bias_name,
        "layout": found.layout,
        "layout_told_by": found.told_by,
        "write": write,
        "output": str(target),
        "arrays": {
            name: {"shape": list(array.shape), "dtype": str(array.dtype)}
            for name, array in converted.arrays.items()
        },
        "arguments": arguments,
        "comparisons": [asdict(comparison) for comparison in converted.comparisons],
    }
    return figures, converted.content


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
