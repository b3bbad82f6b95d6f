"""What every positional encoding offers."""

from collections.abc import Callable, Sequence
from dataclasses import fields, replace
from typing import Any, NamedTuple, Protocol, TypeVar, get_args, get_origin, runtime_checkable

import jax
import jax.numpy as jnp
import numpy as np
from jax import Array, lax
from jaxtyping import AbstractArray, Float, Int

from convattn.encodings.majorants import ScoreError
from convattn.operators.arrays import promoted
from convattn.operators.shifts import Shift, TokenGrid


@runtime_checkable
class PositionalEncoding(Protocol):
    """The positional part of the scores of several heads.

    The scores depend on where query and key stand, never on what they hold.
    """

    @property
    def heads(self) -> int:
        """How many heads there are."""
        ...

    def positional_scores(self, grid: TokenGrid) -> Float[Array, "heads queries keys"]:
        """The scores of every query (an image token) with every key (image or ring)."""
        ...

    def head_gains(self, number_of_keys: int | Array) -> Float[Array, "heads"] | None:
        """A factor for each head's value map that depends on the number of keys, or none."""
        ...

    def take_heads(self, indices: Sequence[int]) -> "PositionalEncoding":
        """The same encoding with these heads, in this order; a head may be repeated."""
        ...


class Part(NamedTuple):
    """An array of an encoding, as its field's annotation describes it.

    Attributes:
        rank: How many axes it has; of a field that is a tuple, each of its arrays.
        per_head: Whether the first axis is the head.
        is_tuple: Whether the field holds one array for each spatial axis.
    """

    rank: int
    per_head: bool
    is_tuple: bool


def array_parts(cls: type) -> dict[str, Part]:
    """The fields of a dataclass that are annotated as arrays with named axes.

    It is the schema of an encoding: which heads are taken, what a file of weights must hold.

    >>> from convattn.encodings import BiasEncoding
    >>> array_parts(BiasEncoding)["values"], array_parts(BiasEncoding)["uniform_weight"].rank
    (Part(rank=2, per_head=True, is_tuple=False), 0)
    """
    fields_by_name = {}
    for field in fields(cls):
        annotations = [field.type, *get_args(field.type)]
        for kind in [
            *annotations,
            *(argument for annotation in annotations for argument in get_args(annotation)),
        ]:
            if isinstance(kind, type) and issubclass(kind, AbstractArray):
                axes = kind.dim_str.split()
                is_tuple = any(get_origin(annotation) is tuple for annotation in annotations)
                fields_by_name[field.name] = Part(len(axes), axes[:1] == ["heads"], is_tuple)
    return fields_by_name


Own = TypeVar("Own", bound="Encoding")


class Encoding:
    """A dataclass of arrays: which of them have a head for their first axis its annotations say."""

    @property
    def heads(self) -> int:
        """How many heads there are."""
        name = next(name for name, part in array_parts(type(self)).items() if part.per_head)
        arrays = getattr(self, name)
        return int((arrays[0] if isinstance(arrays, tuple) else arrays).shape[0])

    def head_gains(self, number_of_keys: int | Array) -> Float[Array, "heads"] | None:
        """None: the value maps of most encodings need not know the number of keys."""
        return None

    def gain_majorant(self, number_of_keys: int) -> Float[Array, "heads"]:
        """The gains with every term made positive (`encodings.majorants`)."""
        return jnp.ones(self.heads)

    def score_majorant(self, grid: TokenGrid) -> Float[Array, "heads queries keys"]:
        """The scores with every term made positive (`encodings.majorants`).

        Raises:
            ValueError: Where a class does not say it.
        """
        raise self._no_majorant()

    @property
    def roundings(self) -> int:
        """How many roundings more than 16 are on the longest path of a score.

        Raises:
            ValueError: Where a class does not say it.
        """
        raise self._no_majorant()

    def score_error(self, number_of_keys: int) -> ScoreError:
        """How far computed scores and gains can be off.

        Raises:
            ValueError: Where a class does not say it.
        """
        raise self._no_majorant()

    def _no_majorant(self) -> ValueError:
        name = type(self).__name__
        return ValueError(
            f"no rounding bound is derived for the scores of this {name}; give {name} its majorant "
            "and its roundings (convattn.encodings.majorants)"
        )

    @property
    def is_exact_form(self) -> bool:
        """Whether it is the form of a construction that is exact at finite parameters."""
        return False

    def take_heads(self: Own, indices: Sequence[int]) -> Own:
        """The same encoding with these heads, in this order; a head may be repeated."""
        chosen = np.asarray(indices, np.int32)
        changes = {
            name: jax.tree.map(lambda array: array[chosen], getattr(self, name))
            for name, part in array_parts(type(self)).items()
            if part.per_head
        }
        return replace(self, **changes)  # type: ignore[type-var]

    def check(self) -> None:
        """Refuse arrays that do not fit together, such as a damaged file may hold.

        Raises:
            ValueError: Where a rank is not that of the annotation, an axis is empty, or the heads
                of two arrays differ.
        """
        check_parts(self, "encoding")


