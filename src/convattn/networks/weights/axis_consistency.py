"""Whether the parts of an encoding that has one for each axis fit together."""

from collections.abc import Sequence
from typing import Any

from convattn.encodings import AxialEncoding, QuadraticGridEncoding


def check_axis_parts(encoding: Any) -> None:
    """Refuse an encoding by axes whose sizes contradict each other; others pass.

    Raises:
        ValueError: As described above.

    >>> import jax.numpy as jnp
    >>> one = (jnp.ones(1),)
    >>> check_axis_parts(QuadraticGridEncoding(one, one, ((0,), (1,))))
    Traceback (most recent call last):
    ...
    ValueError: encoding.pairs=((0,), (1,)), but should hold an index below (1,) for each axis
    """
    if isinstance(encoding, QuadraticGridEncoding):
        check_grid(encoding)
    if isinstance(encoding, AxialEncoding):
        check_axial(encoding)


def check_grid(encoding: QuadraticGridEncoding) -> None:
    """Refuse α and centres of different sizes, and pairs that point beyond them.

    Raises:
        ValueError: As described above.
    """
    alpha = sizes(encoding.alpha, "alpha", 1)
    centers = sizes(encoding.centers, "centers", 1)
    if alpha != centers:
        raise ValueError(f"the sizes of alpha and of centers differ: {alpha} and {centers}")
    counts, pairs = tuple(size for (size,) in centers), encoding.pairs
    fits = isinstance(pairs, tuple) and all(
        isinstance(pair, tuple)
        and len(pair) == len(counts)
        and all(
            isinstance(i, int) and 0 <= i < count for i, count in zip(pair, counts, strict=True)
        )
        for pair in pairs
    )
    if not fits or not pairs:
        raise ValueError(
            f"encoding.pairs={pairs}, but should hold an index below {counts} for each axis"
        )


def check_axial(encoding: AxialEncoding) -> None:
    """Refuse maps of different heads, and tables whose vectors they do not take.

    Raises:
        ValueError: As described above.
    """
    query, key = sizes(encoding.query, "query", 3), sizes(encoding.key, "key", 3)
    heads = {shape[0] for shape in query + key}
    if query != key or len(heads) > 1:
        raise ValueError(f"the shapes of query and key, or their heads, differ: {query} and {key}")
    if encoding.tables is None:
        return
    tables = sizes(encoding.tables, "tables", 2)
    features = tuple(shape[1] for shape in tables), tuple(shape[1] for shape in query)
    if features[0] != features[1]:
        raise ValueError(f"tables have {features[0]} features, but the maps take {features[1]}")


def sizes(arrays: Sequence[Any], name: str, rank: int) -> tuple[tuple[int, ...], ...]:
    """The shape of each axis' array.

    Raises:
        ValueError: Unless there are one or two, of that rank, none of them empty.
    """
    found = tuple(array.shape for array in arrays)
    if len(found) not in (1, 2) or any(len(shape) != rank or 0 in shape for shape in found):
        raise ValueError(
            f"encoding.{name} has the shapes {found}, but should be one or two arrays, one for "
            f"each spatial axis, of {rank} axes, none of them empty"
        )
    return found
