"""``convattn compile``: a convolutional network as an unmodified vision transformer."""

import sys
import time
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Annotated, Any, Literal

from tyro.conf import Positional

from convattn.cli.convert_network import example_shape, noise
from convattn.cli.network_origin import check_origin, only_array
from convattn.cli.output import (
    finish,
    print_lines,
    require_outputs,
    require_outside,
    run_files,
    write_json,
)
from convattn.cli.running import (
    SUCCESS,
    Json,
    Sizes,
    UsageError,
    cannot,
    changed_options,
    option,
    require_seed,
    say,
    sizes_of,
)


@dataclass(frozen=True)
class Compile:
    """Turn a convolutional network into the parameters of a stock vision transformer.

    Convolutions, batch norms at fixed statistics, ReLU and its kin, pooling and linear classifiers
    become LayerNorm, attention and MLPs with GELU of timm's VisionTransformer or Hugging Face's
    ViTForImageClassification. Both run on images first; nothing is written where logits are outside
    their derived bound or, without --for-training, an image changes its class, or where the network
    itself differs from --expected. Exits 0 if the file was written, 1 if not, 2 on wrong use.

    Attributes:
        network: torchvision/NAME or timm/NAME; or MODULE:FUNCTION or FILE.py:FUNCTION, which is
            called without arguments and gives a function of JAX or a module of PyTorch; or the
            folder of a finished run of a ResNet.
        weights: A state dict of that architecture of PyTorch: .safetensors, .npz or .pth.
        images: A .npy file of images to compare them on, float32 or float64, in the range that the
            network takes: [batch, rows, columns, channels] in JAX, [batch, channels, rows, columns]
            in PyTorch; default: one of noise, or the test images of a run.
        expected: A .npy file of the logits that the network has for these images where it comes
            from: they tell it from others whose tensors have the same names and shapes.
        image_size: Pixels of the noise, for all axes or for each.
        output: Where to write, .safetensors, with the arguments of the library's class in its
            metadata; default: NAME.vit.safetensors here.
        onnx: A file for the vision transformer as ONNX, at the shape of --images, or for one image.
        patch_size: Of the patches that become tokens, for all axes or for each.
        channels_first: Images are [batch, channels, rows, columns]; default: what the shape and the
            network say.
        num_heads: Of a block; default: as many as the map that reads most places.
        head_dim: Features of a head; default: those of the fewest parameters.
        format: Whose names and constructor's arguments; transformers4 for those before version 5.
        epsilon: LayerNorm's own; default: the library's, 1e-6 or 1e-12.
        for_training: Take moderate constants, for gradients of a usual size; logits then differ.
        max_parameters: More are refused before anything is made.
        size_only: Say how large it would be, and write nothing.
        dtype: Of all numbers.
        seed: Of the noise.
        suite: Write into this directory, in place of all that, 24 small vision transformers whose
            inner workings are known, with the truth of every head and token; alone, or with --json.
    """

    network: Annotated[Positional[str | None], option("NETWORK")] = None
    weights: Annotated[Path | None, option("FILE")] = None
    images: Annotated[Path | None, option("FILE.npy")] = None
    expected: Annotated[Path | None, option("FILE.npy")] = None
    image_size: Annotated[Sizes | None, option("H [W]")] = None
    output: Annotated[Path | None, option("FILE", aliases=["-o"])] = None
    onnx: Annotated[Path | None, option("FILE")] = None
    patch_size: Annotated[Sizes, option("P [P]")] = (1,)
    channels_first: bool = False
    num_heads: Annotated[int | None, option("N")] = None
    head_dim: Annotated[int | None, option("N")] = None
    format: Literal["timm", "transformers", "transformers4"] = "timm"
    epsilon: Annotated[float | None, option("E")] = None
    for_training: bool = False
    max_parameters: int = 300_000_000
    size_only: bool = False
    dtype: Literal["float32", "float64"] = "float32"
    seed: int = 0
    suite: Annotated[str | None, option("DIR")] = None
    json: Json = None

    def __call__(self) -> int:
        """Compile, compare, and write.

        Returns:
            0, or 1 if the comparison failed, and then nothing is written.

        Raises:
            UsageError: For what does not exist, cannot be read or written, or is refused.
        """
        if self.suite is not None:
            return self._write_suite(self.suite)
        require_seed(self.seed)
        if self.network is None:
            raise UsageError("no NETWORK and no --suite, but expected one of them; see --help")
        if self.for_training and self.size_only:
            raise UsageError("--for-training changes no size; leave it out beside --size-only")
        if self.images is not None and self.image_size is not None:
            raise UsageError("--image-size is of noise; the images of --images have their own size")
        if self.expected is not None and (self.images is None or self.size_only):
            raise UsageError(
                "--expected needs --images FILE, whose logits they are, and no --size-only"
            )
        name = self.network.rstrip("/").rpartition("/")[2].rpartition(":")[2] or "network"
        target = self.output or Path(f"{name}.vit.safetensors")
        if target.suffix != ".safetensors":
            raise UsageError(f"--output got {target}, but expected a name in .safetensors")
        folder = Path(self.network)
        inputs = {
            "NETWORK": run_files(folder) if folder.is_dir() else None,
            "--weights": self.weights,
            "--images": self.images,
            "--expected": self.expected,
        }
        outputs = {"--output": target, "--onnx": self.onnx, "--json": self.json}
        require_outputs(outputs, inputs)
        started = time.monotonic()
        try:
            content, passed, lines, numbers = self._compiled()
        except OSError as error:
            raise UsageError(cannot("read", error)) from error
        except ValueError as error:
            raise UsageError(str(error)) from error
        numbers |= {"network": self.network, "seconds": round(time.monotonic() - started, 1)}
        if self.size_only:
            print_lines(lines)
            write_json(self.json, {"schema": 1, **numbers})
            return SUCCESS
        numbers["output"] = str(target)
        lines.append(f"in {numbers['seconds']} s")
        return finish(target, content, passed, self.json, numbers, lines)

    def _write_suite(self, name: str) -> int:
        """Write the suite, and say whether its files are those of this version."""
        if not name:
            raise UsageError("--suite got '', but expected a directory; name one: build/suite")
        directory = Path(name)
        for other in changed_options(self):
            if other not in ("--suite", "--json"):
                raise UsageError(f"--suite takes its own networks, and no {other}; leave it out")
        require_outside(self.json, "--json", directory, "--suite")
        require_outputs({"--json": self.json}, {})
        from convattn.known_answers import recorded_digests, write_suite

        started = time.monotonic()
        try:
            digests = write_suite(directory, report=lambda line: print_lines([line]))
        except OSError as error:
            raise UsageError(cannot("write", error)) from error
        except ValueError as error:
            raise UsageError(str(error)) from error
        recorded = recorded_digests()
        same = sum(recorded.get(name) == digest for name, digest in digests.items())
        seconds = round(time.monotonic() - started, 1)
        print_lines(
            [
                f"{same} of {len(digests)} files have the recorded digest; in {seconds} s",
                f"written to {directory}; see {directory / 'index.html'}",
            ]
        )
        content = {"schema": 1, "files": digests, "recorded": same, "seconds": seconds}
        write_json(self.json, content)
        return SUCCESS

    def _compiled(self) -> tuple[bytes, bool, list[str], dict[str, Any]]:
        """The file, whether all agree, what is printed, and the same for JSON."""
        import jax
        import numpy as np

        from convattn.cli.named_network import named_network
        from convattn.compile import size, to_vision_transformer
        from convattn.extras import require

        assert self.network is not None
        if self.dtype == "float64":
            jax.config.update("jax_enable_x64", True)
        if self.onnx is not None:
            require("jax2onnx")
        network = named_network(self.network, self.weights, self.dtype)
        if self.images is not None:
            images = only_array(self.images, "--images")
        elif network.images is not None and self.image_size is None:
            images = network.images
        elif self.for_training:
            raise UsageError("--for-training on noise, but expected --images, which set constants")
        else:
            first = network.in_pytorch is not None or self.channels_first
            images = noise(
                network.example_shape or example_shape(first), self.image_size, self.seed
            )
        images = np.asarray(images).astype(self.dtype)
        expected = None if self.expected is None else only_array(self.expected, "--expected")
        function = network.on_images(self.network, images.shape)
        patch = sizes_of(self.patch_size, "--patch-size")
        options: dict[str, Any] = {"num_heads": self.num_heads, "head_dim": self.head_dim}
        options["patch_size"] = patch
        options["channels_first"] = self.channels_first or None
        if self.size_only:
            shape = jax.ShapeDtypeStruct(images.shape, images.dtype)
            dimensions = size(function, shape, **options)
            return b"", True, [str(dimensions)], asdict(dimensions)
        if sys.stderr.isatty():
            say("convattn compile", f"compiling {self.network}, and running both on images")
        compiled = to_vision_transformer(
            function,
            images,
            format=self.format,
            dtype=self.dtype,
            epsilon=self.epsilon,
            for_training=self.for_training,
            max_parameters=self.max_parameters,
            **options,
        )
        report = compiled.report
        assert report is not None
        logits = [np.asarray(leaf) for leaf in jax.tree.leaves(jax.jit(function)(images))]
        origin = check_origin(
            self.network, network, images, logits, weights=self.weights, expected=expected
        )
        passed = report.passed and origin.passed
        numbers = {
            **asdict(report.size),
            "images": report.images,
            "same_class": report.same_class,
            "difference": report.difference,
            "largest": report.largest,
            "construction": float(report.bound.construction.max()),
            "rounding": float(report.bound.rounding.max()),
            "ratio": report.ratio,
            **origin.numbers,
            "passed": passed,
            "constants": asdict(compiled.constants),
            "arguments": compiled.arguments,
        }
        lines = [*network.notes, *origin.notes, *str(report).splitlines(), *origin.lines]
        lines.append(f"{self.format}: {compiled.arguments}")
        if self.onnx is not None and passed:
            from convattn.networks.onnx import write_onnx

            few = images[:1] if self.images is None else images
            write_onnx(compiled, few, self.onnx)  # it is run, then written
            lines.append(f"written to {self.onnx}, as ONNX for images {few.shape}")
        return compiled.contents(), passed, lines, numbers
