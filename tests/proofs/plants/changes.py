"""Changes that plants share: each takes the original and returns what is to stand there."""

from collections.abc import Callable
from typing import Any

Change = Callable[[Any], Any]


def then(change: Callable[[Any], Any]) -> Change:
    """What the original returns is changed."""
    return lambda original: lambda *args, **kwargs: change(original(*args, **kwargs))


def given(change: Callable[..., Any]) -> Change:
    """The original is given the arguments that `change` makes of those by position."""
    return lambda original: lambda *args, **kwargs: original(*change(*args), **kwargs)


def first(change: Callable[[Any], Any]) -> Change:
    """The first argument is changed."""
    return given(lambda argument, *others: (change(argument), *others))


def with_options(**fixed: Any) -> Change:
    """Arguments by name are these, whatever was asked for."""
    return lambda original: lambda *args, **kwargs: original(*args, **{**kwargs, **fixed})


def always(value: Any) -> Change:
    return lambda original: lambda *args, **kwargs: value


def replaced_by(value: Any) -> Change:
    return lambda original: value


def scaled(factor: Any) -> Change:
    return then(lambda result: factor * result)


one_more = then(lambda result: result + 1)
one_fewer = then(lambda results: results[1:])
transposed = then(lambda matrix: matrix.T)
turned_around = then(lambda results: results[::-1])
turned_kernel = first(lambda kernel: kernel[(slice(None, None, -1),) * (kernel.ndim - 2)])
doubled_kernel = first(lambda kernel: 2 * kernel)
last_map_lost = then(lambda blocks: [*blocks[:-1], 0 * blocks[-1]])
# Of heads and their maps: the map of the uniform head, the last one, is zero.
no_uniform_head = then(lambda result: (result[0], result[1].at[-1].set(0)))


def with_ring(original: Any) -> Any:
    """Of a layer: its ring of zeros, whatever border was asked for."""
    return lambda layer, images, border="zeros": original(layer, images)


def full_rank(original: Any) -> Any:
    """Of matrices, whose rank is said to be as large as may be."""

    class Matrix(original):
        def rank(self) -> int:
            return min(self.nrows(), self.ncols())

    return Matrix
