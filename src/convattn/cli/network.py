"""``convattn convert network``: every convolution of a network as attention, if it is right."""

import time
from collections.abc import Callable
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Annotated, Any, Literal

from tyro.conf import Positional

from convattn.cli.output import finish, print_lines, require_outputs, run_files
from convattn.cli.running import Json, Sizes, UsageError, given, option, require_seed, sizes_of
from convattn.files import write_file

OF_A_RUN = {"NETWORK", "--output", "--uniform-weight", "--stablehlo", "--onnx", "--json"}
FEW = 10  # images of a run on which both networks are compared, and in a batch of its test images
SIDE = 224  # pixels of noise, where the network does not say its size


@dataclass(frozen=True)
class ConvertNetwork:
    """Turn every convolution of a network into a layer of attention, and write the network.

    The network and its attention run side by side on images first. Nothing is written if a layer
    or an output is outside its derived bound, if an image changes its class, or if the outputs
    differ from those of --expected. Exits 0 if it was written, 1 if not, 2 on wrong use. The file
    runs with convattn.load_network, without the code of the network.

    Attributes:
        network: torchvision/NAME or timm/NAME; MODULE:FUNCTION or FILE.py:FUNCTION, which is
            called without arguments and gives a function of JAX or a module of PyTorch; or the
            folder of a finished run of a ResNet.
        weights: A state dict of that architecture of PyTorch: .safetensors, .npz or .pth; default:
            those that it is built with, which are random for torchvision and timm.
        images: A .npy file of the images [batch, ...] to check it on, as the network takes them;
            default: one of noise.
        expected: A .npy file of the outputs that the network has for these images where it comes
            from.
        image_size: Pixels of the noise, for all axes or for each; default: those of the
            architecture, or 224.
        output: Where to write, .safetensors; default: NAME.attention.safetensors here, or
            attention.safetensors in the folder of the run.
        stablehlo: A file for the converted network as StableHLO, at the shape of these images.
        onnx: A file for the converted network as ONNX, at the shape of these images.
        form: The exact form, at finite scores, or the limit, whose attention is one-hot.
        uniform_weight: The weight that each head of the exact form lays on all tokens alike.
        head_dim: Split heads so that each has this dimension.
        pointwise: Whether 1 x 1 convolutions become attention, or stay maps of single tokens.
        dtype: Of all numbers.
        seed: Of the noise.
    """

    network: Annotated[Positional[str], option("NETWORK")]
    weights: Annotated[Path | None, option("FILE")] = None
    images: Annotated[Path | None, option("FILE.npy")] = None
    expected: Annotated[Path | None, option("FILE.npy")] = None
    image_size: Annotated[Sizes | None, option("H [W]")] = None
    output: Annotated[Path | None, option("FILE", aliases=["-o"])] = None
    stablehlo: Annotated[Path | None, option("FILE")] = None
    onnx: Annotated[Path | None, option("FILE")] = None
    form: Literal["exact", "limit"] = "exact"
    uniform_weight: float = 0.5
    head_dim: Annotated[int | None, option("N")] = None
    pointwise: Literal["attention", "keep"] = "attention"
    dtype: Literal["float32", "float64"] = "float32"
    seed: int = 0
    json: Json = None

    def __call__(self) -> int:
        """Convert, compare, and write.

        Returns:
            0, or 1 if the comparison failed, and then nothing is written.

        Raises:
            UsageError: For what does not exist, cannot be read or written, or is refused.
        """
        require_seed(self.seed)
        folder = Path(self.network)
        is_run = folder.is_dir()
        if self.images is not None and self.image_size is not None:
            raise UsageError("--image-size is of noise; the images of --images have their own size")
        if self.expected is not None and self.images is None:
            raise UsageError("--expected needs --images FILE, the images that the outputs are of")
        for name in (name for name in given(self) if is_run and name not in OF_A_RUN):
            raise UsageError(
                f"{name} does not go with the folder of a run, which is compared on its own test "
                f"images; with it go {', '.join(sorted(OF_A_RUN))}"
            )
        target = self.output or self._default(folder if is_run else None)
        if target.suffix != ".safetensors":
            raise UsageError(f"--output got {target}, but expected a name in .safetensors")
        outputs = {
            "--output": target,
            "--stablehlo": self.stablehlo,
            "--onnx": self.onnx,
            "--json": self.json,
        }
        inputs: dict[str, Any] = {
            "NETWORK": run_files(folder) if is_run else None,
            "--weights": self.weights,
            "--images": self.images,
            "--expected": self.expected,
        }
        require_outputs(outputs, inputs)
        started = time.monotonic()
        try:
            conversion = converted_run(self, folder) if is_run else converted(self)
            numbers = conversion.numbers | {
                "network": self.network,
                "output": str(target),
                "seconds": round(time.monotonic() - started, 1),
            }
            content, others = conversion.contents() if conversion.passed else (b"", {})
        except OSError as error:
            raise UsageError(f"cannot read {error.filename}: {error.strerror}") from error
        except (ValueError, NotImplementedError) as error:
            raise UsageError(str(error)) from error
        seconds = f"in {numbers['seconds']} s"
        code = finish(
            target, content, conversion.passed, self.json, numbers, [*conversion.lines, seconds]
        )
        for path, (kind, made) in others.items():
            if made is not None:
                write_file(path, made)
            print_lines([f"written to {path}, as {kind} for images {conversion.shape}"])
        return code

    def _default(self, run: Path | None) -> Path:
        if run is not None:
            return run / "attention.safetensors"
        name = self.network.rpartition("/")[2].rpartition(":")[2] or "network"
        return Path(f"{name}.attention.safetensors")

    @property
    def options(self) -> dict[str, Any]:
        """As `attention_of` takes them."""
        exact = self.form == "exact"
        return {
            "form": self.form,
            "head_dim": self.head_dim,
            "pointwise": self.pointwise,
            **({"uniform_weight": self.uniform_weight} if exact else {}),
        }


