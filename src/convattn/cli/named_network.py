"""`named_network`: a network by what a command line calls it, as a function of JAX."""

import sys
from collections.abc import Callable
from functools import wraps
from importlib.metadata import entry_points
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from convattn.extras import remedy
from convattn.networks.named import FAMILIES, own_code, own_network


class NamedNetwork(NamedTuple):
    """A network as a function of JAX.

    Attributes:
        function: Of images.
        example_shape: Of one example without the batch; None where it is not known.
        notes: What a user should know, one sentence each.
        in_pytorch: The same computed by PyTorch; None for a function of JAX.
        images: That it is tested on; None where they are not known.
    """

    function: Callable[..., Any]
    example_shape: tuple[int, ...] | None = None
    notes: tuple[str, ...] = ()
    in_pytorch: Callable[[np.ndarray], list[np.ndarray]] | None = None
    images: np.ndarray | None = None

    def on_images(self, name: str, shape: tuple[int, ...]) -> Callable[..., Any]:
        """The function, whose errors name it and the images that a command calls it with."""

        @wraps(self.function, updated=())
        def function(images: Any) -> Any:
            takes = "--images and --image-size say what it is called with"
            with own_code(f"{name} on images {shape} ({takes})"):
                return self.function(images)

        return function


def named_network(
    name: str, weights: Path | str | None = None, dtype: str = "float32"
) -> NamedNetwork:
    """A network in evaluation mode.

    Args:
        name: `torchvision/resnet50`, `timm/resnet50` or any other name of these libraries; or
            `MODULE:FUNCTION` or `FILE.py:FUNCTION`, called without arguments, which gives a
            function of JAX or a module of PyTorch. That code is run. Or the folder of a run.
        weights: A state dict for a module of PyTorch.
        dtype: That modules of PyTorch compute in; float64 where JAX has its 64-bit types enabled.

    Raises:
        ValueError: For a name that there is not, with near ones; for what the function gives; and
            for weights that are not the network's. `ModuleNotFoundError`, naming the extra, without
            PyTorch where it is needed. `OSError` if a file cannot be read.
    """
    if Path(name).is_dir():
        return _of_run(Path(name), weights, dtype)
    own = own_network(name) if ":" in name else None
    torch: Any = sys.modules.get("torch")
    if own is not None and (torch is None or not isinstance(own, torch.nn.Module)):
        if weights is not None:
            raise ValueError(
                f"weights={str(weights)!r} for a function of JAX, but expected none: what its "
                f"parameters are called is not known; load them in {name}"
            )
        return NamedNetwork(own)
    if own is None and name.partition("/")[0] not in ("torchvision", "timm"):
        raise ValueError(f"network={name!r}, but expected one of {', '.join(FAMILIES)}")
    from convattn.torch.networks import network

    of_torch = network(name, weights, dtype, made=own)
    return NamedNetwork(
        of_torch.function, of_torch.example_shape, of_torch.notes, of_torch.outputs_in_pytorch
    )


def _of_run(folder: Path, weights: Path | str | None, dtype: str) -> NamedNetwork:
    """What the package that knows such folders makes of it."""
    if weights is not None:
        raise ValueError(
            f"weights={str(weights)!r} for the folder of a run, but expected none: it has its own"
        )
    return reader_of_runs("trained", folder)(folder, dtype)


def reader_of_runs(name: str, folder: Path) -> Callable[..., Any]:
    """What an installed package does with the folder of a run, by the name of its entry point."""
    for entry in entry_points(group="convattn.networks", name=name):
        reader: Callable[..., Any] = entry.load()
        return reader
    raise ValueError(f"NETWORK got the folder {folder}, but {remedy('convattn_lab')}")
