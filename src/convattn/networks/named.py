"""`own_network`: a network that a function of one's own gives, by the name of the function."""

import difflib
import importlib
import importlib.util
import inspect
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import jax

FAMILIES = ("torchvision/NAME", "timm/NAME", "MODULE:FUNCTION", "FILE.py:FUNCTION")
NEAR = 5  # names that are offered


@contextmanager
def own_code(what: str) -> Iterator[None]:
    """Code that is not this library's: its errors are said to be its own."""
    try:
        yield
    except (ValueError, NotImplementedError, ImportError, OSError):
        raise
    except (jax.errors.JAXTypeError, jax.errors.JAXIndexError):  # of what cannot be traced
        raise
    except Exception as error:
        raise ValueError(f"{what} ends in {type(error).__name__}: {error}") from error


def own_network(name: str) -> Any:
    """What a function gives that is called without arguments. Its code is run.

    Args:
        name: `MODULE:FUNCTION` or `FILE.py:FUNCTION`.

    >>> own_network("math:sqrt")
    Traceback (most recent call last):
    ...
    ValueError: network='math:sqrt' cannot be called without arguments: missing a required \
argument: 'x'; give a function that returns the network
    """
    source, _, attribute = name.rpartition(":")
    module: Any
    if source.endswith(".py"):
        if not Path(source).is_file():
            raise ValueError(f"network={name!r}, but there is no file {source}")
        spec = importlib.util.spec_from_file_location(Path(source).stem, source)
        assert spec is not None
        assert spec.loader is not None
        module = importlib.util.module_from_spec(spec)
        sys.modules.setdefault(spec.name, module)
        with own_code(name):
            spec.loader.exec_module(module)
    else:
        sys.path.insert(0, "")
        try:
            with own_code(name):
                module = importlib.import_module(source)
        except ModuleNotFoundError as error:
            if error.name is None or not f"{source}.".startswith(f"{error.name}."):
                raise
            raise ValueError(f"network={name!r}, but there is no module {error.name}") from error
        finally:
            sys.path.remove("")
    if not hasattr(module, attribute):
        near = difflib.get_close_matches(attribute, dir(module), NEAR)
        hint = f"; near ones are {', '.join(near)}" if near else ""
        raise ValueError(f"network={name!r}, but {source} has no {attribute!r}{hint}")
    function = getattr(module, attribute)
    try:
        inspect.signature(function).bind()
    except (TypeError, ValueError) as error:
        raise ValueError(
            f"network={name!r} cannot be called without arguments: {error}; give a function that "
            "returns the network"
        ) from error
    with own_code(name):
        result = function()
    if not callable(result):
        raise ValueError(
            f"network={name!r} gives {type(result).__name__}, but expected a function of JAX or a "
            "torch.nn.Module; return the network, not its output"
        )
    return result