@dataclass
class Conversion:
    """What a conversion is, and what its comparison showed.

    Attributes:
        command: The options.
        attention: From `attention_of`.
        example: The images that both networks ran on.
        passed: Whether all agree.
        lines, numbers: What is printed, and written as JSON.
    """

    command: ConvertNetwork
    attention: Any
    example: Any
    passed: bool
    lines: list[str] = field(default_factory=list)
    numbers: dict[str, Any] = field(default_factory=dict)

    @property
    def shape(self) -> tuple[int, ...]:
        """Of the images."""
        return tuple(self.example.shape)

    def contents(self) -> tuple[bytes, dict[Path, tuple[str, bytes | None]]]:
        """That of the file, and those of the others by their paths, with their kinds.

        None is one that has been written.

        Raises:
            ValueError: For what cannot be exported.
        """
        from convattn.networks.transformation.network_file import exported_bytes, network_bytes

        layers, apply, _ = self.attention
        others: dict[Path, tuple[str, bytes | None]] = {}

        def network(images: Any) -> Any:
            return apply(layers, images)

        if self.command.stablehlo is not None:
            others[self.command.stablehlo] = "StableHLO", exported_bytes(network, self.example)
        if self.command.onnx is not None:
            from convattn.networks.onnx import write_onnx

            write_onnx(network, self.example, self.command.onnx)  # it is run, then written
            others[self.command.onnx] = "ONNX", None
        return network_bytes(layers, apply, self.example), others


def converted(command: ConvertNetwork) -> Conversion:
    """A network by its name.

    Raises:
        ValueError: For what is refused. `OSError` if a file cannot be read.
    """
    import jax
    import numpy as np

    from convattn.cli.named_network import named_network
    from convattn.networks.transformation.attention_of import attention_of

    if command.dtype == "float64":
        jax.config.update("jax_enable_x64", True)
    network = named_network(command.network, command.weights, command.dtype)
    shape = network.example_shape or (SIDE, SIDE, 3)
    images = (
        noise(shape, command.image_size, command.seed)
        if command.images is None
        else only_array(command.images, "--images")
    ).astype(command.dtype)
    attention = attention_of(network.function, images, **command.options)
    lines, numbers = report_lines(attention.report, command.dtype), report_numbers(attention.report)
    passed = close(attention.report, command.dtype)
    numbers |= {"images": list(images.shape), "dtype": command.dtype, **command.options}
    whose = f"images {images.shape} " + (
        "of noise; --images takes your own" if command.images is None else f"from {command.images}"
    )
    notes = [f"{command.network} on {whose}", *network.notes]
    if command.expected is not None:
        outputs = jax.tree.leaves(jax.jit(network.function)(images))[0]
        comparison = compared(np.asarray(outputs), only_array(command.expected, "--expected"))
        passed = passed and comparison["passed"]
        numbers["expected"] = comparison
        lines.append(expected_line(comparison))
    numbers["passed"] = passed
    return Conversion(command, attention, images, passed, [*notes, *lines], numbers)


