"""The quadratic encoding with its centres on a grid: heads share their rows and their columns.

The score -α|δ - Δ|² is a sum over the axes, so that a head's attention is a row softmax times a
column softmax. Where the centres are the points of an m × n grid, as those of a converted kernel
are, the m·n heads have but m different row softmaxes and n different column softmaxes between them.
"""

from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jax import Array
from jaxtyping import Float, Int, Num

from convattn.encodings.axis_scores import AxisScores, axis_shifts
from convattn.encodings.base import RelativePosition, check_axes, score_dtype
from convattn.encodings.majorants import distances, magnitude
from convattn.encodings.quadratic import QuadraticEncoding
from convattn.operators.shifts import TokenGrid


@jax.tree_util.register_dataclass
@dataclass(frozen=True)
class QuadraticGridEncoding(RelativePosition):
    """Scores -Σ_a α^a_i (δ_a - Δ^a_i)² over the axes a, i = `pairs[h][a]`.

    Attributes:
        alpha: For each axis `[n_a]`, α^a_i > 0, the inverse width at each centre of that axis.
        centers: For each axis `[n_a]`, the coordinates Δ^a_i.
        pairs: For each head its coordinate on each axis, as an index; static.

    Training moves a coordinate for all heads that have it, so the centres stay on a grid.

    Source: C20 eq. 9 and Theorem 1, whose centres Δ_K are a grid; S.separable of this project's
        ledger.

    >>> alpha, centers = (jnp.ones(2), jnp.full(1, 2.0)), (jnp.array([0.0, 1.0]), jnp.zeros(1))
    >>> encoding = QuadraticGridEncoding(alpha, centers, ((0, 0), (1, 0)))
    >>> encoding.shift_scores(np.array([[0, 0], [1, 1]]), 9).tolist()
    [[0.0, -3.0], [-1.0, -2.0]]
    """

    alpha: tuple[Num[Array, " _"], ...]
    centers: tuple[Num[Array, " _"], ...]
    pairs: tuple[tuple[int, ...], ...] = field(metadata={"static": True})

    @property
    def heads(self) -> int:
        """How many heads there are."""
        return len(self.pairs)

    @property
    def groups(self) -> tuple[tuple[int, ...], ...]:
        """For each axis, which of its coordinates each head has."""
        return tuple(zip(*self.pairs, strict=True))

    @property
    def head_alpha(self) -> Float[Array, "heads axes"]:
        """α^a of each head."""
        return self._of_heads(self.alpha)

    @property
    def head_centers(self) -> Float[Array, "heads axes"]:
        """Δ_h, where each head looks."""
        return self._of_heads(self.centers)

    def _of_heads(self, parts: tuple[Array, ...]) -> Float[Array, "heads axes"]:
        groups = (np.asarray(group, np.int32) for group in self.groups)
        return jnp.stack([part[group] for part, group in zip(parts, groups, strict=True)], -1)

    def shift_scores(
        self, shifts: Int[np.ndarray, "shifts axes"], number_of_keys: int | Array
    ) -> Float[Array, "heads shifts"]:
        """The sum of the terms of the axes; exact where those of `QuadraticEncoding` are."""
        check_axes(shifts, len(self.centers), "QuadraticGridEncoding")
        total = jnp.zeros((), score_dtype(*self.alpha, *self.centers))
        for axis, group in enumerate(self.groups):
            total = total + self._term(axis, shifts[:, axis])[np.asarray(group, np.int32)]
        return total

    def axis_scores(self, grid: TokenGrid) -> AxisScores:
        """One table for each coordinate of an axis; heads with the same coordinate share it."""
        check_axes(grid.query_positions, len(self.centers), "QuadraticGridEncoding")
        scores = (self._term(axis, axis_shifts(grid, axis)) for axis in range(len(self.centers)))
        return AxisScores(tuple(scores), self.groups)

    def _term(
        self, axis: int, shifts: Int[np.ndarray, "*shape"]
    ) -> Float[Array, " coordinates *shape"]:
        dtype = score_dtype(*self.alpha, *self.centers)
        shape = (-1, *(1,) * shifts.ndim)
        alpha = self.alpha[axis].astype(dtype).reshape(shape)
        center = self.centers[axis].astype(dtype).reshape(shape)
        return -alpha * (jnp.asarray(shifts, dtype)[None] - center) ** 2

    def take_heads(self, indices: Sequence[int]) -> "QuadraticGridEncoding":
        """The same encoding with these heads, in this order; a head may be repeated."""
        return replace(self, pairs=tuple(self.pairs[int(index)] for index in indices))

    def check(self) -> None:
        """Refuse α and centres of different sizes, and pairs that point beyond them.

        Raises:
            ValueError: As described above, and as `Encoding.check` does.
        """
        super().check()
        counts = tuple(part.shape[0] for part in self.centers)
        if tuple(part.shape[0] for part in self.alpha) != counts:
            raise ValueError(
                f"encoding.alpha has the sizes {[part.shape[0] for part in self.alpha]}, but "
                f"expected those of encoding.centers, {counts}"
            )
        pairs: Any = self.pairs
        fits = isinstance(pairs, tuple) and all(
            isinstance(pair, tuple)
            and len(pair) == len(counts)
            and all(isinstance(i, int) and 0 <= i < n for i, n in zip(pair, counts, strict=True))
            for pair in pairs
        )
        if not fits or not pairs:
            raise ValueError(
                f"encoding.pairs={pairs}, but expected an index below {counts} for each axis"
            )

    def free(self) -> QuadraticEncoding:
        """The same heads with a centre each, which training may then move apart.

        Raises:
            ValueError: Where a head's α differ between the axes, and under tracing.
        """
        if any(isinstance(array, jax.core.Tracer) for array in self.alpha):
            raise ValueError(
                "alpha is traced, so whether a head has one α for all axes cannot be seen; free "
                "the encoding outside jit and grad"
            )
        alpha = np.asarray(self.head_alpha)
        differ = (alpha != alpha[:, :1]).any(axis=1)
        if differ.any():
            head = int(differ.argmax())
            raise ValueError(
                f"head {head} has the α {alpha[head].tolist()} on its axes, but QuadraticEncoding "
                "has one for both; use GaussianEncoding, whose root_precision is diag(√(2α))"
            )
        return QuadraticEncoding(self.head_alpha[:, 0], self.head_centers)

    def shift_majorant(
        self, shifts: Int[np.ndarray, "shifts axes"], number_of_keys: int
    ) -> Float[Array, "heads shifts"]:
        """The sum of the magnitudes of its terms at each shift."""
        squares = distances(shifts, self.head_centers) ** 2
        return (magnitude(self.head_alpha)[:, None] * squares).sum(axis=-1)

    @property
    def roundings(self) -> int:
        """Those of a score beyond 16."""
        return 0


