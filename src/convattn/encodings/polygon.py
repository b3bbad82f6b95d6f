"""S.polygon: the two positional features with the smallest norm for one-hot attention.

The T offsets are the corners of a regular T-gon, every other shift is its centre:

    r_δ = (cos 2πn/T, sin 2πn/T) at the n-th offset, (0, 0) elsewhere,

and the score is v_h·r_δ. With v_h = a·r_Δ it is a·cos(2π(n - n_Δ)/T) at the offsets and 0
elsewhere, so that Δ is ahead of every other shift by a·min(1, 1 - cos 2π/T), or by a for T = 1. For
T ≥ 4 no other features in the plane do that with a smaller product of their radius and ‖v_h‖.
"""

from dataclasses import dataclass, field

import jax
import jax.numpy as jnp
import numpy as np
from jax import Array
from jaxtyping import Float, Int, Num

from convattn.encodings.base import OffsetTable, score_dtype
from convattn.encodings.majorants import magnitude
from convattn.operators.shifts import Shift


def polygon_corners(count: int) -> Float[np.ndarray, "corners 2"]:
    """The corners of the regular polygon on the unit circle, counterclockwise from (1, 0).

    >>> polygon_corners(4).round(9).tolist()
    [[1.0, 0.0], [0.0, 1.0], [-1.0, 0.0], [-0.0, -1.0]]
    """
    angles = 2 * np.pi * np.arange(count) / count
    return np.stack([np.cos(angles), np.sin(angles)], axis=-1)


@jax.tree_util.register_dataclass
@dataclass(frozen=True)
class PolygonEncoding(OffsetTable):
    """Scores v_h·r_δ, r_δ a corner of the regular polygon at the offsets and 0 elsewhere.

    Attributes:
        query: v_h; one-hot at the n-th offset as it grows in the direction of the n-th corner.
        offsets: The shifts at the corners, in the order of the corners.

    Source: S.polygon of this project's ledger, D_p = 2; C20 Lemma 2 asks for D_p ≥ 3.

    >>> encoding = PolygonEncoding(jnp.array([[0.0, 3.0]]), ((-1,), (0,), (1,), (2,)))
    >>> encoding.shift_scores(np.array([[-1], [0], [1], [2], [9]]), 5).round().astype(int).tolist()
    [[0, 3, 0, -3, 0]]
    """

    query: Num[Array, "heads features"]
    offsets: tuple[Shift, ...] = field(metadata={"static": True})

    def entries(self) -> int:
        """As many as offsets: the corners are made from their number."""
        return len(self.offsets)

    def features(
        self, shifts: Int[np.ndarray, "shifts axes"]
    ) -> Float[np.ndarray, "shifts features"]:
        """r_δ of each shift."""
        return np.vstack([polygon_corners(len(self.offsets)), np.zeros((1, 2))])[self.rows(shifts)]

    def shift_scores(
        self, shifts: Int[np.ndarray, "shifts axes"], number_of_keys: int | Array
    ) -> Float[Array, "heads shifts"]:
        """The two products and their sum."""
        dtype = score_dtype(self.query)
        features = jnp.asarray(self.features(shifts), dtype)
        return (self.query[:, None, :].astype(dtype) * features[None]).sum(axis=-1)

    def check(self) -> None:
        """Refuse queries of another number of features than two.

        Raises:
            ValueError: As described above, and as `OffsetTable.check` does.
        """
        super().check()
        if self.query.shape[1] != 2:
            raise ValueError(
                f"encoding.query.shape={self.query.shape}, but expected two features for each head"
            )

    def shift_majorant(
        self, shifts: Int[np.ndarray, "shifts axes"], number_of_keys: int
    ) -> Float[Array, "heads shifts"]:
        """The sum of the magnitudes of its terms at each shift."""
        return magnitude(self.query) @ jnp.abs(self.features(shifts)).T
