"""Convolutional networks compiled into unmodified vision transformers: docs/compile.md.

The names load on first use.
"""

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from convattn.compile.compilation import size as size
    from convattn.compile.compilation import to_vision_transformer as to_vision_transformer
    from convattn.compile.network import NotCompiled as NotCompiled
    from convattn.compile.sizes import Capacity as Capacity
    from convattn.compile.sizes import Size as Size
    from convattn.compile.sizes import capacity as capacity
    from convattn.compile.transformer import CompiledTransformer as CompiledTransformer
    from convattn.compile.transformer import Report as Report

_HOMES = {
    "Capacity": "sizes",
    "CompiledTransformer": "transformer",
    "NotCompiled": "network",
    "Report": "transformer",
    "Size": "sizes",
    "capacity": "sizes",
    "size": "compilation",
    "to_vision_transformer": "compilation",
}
__all__ = [*_HOMES]


def __getattr__(name: str) -> Any:
    if name not in _HOMES:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return getattr(import_module(f"{__name__}.{_HOMES[name]}"), name)


def __dir__() -> list[str]:
    return sorted({*globals(), *_HOMES})