def check_parts(holder: Any, where: str) -> None:
    """Refuse arrays of another rank than annotated, empty ones, and heads that differ."""
    heads = {}
    for name, (rank, per_head, is_tuple) in array_parts(type(holder)).items():
        value = getattr(holder, name)
        if value is None:
            continue
        shapes = [array.shape for array in value] if is_tuple else [value.shape]
        if is_tuple and len(shapes) not in (1, 2):
            raise ValueError(
                f"{where}.{name}={len(shapes)} arrays, but expected one for each of one or two "
                "spatial axes"
            )
        for shape in shapes:
            if len(shape) != rank or 0 in shape:
                raise ValueError(
                    f"{where}.{name}.shape={shape}, but expected {rank} axes, none of them empty"
                )
        if per_head:
            heads[name] = [shape[0] for shape in shapes]
    if len({count for counts in heads.values() for count in counts}) > 1:
        raise ValueError(f"heads={heads}, but expected one number of heads in all of {where}")


class RelativePosition(Encoding):
    """An encoding whose scores depend on the shift δ = key - query alone.

    A subclass gives `shift_scores`; the scores of a grid are read from that one table.
    """

    def shift_scores(
        self, shifts: Int[np.ndarray, "shifts axes"], number_of_keys: int | Array
    ) -> Float[Array, "heads shifts"]:
        """The score of each head at each shift."""
        raise NotImplementedError

    def positional_scores(self, grid: TokenGrid) -> Float[Array, "heads queries keys"]:
        """The scores of every query with every key, read from the table of shifts."""
        if grid.ahead is not None:
            return self.positional_scorer(grid)(jnp.arange(grid.queries[0]))
        table = self.shift_scores(grid.shifts, grid.number_of_keys)
        return table[:, grid.shift_index()]

    def shift_majorant(
        self, shifts: Int[np.ndarray, "shifts axes"], number_of_keys: int
    ) -> Float[Array, "heads shifts"]:
        """The score of each shift with every term made positive.

        Raises:
            ValueError: Where a class does not say it.
        """
        raise self._no_majorant()

    def score_majorant(self, grid: TokenGrid) -> Float[Array, "heads queries keys"]:
        """The same for every query and key."""
        return self.shift_majorant(grid.shifts, grid.number_of_keys)[:, grid.shift_index()]

    def positional_scorer(
        self, grid: TokenGrid
    ) -> Callable[[Int[Array, " block"]], Float[Array, "heads block keys"]]:
        """The scores of some queries at a time, given by their flat numbers, which may be traced.

        The keys of a query see a rectangle of the table of shifts: on an axis with n queries, key
        k of query q has the shift k - q in row k + (n - 1 - q), so that the rectangle begins at
        n - 1 - q and is cut out in one piece. Under a causal mask each query has a table of its
        own, that of as many keys as it sees.
        """
        sides = tuple(len(shifts) for shifts in grid.shift_ranges)

        def table_of(number_of_keys: Any) -> Float[Array, " heads *shifts"]:
            return self.shift_scores(grid.shifts, number_of_keys).reshape(self.heads, *sides)

        common = table_of(grid.number_of_keys) if grid.ahead is None else None

        def row(query: Int[Array, ""]) -> Float[Array, "heads keys"]:
            positions = jnp.unravel_index(query, grid.queries)
            firsts = (n - 1 - position for n, position in zip(grid.queries, positions, strict=True))
            starts = (jnp.zeros((), query.dtype), *firsts)
            table = table_of(grid.visible_keys(query)) if common is None else common
            cut = lax.dynamic_slice(table, starts, (self.heads, *grid.keys))
            return cut.reshape(self.heads, grid.number_of_keys)

        return jax.vmap(row, out_axes=1)


class OffsetTable(RelativePosition):
    """Scores with an entry for each of `offsets`, and one value at every other shift.

    A subclass gives `offsets` and `entries`.
    """

    offsets: tuple[Shift, ...]

    def entries(self) -> int:
        """How many entries the arrays hold."""
        raise NotImplementedError

    @property
    def roundings(self) -> int:
        """None: an entry is computed in at most 16."""
        return 0

    def rows(self, shifts: Int[np.ndarray, "shifts axes"]) -> Int[np.ndarray, " shifts"]:
        """The place of each shift among the offsets; of every other, the one after the last."""
        check_axes(shifts, len(self.offsets[0]), type(self).__name__)
        where = {offset: index for index, offset in enumerate(self.offsets)}
        return np.array([where.get(tuple(s), len(where)) for s in shifts.tolist()], np.int32)

    def check(self) -> None:
        """Refuse offsets that are no distinct shifts, or not as many as there are entries.

        Raises:
            ValueError: As described above, and as `Encoding.check` does.
        """
        super().check()
        offsets: Any = self.offsets
        sizes = {len(offset) if isinstance(offset, tuple) else 0 for offset in offsets}
        if not offsets or len({*offsets}) < len(offsets) or len(sizes) > 1 or 0 in sizes:
            raise ValueError(f"encoding.offsets={offsets}, but expected distinct shifts")
        if self.entries() != len(offsets):
            raise ValueError(
                f"encoding.offsets={offsets}, but expected as many as entries: {self.entries()}"
            )


def check_axes(shifts: np.ndarray, axes: int, name: str) -> None:
    """Refuse shifts of another number of axes than the encoding's parameters have."""
    if shifts.shape[-1] != axes:
        raise ValueError(
            f"axes={shifts.shape[-1]} of the grid, but expected {axes}, for which {name} is made; "
            "build it with as many coordinates as the image has"
        )


def score_dtype(*parameters: Array) -> jnp.dtype:
    """Scores are computed in at least float32, whatever the parameters are stored in."""
    return promoted(jnp.result_type(*parameters), jnp.float32)
