"""Changes that plants share: each takes the original and returns what is to stand there."""

from collections.abc import Callable
from typing import Any

Change = Callable[[Any], Any]


def always(value: Any) -> Change:
    return lambda original: lambda *args, **kwargs: value


def replaced_by(value: Any) -> Change:
    return lambda original: value


def scaled(factor: Any) -> Change:
    return lambda original: lambda *args, **kwargs: factor * original(*args, **kwargs)


def one_more(original: Any) -> Any:
    return lambda *args, **kwargs: original(*args, **kwargs) + 1


def turned_around(original: Any) -> Any:
    return lambda *args, **kwargs: original(*args, **kwargs)[::-1]


def turned_kernel(original: Any) -> Any:
    def changed(kernel: Any, *args: Any, **kwargs: Any) -> Any:
        backwards = (slice(None, None, -1),) * (kernel.ndim - 2)
        return original(kernel[backwards], *args, **kwargs)

    return changed


def doubled_kernel(original: Any) -> Any:
    return lambda kernel, *args, **kwargs: original(2 * kernel, *args, **kwargs)


def without(option: str) -> Change:
    def change(original: Any) -> Any:
        return lambda *args, **kwargs: original(*args, **{**kwargs, option: 1})

    return change


def no_uniform_head(original: Any) -> Any:
    """The map of the uniform head, the last one, is zero."""

    def changed(*args: Any) -> Any:
        heads, blocks = original(*args)
        return heads, blocks.at[-1].set(0)

    return changed
