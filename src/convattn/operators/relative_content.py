"""Scores of what a query holds with how far away a key is: q·r_δ.

With a table of vectors for each axis, q·r_δ = Σ_a q_a·table_a[δ_a], where q is cut into one block
of features for each axis. So it takes the products of the blocks with the rows of the tables, and
reads key k of query q from row k - q: nothing has an entry for every query, key and feature.
"""

import jax.numpy as jnp
import numpy as np
from jax import Array
from jaxtyping import Int, Num

from convattn.operators.attention import HIGHEST
from convattn.operators.shifts import TokenGrid


def relative_scores(
    tables: tuple[Array, ...],
    queries: Num[Array, "batch heads block key_features"],
    grid: TokenGrid,
    numbers: Int[Array, " block"] | None = None,
) -> Num[Array, "batch heads block keys"]:
    """q·concat(row_(δ_1), column_(δ_2)) of some queries with all keys, δ = key - query.

    Args:
        tables: For each axis `[2n - 1, features]`, the shifts -(n-1), …, n-1 in this order; the
            features add up to those of the queries.
        queries: X_q Q_h + a_h of each.
        numbers: Which of the grid's queries they are, row-major; None if they are all of them.

    Source: C20 §4.3, after Ramachandran et al. 2019.

    >>> table = jnp.array([[1.0], [10.0], [100.0]])
    >>> queries, grid = jnp.array([[[[2.0], [3.0]]]]), TokenGrid((2,), ((0, 0),))
    >>> relative_scores((table,), queries, grid).tolist()
    [[[[20.0, 200.0], [3.0, 30.0]]]]
    """
    _check_tables(tables, queries.shape[-1], grid)
    if numbers is None:
        numbers = jnp.arange(queries.shape[2])
    ends = np.cumsum([table.shape[1] for table in tables])[:-1]
    parts = jnp.split(queries, ends, axis=-1)
    positions = jnp.unravel_index(numbers, grid.queries)
    total = jnp.zeros((*queries.shape[:3], 1), queries.dtype)
    for axis, (table, part, position) in enumerate(zip(tables, parts, positions, strict=True)):
        shifts, reach = grid.shift_ranges[axis], (table.shape[0] - 1) // 2
        used = table[reach + shifts.start : reach + shifts.stop].astype(queries.dtype)
        products = jnp.einsum("bhqe,se->bhqs", part, used, precision=HIGHEST)
        # Key k of the query at p has the shift k - before - p, and the first is -(before + n - 1).
        rows = (
            jnp.arange(grid.keys[axis], dtype=position.dtype)[None]
            + (grid.queries[axis] - 1 - position)[:, None]
        )
        here = jnp.take_along_axis(products, rows[None, None], axis=-1)
        total = (total[..., None] + here[..., None, :]).reshape(*total.shape[:3], -1)
    return total


def _check_tables(tables: tuple[Array, ...], key_features: int, grid: TokenGrid) -> None:
    """Refuse tables that do not fit the queries, or that a shift of the grid is too far for."""
    check_shapes(tables)
    widths = [table.shape[1] for table in tables]
    if len(tables) != len(grid.queries) or sum(widths) != key_features:
        raise ValueError(
            f"{len(tables)} tables of {widths} features, but expected one for each of the "
            f"{len(grid.queries)} axes, with {key_features} features in all, as queries and keys "
            "have"
        )
    for axis, (table, shifts) in enumerate(zip(tables, grid.shift_ranges, strict=True)):
        reach, needed = (table.shape[0] - 1) // 2, max(-shifts.start, shifts.stop - 1)
        if needed > reach:
            raise ValueError(
                f"axis {axis} of the image has shifts up to {needed}, but its table of "
                f"{table.shape[0]} vectors holds shifts up to {reach}; create the layer for larger "
                "images, or crop"
            )


def check_shapes(tables: tuple[Array, ...]) -> None:
    """Refuse what is no tuple of tables for the shifts -(n - 1), …, n - 1."""
    shapes = [tuple(jnp.shape(table)) for table in tables]
    if not isinstance(tables, tuple) or any(len(s) != 2 or s[0] % 2 == 0 for s in shapes):
        raise ValueError(
            f"tables={type(tables).__name__} of the shapes {shapes}, but expected a tuple "
            "with [2n - 1, features] for each axis: an odd number of rows, for the shifts "
            "-(n - 1), …, n - 1"
        )


def relative_products(tables: tuple[Array, ...] | None, grid: TokenGrid) -> int:
    """How many products `relative_scores` takes for each image and head.

    >>> relative_products((jnp.ones((5, 7)),), TokenGrid((2,), ((0, 0),)))  # 2 queries, 3 shifts
    42
    """
    count = int(np.prod(grid.queries))
    pairs = zip(tables or (), grid.shift_ranges, strict=False)
    return count * sum(len(shifts) * table.shape[1] for table, shifts in pairs)