def converted_run(command: ConvertNetwork, folder: Path) -> Conversion:
    """The ResNet of a run, on its test images: in float64, in float32, and by all its classes.

    Raises:
        ValueError: If this is not a finished run of a ResNet.
    """
    import jax
    import jax.numpy as jnp
    import numpy as np

    from convattn.lab.analysis.finished_resnet import finished_resnet
    from convattn.lab.models.resnet_function import image_function
    from convattn.networks.transformation.attention_of import attention_of

    run, model, recorded = finished_resnet(folder)
    test, scale = run.images.test, (run.images.mean, run.images.std)
    few = jnp.asarray(test.images[:FEW])
    options = {"uniform_weight": command.uniform_weight}
    with jax.enable_x64(True):
        wide = attention_of(image_function(model, *scale, np.float64), few, **options).report
    function = image_function(model, *scale)
    attention = attention_of(function, few, **options)
    layers, apply, report = attention
    trained = logits_of(function, test.images)
    classes = same_classes(
        trained, logits_of(lambda images: apply(layers, images), test.images), test.labels
    )
    passed = close(wide, "float64") and close(report, "float32") and classes["passed"]
    numbers = {
        "when": run.when,
        **options,
        "float64": report_numbers(wide),
        **report_numbers(report),
        "test": {**classes, "recorded_accuracy": recorded},
        "passed": passed,
    }
    said = report_lines(wide, "float64")
    lines = [
        f"{folder}, {run.when}, on {len(few)} test images",
        *said[:1],
        said[1] + (": one function, as far as float64 can tell" if wide.passed else ""),
        *said[2:],
        *report_lines(report, "float32")[1:],
        f"float32, test images with the same class: {classes['same_class']:,} of "
        f"{classes['images']:,}; correct: {classes['correct']:,} as trained, "
        f"{classes['attention_correct']:,} as attention; largest difference "
        f"{classes['difference']:.3g}, smallest margin {classes['smallest_margin']:.3g}",
    ]
    return Conversion(command, attention, few, passed, lines, numbers)


def logits_of(function: Callable[[Any], Any], images: Any) -> Any:
    """The logits of all images, `FEW` of them at a time; the last batch is filled with zeros."""
    import jax
    import numpy as np

    compiled, logits = jax.jit(function), []
    for start in range(0, len(images), FEW):
        batch = images[start : start + FEW]
        filled = np.pad(batch, [(0, FEW - len(batch)), *[(0, 0)] * (batch.ndim - 1)])
        logits.append(np.asarray(compiled(filled)))
    return np.concatenate(logits)[: len(images)]


def same_classes(of_model: Any, of_attention: Any, labels: Any) -> dict[str, Any]:
    """What the logits of both say.

    >>> import numpy as np
    >>> logits = np.array([[3.0, 1.0], [0.0, 0.5]])
    >>> found = same_classes(logits, logits + [0.0, 1.0], np.array([0, 0]))
    >>> [found[key] for key in ("correct", "same_class", "difference", "smallest_margin", "passed")]
    [1, 2, 1.0, 0.5, True]
    """
    import numpy as np

    first, other = of_model.argmax(axis=1), of_attention.argmax(axis=1)
    wide = of_model.astype(np.float64)
    two = np.sort(wide, axis=1)[:, -2:]
    return {
        "images": len(labels),
        "correct": int((first == labels).sum()),
        "attention_correct": int((other == labels).sum()),
        "same_class": int((first == other).sum()),
        "difference": float(np.abs(wide - of_attention).max()),
        "smallest_margin": float((two[:, 1] - two[:, 0]).min()),
        "passed": bool((first == other).all()),
    }


def tolerance(report: Any, dtype: str) -> float:
    """√ε of the largest output: no bound, but what a wrong conversion exceeds."""
    import numpy as np

    return float(np.finfo(dtype).eps) ** 0.5 * (report.largest or 0.0)


def close(report: Any, dtype: str) -> bool:
    """Whether all is within its bound, and the outputs are near, of the same classes."""
    near = report.difference <= tolerance(report, dtype)
    return bool(report.passed and report.same_class and near)


