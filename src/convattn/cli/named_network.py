"""`named_network`: a network by what a command line calls it, as a function of JAX."""

import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any, NamedTuple

from convattn.networks.named import FAMILIES, own_network


class NamedNetwork(NamedTuple):
    """A network as a function of JAX.

    Attributes:
        function: Of images.
        example_shape: Of one example without the batch; None where it is not known.
        notes: What a user should know, one sentence each.
    """

    function: Callable[..., Any]
    example_shape: tuple[int, ...] | None = None
    notes: tuple[str, ...] = ()


def named_network(
    name: str, weights: Path | str | None = None, dtype: str = "float32"
) -> NamedNetwork:
    """A network in evaluation mode.

    Args:
        name: `torchvision/resnet50`, `timm/resnet50` or any other name of these libraries; or
            `MODULE:FUNCTION` or `FILE.py:FUNCTION`, called without arguments, which gives a
            function of JAX or a module of PyTorch. That code is run.
        weights: A state dict for a module of PyTorch.
        dtype: That modules of PyTorch compute in; float64 where JAX has its 64-bit types enabled.

    Raises:
        ValueError: For a name that there is not, with near ones; for what the function gives; and
            for weights that are not the network's. `ModuleNotFoundError`, naming the extra, without
            PyTorch where it is needed. `OSError` if a file cannot be read.
    """
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
    return NamedNetwork(of_torch.function, of_torch.example_shape, of_torch.notes)
