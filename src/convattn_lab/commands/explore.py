"""``convattn explore``: a page on this machine that shows what the heads of a model attend to."""

import math
import os
import signal
from dataclasses import dataclass
from importlib.util import find_spec
from pathlib import Path
from typing import Annotated, Any

from tyro.conf import Positional, arg

from convattn.cli.diagnose import read_test_images
from convattn.cli.output import print_lines
from convattn.cli.running import Flag, Sizes, UsageError, option, sizes_of

NEEDED = {"starlette": "starlette", "uvicorn": "uvicorn", "PIL": "pillow"}
PORTS = 2**16


@dataclass(frozen=True)
class Explore:
    """Show what the attention heads of a model do, in a browser, on this machine alone.

    MODEL is the folder of a run, a network or layer that convattn convert has written, or what
    convattn diagnose reads. The page is served on 127.0.0.1 under an address that nobody else
    knows, until Ctrl-C or until the terminal is closed.

    Attributes:
        model: A folder, .safetensors, .npz or .npy; no pickles.
        images: A folder or archive of images as for experiments/cifar.py, whose test images are
            offered; default: those of the run, or the bundled slice of CIFAR-10.
        count: Heads are measured on so many of the images, where it depends on them.
        kernel_size: Of the nearest convolution, in tokens, where the layer does not say it.
        image_size: Pixels of the images; default: those that the model was trained with, or 32. For
            attention probabilities the tokens.
        heads: Of each layer of a state dict, if no table says it; default: width / 64.
        rotary: Of a state dict, as in convattn diagnose, which says what stands in no tensor.
        norm_epsilon: The same.
        activation: The same.
        mean: What pixels are normalised with, (x/255 - mean)/std, one number or three; default: as
            the run did, 0.5 for state dicts, ImageNet's for converted checkpoints.
        std: The same.
        port: Default: one that is free.
        open: Open the page in the browser.
    """

    model: Annotated[Positional[Path], option("MODEL")]
    images: Annotated[Path | None, option("PATH")] = None
    count: int = 8
    kernel_size: Annotated[int, option("K")] = 3
    image_size: Annotated[Sizes | None, option("H [W]")] = None
    heads: Annotated[int | None, option("N")] = None
    rotary: Annotated[tuple[str, ...] | None, option("KIND [KEY=VALUE …]")] = None
    norm_epsilon: Annotated[float | None, option("E")] = None
    activation: Annotated[str | None, option("NAME")] = None
    mean: Annotated[tuple[float, ...] | None, arg(metavar="M [M M]", help_behavior_hint="")] = None
    std: Annotated[tuple[float, ...] | None, arg(metavar="S [S S]", help_behavior_hint="")] = None
    port: Annotated[int, option("N")] = 0
    open: Flag = False

    def __call__(self) -> int:
        """Serve until a signal.

        Returns:
            128 and the number of the signal, as other commands do.

        Raises:
            UsageError: If the model cannot be read or shown, an option does not go with it, or the
                port is taken. KeyboardInterrupt for Ctrl-C.
        """
        missing = [package for name, package in NEEDED.items() if find_spec(name) is None]
        if missing:
            raise UsageError(
                f"{' and '.join(missing)} not installed, but explore needs it: "
                "pip install 'convattn[explore]'"
            )
        if min(self.count, self.kernel_size) < 1 or not 0 <= self.port < PORTS:
            raise UsageError(
                f"--count {self.count}, --kernel-size {self.kernel_size} and --port {self.port}, "
                f"but expected 1 or more, 1 or more, and 0 to {PORTS - 1}"
            )
        numbers = {"--mean": self.mean, "--std": self.std}
        for name, value in numbers.items():
            if value is not None and (
                len(value) not in (1, 3)
                or not all(map(math.isfinite, value))
                or (name == "--std" and min(value) <= 0)
            ):
                raise UsageError(
                    f"{name} got {value}, but expected one number or three, finite; std > 0"
                )
        # Before NumPy is loaded: where cores are shared, threads wait for each other far longer
        # than the small products of one image take.
        os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")
        from convattn_lab.explorer.run import listening, serve

        try:
            listener = listening(self.port)
        except OSError as error:
            raise UsageError(
                f"--port got {self.port}, but {error.strerror}; leave it out for a free one"
            ) from error
        with listener:
            signal_number = serve(self._model(), listener, self._announce)
        if signal_number == signal.SIGINT:
            raise KeyboardInterrupt
        return 128 + (signal_number or 0)

    def _model(self) -> Any:
        from convattn_lab.explorer.model import ExploredModel
        from convattn_lab.explorer.opening import open_source

        size = None if self.image_size is None else sizes_of(self.image_size, "--image-size")
        try:
            options = ("heads", "mean", "std", "norm_epsilon", "activation")
            how: dict[str, Any] = {name: getattr(self, name) for name in options}
            how["rotary"] = None if self.rotary is None else " ".join(self.rotary)
            source = open_source(self.model, image_size=size, **how)
            images = None
            if self.images is not None:
                if source.image_size is None:
                    raise UsageError(
                        f"--images was given, but {source.name} holds attention alone, which no "
                        "image changes; leave it out"
                    )
                images = read_test_images(self.images)
            how = {"reference": self.count, "kernel_size": self.kernel_size}
            return ExploredModel(source, images, **how)
        except OSError as error:
            what, why = error.filename or self.model, error.strerror or error
            raise UsageError(f"cannot read {what}: {why}") from error
        except ValueError as error:
            raise UsageError(str(error)) from error

    def _announce(self, url: str) -> None:
        print_lines([f"{self.model} at {url}", "Ctrl-C ends it."])
        if self.open:
            import webbrowser

            webbrowser.open(url)