def report_numbers(report: Any) -> dict[str, Any]:
    """A report for JSON.

    Raises:
        ValueError: For outputs that are not finite.
    """
    import math

    if not math.isfinite(report.difference) or not math.isfinite(report.largest):
        raise ValueError(
            f"the outputs reach {report.largest} and differ by {report.difference}, but expected "
            "finite numbers; the weights overflow on these images: use others, or --dtype float64"
        )
    return {
        "layers": {layer.path: asdict(layer) for layer in report.layers},
        "left": list(report.left or ()),
        "difference": report.difference,
        "largest": report.largest,
        "same_class": report.same_class,
        "bound": report.bound,
        "entries": [list(entry) for entry in report.entries],
        "without_rule": report.without_rule,
    }


def report_lines(report: Any, dtype: str) -> list[str]:
    """A report in a few lines: its layers in one, its outputs, and what is left."""
    layers = report.layers
    heads = sorted({layer.heads for layer in layers})
    total = len(layers) + len(report.left)
    bounded = [layer for layer in layers if layer.passed is not None]
    lines = [
        f"{len(layers)} of {total} convolutions -> attention layers of "
        f"{' and '.join(map(str, heads))} heads",
        f"{dtype}, {str(report).splitlines()[len(layers)].partition('; ')[2]}",
        *str(report).splitlines()[len(layers) + 1 :],
    ]
    if bounded:
        worst = max(bounded, key=lambda layer: layer.difference / (layer.bound or 1))
        share = worst.difference / worst.bound if worst.bound else 0.0
        where = f"at most {share:.2g} of it ({worst.path})"
        outside = [layer.path for layer in bounded if layer.passed is False]
        lines.append(
            f"NOT WITHIN their derived bounds: {', '.join(outside)}"
            if outside
            else f"each of {len(bounded)} layers is within its derived bound: {where}"
        )
    if len(bounded) < len(layers):
        lines.append(f"{len(layers) - len(bounded)} of {len(layers)} layers have no derived bound")
    return lines


def compared(outputs: Any, expected: Any) -> dict[str, Any]:
    """The outputs of the network as it was built against those that it should have.

    The tolerance is √ε times the largest, ε of the coarser dtype.

    Raises:
        ValueError: For another shape.

    >>> import numpy as np
    >>> compared(np.array([[1.0, 2.0]]), np.array([[1.0, 2.5]]))["passed"]
    False
    """
    import numpy as np

    if outputs.shape != expected.shape:
        raise ValueError(
            f"--expected has shape {expected.shape}, but expected {outputs.shape}, that of the "
            "outputs of the network for --images"
        )
    difference = np.abs(outputs.astype(np.float64) - expected.astype(np.float64)).max()
    largest = np.abs(outputs).max()
    coarser = max(float(np.finfo(array.dtype).eps) for array in (outputs, expected))
    allowed = coarser**0.5 * float(largest)
    return {
        "difference": float(difference),
        "largest": float(largest),
        "tolerance": allowed,
        "passed": bool(difference <= allowed),
    }


def expected_line(comparison: dict[str, Any]) -> str:
    """What a comparison with --expected showed."""
    verdict = (
        f"at most {comparison['tolerance']:.2g}"
        if comparison["passed"]
        else f"MORE THAN {comparison['tolerance']:.2g}): ANOTHER NETWORK, or other images"
    )
    return (
        f"the network as it was built against --expected: largest difference "
        f"{comparison['difference']:.3g} of {comparison['largest']:.3g} ({verdict.rstrip(')')})"
    )


def only_array(path: Path, name: str) -> Any:
    """The one array of a file.

    Raises:
        ValueError: For anything but one array of floats. `OSError` if it cannot be read.
    """
    from convattn.networks.weights.files import read_weights

    file = read_weights(path)
    arrays = list(file.tensors().values())
    if len(arrays) != 1 or arrays[0].dtype.kind in "iu" or not arrays[0].ndim or not len(arrays[0]):
        raise ValueError(
            f"{name} got {path}, but expected one array of floats [batch, ...]: {file.listing()}"
        )
    return arrays[0]


def noise(shape: tuple[int, ...], image_size: Sizes | None, seed: int) -> Any:
    """One example of standard normal noise, its two longest axes of the given size."""
    import numpy as np

    sizes = list(shape)
    if image_size is not None:
        asked = sizes_of(image_size, "--image-size")
        sides = (asked, asked) if isinstance(asked, int) else asked
        rows = 1 if len(sizes) == 3 and sizes[0] in (1, 3) else 0  # channels first, as PyTorch
        sizes[rows : rows + 2] = sides
    return np.random.default_rng(seed).normal(size=(1, *sizes))
