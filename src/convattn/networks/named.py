"""`own_network`: a network that a function of one's own gives, by the name of the function."""

import difflib
import importlib
import importlib.util
import inspect
import sys
import traceback
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import jax

from convattn.extras import missing

FAMILIES = ("torchvision/NAME", "timm/NAME", "MODULE:FUNCTION", "FILE.py:FUNCTION")
NEAR = 5  # names that are offered


@contextmanager
def own_code(what: str) -> Iterator[None]:
    """Code that is not this library's: its errors are said to be its own."""
    try:
        yield
    except (jax.errors.JAXTypeError, jax.errors.JAXIndexError):  # of what cannot be traced
        raise
    except Exception as error:
        if isinstance(error, ModuleNotFoundError) and missing(error):  # an extra brings it
            raise
        if isinstance(error, ValueError | OSError) and _is_of_this_library(error):
            raise
        raise ValueError(f"{what} ends in {type(error).__name__}: {error}") from error


def _is_of_this_library(error: BaseException) -> bool:
    """Whether an error was raised in a module of convattn."""
    *_, (frame, _) = traceback.walk_tb(error.__traceback__)
    package = str(frame.f_globals.get("__name__")).partition(".")[0]
    return package in ("convattn", "convattn_lab", "convattn_ledger")


@contextmanager
def _importable(*folders: str) -> Iterator[None]:
    """Modules of these folders can be imported meanwhile, before all others."""
    sys.path[:0] = folders
    try:
        yield
    finally:
        for folder in folders:
            if folder in sys.path:
                sys.path.remove(folder)


def own_network(name: str) -> Any:
    """What a function gives that is called without arguments. Its code is run.

    Args:
        name: `MODULE:FUNCTION` or `FILE.py:FUNCTION`. While it runs, modules of the current folder
            and of the file's can be imported.

    >>> own_network("math:sqrt")
    Traceback (most recent call last):
    ...
    ValueError: network='math:sqrt' cannot be called without arguments: missing a required \
argument: 'x'; give a function that returns the network
    """
    source, _, attribute = name.rpartition(":")
    is_file = source.endswith(".py")
    if is_file and not Path(source).is_file():
        raise ValueError(f"network={name!r}, but there is no file {source}")
    folders = (str(Path(source).parent.resolve()), "") if is_file else ("",)
    with own_code(name), _importable(*folders):
        module = _executed(source) if is_file else _imported(source, name)
        if not hasattr(module, attribute):
            near = difflib.get_close_matches(attribute, dir(module), NEAR)
            hint = f"; near ones are {', '.join(near)}" if near else ""
            raise ValueError(f"network={name!r}, but {source} has no {attribute!r}{hint}")
        function = getattr(module, attribute)
        try:
            inspect.signature(function).bind()
        except (TypeError, ValueError) as error:
            raise ValueError(
                f"network={name!r} cannot be called without arguments: {error}; give a function "
                "that returns the network"
            ) from error
        result = function()
    if not callable(result):
        raise ValueError(
            f"network={name!r} gives {type(result).__name__}, but expected a function of JAX or a "
            "torch.nn.Module; return the network, not its output"
        )
    return result


def _executed(source: str) -> Any:
    """The module that a file is."""
    spec = importlib.util.spec_from_file_location(Path(source).stem, source)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    sys.modules.setdefault(spec.name, module)
    spec.loader.exec_module(module)
    return module


def _imported(source: str, name: str) -> Any:
    """The module of this name."""
    try:
        return importlib.import_module(source)
    except ModuleNotFoundError as error:
        if error.name is None or not f"{source}.".startswith(f"{error.name}."):
            raise
        raise ValueError(f"network={name!r}, but there is no module {error.name}") from error
