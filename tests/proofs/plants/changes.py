"""Changes that plants share: each takes the original and returns what is to stand there."""

from collections.abc import Callable
from typing import Any

Change = Callable[[Any], Any]


def always(value: Any) -> Change:
    return lambda original: lambda *given, **named: value


def replaced_by(value: Any) -> Change:
    return lambda original: value


def scaled(factor: Any) -> Change:
    return lambda original: lambda *given, **named: factor * original(*given, **named)


def one_more(original: Any) -> Any:
    return lambda *given, **named: original(*given, **named) + 1


def turned_around(original: Any) -> Any:
    return lambda *given, **named: original(*given, **named)[::-1]


def turned_kernel(original: Any) -> Any:
    def changed(kernel: Any, *given: Any, **named: Any) -> Any:
        backwards = (slice(None, None, -1),) * (kernel.ndim - 2)
        return original(kernel[backwards], *given, **named)

    return changed


def doubled_kernel(original: Any) -> Any:
    return lambda kernel, *given, **named: original(2 * kernel, *given, **named)


def without(option: str) -> Change:
    def change(original: Any) -> Any:
        return lambda *given, **named: original(*given, **{**named, option: 1})

    return change


def no_uniform_head(original: Any) -> Any:
    """The map of the uniform head, the last one, is zero."""

    def changed(*given: Any) -> Any:
        heads, blocks = original(*given)
        return heads, blocks.at[-1].set(0)

    return changed