def centers_on_grid(encoding: QuadraticEncoding) -> QuadraticGridEncoding:
    """The same heads, with every coordinate that several of them have held once.

    Coordinates are the same if α and Δ_a are equal as numbers. Centres that are no grid are served
    as well; then there is less to share.

    Raises:
        ValueError: For parameters that are traced.

    >>> encoding = QuadraticEncoding(jnp.ones(3), jnp.array([[0.0, 5.0], [1.0, 5.0], [0.0, 6.0]]))
    >>> centers_on_grid(encoding).pairs, centers_on_grid(encoding).centers[1].tolist()
    (((0, 0), (1, 0), (0, 1)), [5.0, 6.0])
    """
    if isinstance(encoding.alpha, jax.core.Tracer) or isinstance(encoding.centers, jax.core.Tracer):
        raise ValueError(
            "the parameters are traced, so which centres share a coordinate cannot be seen; call "
            "centers_on_grid outside jit and grad"
        )
    sharpness = np.asarray(encoding.alpha, np.float64).tolist()
    chosen, groups = [], []
    for coordinates in np.asarray(encoding.centers, np.float64).T.tolist():
        first: dict[tuple[float, float], int] = {}
        group = []
        for head, coordinate in enumerate(zip(sharpness, coordinates, strict=True)):
            first.setdefault(coordinate, head)
            group.append(list(first).index(coordinate))
        chosen.append(np.array([*first.values()], np.int32))
        groups.append(group)
    return QuadraticGridEncoding(
        tuple(encoding.alpha[heads] for heads in chosen),
        tuple(encoding.centers[heads, axis] for axis, heads in enumerate(chosen)),
        tuple(zip(*groups, strict=True)),
    )
