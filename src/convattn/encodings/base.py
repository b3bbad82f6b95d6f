"""What every positional encoding offers."""

from collections.abc import Callable, Sequence
from dataclasses import fields, replace
from typing import Protocol, runtime_checkable

import jax
import jax.numpy as jnp
import numpy as np
from jax import Array, lax
from jaxtyping import Float, Int

from convattn.operators.shifts import TokenGrid


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

    def head_gains(self, number_of_keys: int) -> Float[Array, "heads"] | None:
        """A factor for each head's value map that depends on the number of keys, or none."""
        ...

    def take_heads(self, indices: Sequence[int]) -> "PositionalEncoding":
        """The same encoding with these heads, in this order; a head may be repeated."""
        ...


class RelativePosition:
    """An encoding whose scores depend on the shift δ = key - query alone.

    A subclass gives `shift_scores`; the scores of a grid are read from that one table. `PER_HEAD`
    names the fields whose first axis is the head.
    """

    PER_HEAD: tuple[str, ...] = ()

    @property
    def heads(self) -> int:
        """How many heads there are."""
        return int(getattr(self, self.PER_HEAD[0]).shape[0])

    def shift_scores(
        self, shifts: Int[np.ndarray, "shifts axes"], number_of_keys: int
    ) -> Float[Array, "heads shifts"]:
        """The score of each head at each shift."""
        raise NotImplementedError

    def positional_scores(self, grid: TokenGrid) -> Float[Array, "heads queries keys"]:
        """The scores of every query with every key, read from the table of shifts."""
        table = self.shift_scores(grid.shifts, grid.number_of_keys)
        return table[:, grid.shift_index()]

    def positional_scorer(
        self, grid: TokenGrid
    ) -> Callable[[Int[Array, "block"]], Float[Array, "heads block keys"]]:
        """The scores of some queries at a time, given by their flat numbers, which may be traced.

        The keys of a query see a rectangle of the table of shifts: on an axis with n queries, key
        k of query q has the shift k - q in row k + (n - 1 - q), so that the rectangle begins at
        n - 1 - q and is cut out in one piece.
        """
        sides = tuple(len(shifts) for shifts in grid.shift_ranges)
        table = self.shift_scores(grid.shifts, grid.number_of_keys).reshape(self.heads, *sides)

        def row(query: Int[Array, ""]) -> Float[Array, "heads keys"]:
            places = jnp.unravel_index(query, grid.queries)
            firsts = (n - 1 - place for n, place in zip(grid.queries, places, strict=True))
            starts = (jnp.zeros((), query.dtype), *firsts)
            cut = lax.dynamic_slice(table, starts, (self.heads, *grid.keys))
            return cut.reshape(self.heads, grid.number_of_keys)

        return jax.vmap(row, out_axes=1)

    def head_gains(self, number_of_keys: int) -> Float[Array, "heads"] | None:
        """None: the value maps of most encodings need not know the number of keys."""
        return None

    def take_heads(self, indices: Sequence[int]) -> "RelativePosition":
        """The same encoding with these heads, in this order; a head may be repeated."""
        chosen = np.asarray(indices, np.int32)
        present = {field.name for field in fields(self)}  # type: ignore[arg-type]
        changes = {name: getattr(self, name)[chosen] for name in self.PER_HEAD if name in present}
        return replace(self, **changes)  # type: ignore[type-var]


def check_axes(shifts: np.ndarray, axes: int, name: str) -> None:
    """Refuse shifts of another number of axes than the encoding's parameters have.

    Raises:
        ValueError: As described above.
    """
    if shifts.shape[-1] != axes:
        raise ValueError(
            f"{name} is made for {axes} spatial axes, but the grid has {shifts.shape[-1]}; build "
            "it with as many coordinates as the image has"
        )


def score_dtype(*parameters: Array) -> jnp.dtype:
    """Scores are computed in at least float32, whatever the parameters are stored in."""
    return jnp.promote_types(jnp.result_type(*parameters), jnp.float32)
