"""``convattn convert network``: every convolution of a network as attention, if it is right."""

import time
from dataclasses import dataclass, field
from pathlib import Path
from typing import Annotated, Any, Literal

from tyro.conf import Positional

from convattn.cli.network_origin import check_origin, compared, only_array
from convattn.cli.network_report import close, report_lines, report_numbers
from convattn.cli.output import finish, print_lines, require_outputs, run_files
from convattn.cli.running import (
    Json,
    Sizes,
    UsageError,
    cannot,
    changed_options,
    option,
    require_seed,
    sizes_of,
)
from convattn.files import write_file

OF_A_RUN = {"NETWORK", "--output", "--uniform-weight", "--stablehlo", "--onnx", "--json"}
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
        images: A .npy file of the images [batch, ...] to check it on, floats with the axes and in
            the range that the network takes;
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
        for name in (name for name in changed_options(self) if is_run and name not in OF_A_RUN):
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
        from convattn.cli.named_network import reader_of_runs

        started = time.monotonic()
        try:
            conversion = (
                reader_of_runs("folder", folder)(self, folder) if is_run else converted(self)
            )
            content, others = conversion.contents() if conversion.passed else (b"", {})
            numbers = conversion.numbers | {
                "network": self.network,
                "output": str(target),
                "seconds": round(time.monotonic() - started, 1),
            }
        except OSError as error:
            raise UsageError(cannot("read", error)) from error
        except (ValueError, NotImplementedError) as error:
            raise UsageError(str(error)) from error
        seconds = f"in {numbers['seconds']} s"
        code = finish(
            target, content, conversion.passed, self.json, numbers, [*conversion.lines, seconds]
        )
        for path, (kind, exported) in others.items():
            if exported is not None:
                write_file(path, exported)
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
        expected: The outputs of the network on the example.
        lines, numbers: What is printed, and written as JSON.
    """

    command: ConvertNetwork
    attention: Any
    example: Any
    passed: bool
    expected: Any
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
        import jax
        import numpy as np

        from convattn.networks.transformation.network_file import (
            exported_bytes,
            network_bytes,
            restore_network,
        )
        from convattn.networks.weights.files import parse_weights

        layers, apply, _ = self.attention
        content = network_bytes(layers, apply, self.example)
        written = restore_network(parse_weights(content, "network.safetensors"))(self.example)
        for restored, outputs in zip(*map(jax.tree.leaves, (written, self.expected)), strict=True):
            comparison = compared(np.asarray(restored), np.asarray(outputs), "an output")
            if not comparison["passed"]:
                self.lines.append(
                    f"the program of the file differs by {comparison['difference']:.3g} of "
                    f"{comparison['largest']:.3g} from the network on the same images: a step, "
                    "such as sign or a threshold, is decided by the last bit there"
                )
                self.passed = self.numbers["passed"] = False
                return b"", {}
        others: dict[Path, tuple[str, bytes | None]] = {}

        def network(images: Any) -> Any:
            return apply(layers, images)

        if self.command.stablehlo is not None:
            others[self.command.stablehlo] = "StableHLO", exported_bytes(network, self.example)
        if self.command.onnx is not None:
            from convattn.networks.onnx import write_onnx

            write_onnx(network, self.example, self.command.onnx)  # it is run, then written
            others[self.command.onnx] = "ONNX", None
        return content, others


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
    shape = network.example_shape or example_shape(network.in_pytorch is not None)
    images = (
        noise(shape, command.image_size, command.seed)
        if command.images is None
        else only_array(command.images, "--images")
    ).astype(command.dtype)

    function = network.on_images(command.network, images.shape)
    expected = None if command.expected is None else only_array(command.expected, "--expected")
    attention = attention_of(function, images, **command.options)
    lines, numbers = report_lines(attention.report, command.dtype), report_numbers(attention.report)
    passed = close(attention.report, command.dtype)
    numbers |= {"images": list(images.shape), "dtype": command.dtype, **command.options}
    whose = f"images {images.shape} " + (
        "of noise; --images takes your own" if command.images is None else f"from {command.images}"
    )
    notes = [f"{command.network} on {whose}", *network.notes]
    outputs = [np.asarray(leaf) for leaf in jax.tree.leaves(jax.jit(function)(images))]
    origin = check_origin(
        command.network,
        network,
        images,
        outputs,
        weights=command.weights,
        expected=expected,
    )
    passed = passed and origin.passed
    numbers |= {**origin.numbers, "passed": passed}
    notes += origin.notes
    lines += origin.lines
    return Conversion(command, attention, images, passed, outputs, [*notes, *lines], numbers)


def example_shape(channels_first: bool) -> tuple[int, ...]:
    """Of an image of a network that does not say it."""
    return (3, SIDE, SIDE) if channels_first else (SIDE, SIDE, 3)


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
