"""`named_network`: a network by what a command line calls it, as a function of JAX."""

import difflib
import importlib
import importlib.util
import inspect
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any, NamedTuple

FAMILIES = ("torchvision/NAME", "timm/NAME", "MODULE:FUNCTION", "FILE.py:FUNCTION")
NEAR = 5  # names that are offered


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

    >>> named_network("math:sqrt").function(4.0)
    Traceback (most recent call last):
    ...
    ValueError: network='math:sqrt' cannot be called without arguments: missing a required \
argument: 'x'; give a function that returns the network
    """
    made = own_network(name) if ":" in name else None
    torch: Any = sys.modules.get("torch")
    if made is not None and (torch is None or not isinstance(made, torch.nn.Module)):
        if weights is not None:
            raise ValueError(
                f"weights={str(weights)!r} for a function of JAX, but expected none: what its "
                f"parameters are called is not known; load them in {name}"
            )
        return NamedNetwork(made)
    if made is None and name.partition("/")[0] not in ("torchvision", "timm"):
        raise ValueError(f"network={name!r}, but expected one of {', '.join(FAMILIES)}")
    from convattn.torch.networks import network

    found = network(name, weights, dtype, made=made)
    return NamedNetwork(found.function, found.example_shape, found.notes)


def own_network(name: str) -> Any:
    """What one's own function gives, `MODULE:FUNCTION` or `FILE.py:FUNCTION`.

    Raises:
        ValueError: For what there is not, and for what is not callable.
    """
    place, _, attribute = name.rpartition(":")
    module: Any
    if place.endswith(".py"):
        if not Path(place).is_file():
            raise ValueError(f"network={name!r}, but there is no file {place}")
        spec = importlib.util.spec_from_file_location(Path(place).stem, place)
        assert spec is not None
        assert spec.loader is not None
        module = importlib.util.module_from_spec(spec)
        sys.modules.setdefault(spec.name, module)
        spec.loader.exec_module(module)
    else:
        sys.path.insert(0, "")
        try:
            module = importlib.import_module(place)
        except ModuleNotFoundError as error:
            if error.name is None or not f"{place}.".startswith(f"{error.name}."):
                raise
            raise ValueError(f"network={name!r}, but there is no module {error.name}") from error
        finally:
            sys.path.remove("")
    if not hasattr(module, attribute):
        near = difflib.get_close_matches(attribute, dir(module), NEAR)
        hint = f"; near ones are {', '.join(near)}" if near else ""
        raise ValueError(f"network={name!r}, but {place} has no {attribute!r}{hint}")
    function = getattr(module, attribute)
    try:
        inspect.signature(function).bind()
    except (TypeError, ValueError) as error:
        raise ValueError(
            f"network={name!r} cannot be called without arguments: {error}; give a function that "
            "returns the network"
        ) from error
    result = function()
    if not callable(result):
        raise ValueError(
            f"network={name!r} gives {type(result).__name__}, but expected a function of JAX or a "
            "torch.nn.Module; return the network, not its output"
        )
    return result
