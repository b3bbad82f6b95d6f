"""The even relative bias of B19 eq. 3: b_(|i-r|, |j-t|) for the query at (i, j), the key at (r, t).

Distances are counted in cells of the grid on which the keys live. They run from 0, so the table's
first entry is the distance 0; the print indexes it by distances inside arrays that count from 1.

**The bias is even in each axis.** On a grid of keys, reflecting an axis, n → N - 1 - n, keeps
every distance. So the scores S of a head with 1×1 filters satisfy S(PX) = P S(X) P for the
reflection P of any axis, content scores included (they are the same function of every pair of
pixels), and the layer commutes with P. A convolution does so only if its kernel is even in that
axis (`even_kernels`).

**A leak.** Softmax of M at n keys of N, zero elsewhere, gives each of the n the weight
e^M/(n·e^M + N - n). With e^M = 1 + N·g, g = 1/ε - 1, that is (g·Σ S + J)/(n·g + 1), S the one-hot
rows and J the uniform one: independent of N. With `uniform_weight` set, the table is multiplied by
that M(N) = log(1 + N(1/ε - 1)) when the head meets its N keys, so one table serves every size.
"""

import math
from collections.abc import Sequence
from dataclasses import dataclass

import jax
import jax.numpy as jnp
import numpy as np
from jax import Array
from jaxtyping import Float, Int, Num

from convattn.encodings.base import score_dtype


@jax.tree_util.register_dataclass
@dataclass(frozen=True)
class EvenBias:
    """The table b of each head, `[heads, *distances]`; distances beyond the table have bias 0.

    Attributes:
        values: b_h for the distances 0, 1, … on each axis. The paper's table has as many entries as
            the image has pixels.
        uniform_weight: ε in (0, 1), or None for a table in plain units.

    Source: B19 eq. 3.
    """

    values: Num[Array, " heads *distances"]
    uniform_weight: Num[Array, ""] | float | None = None

    @property
    def heads(self) -> int:
        """The number of heads."""
        return int(self.values.shape[0])

    @property
    def axes(self) -> int:
        """The number of spatial axes."""
        return int(self.values.ndim - 1)


def check_uniform_weight(position: EvenBias) -> None:
    """Refuse a leak that is not a number in (0, 1), where it is concrete."""
    uniform_weight = position.uniform_weight
    if uniform_weight is None or isinstance(uniform_weight, jax.core.Tracer):
        return
    if np.shape(uniform_weight) != () or not 0 < float(uniform_weight) < 1:
        raise ValueError(
            f"uniform_weight={uniform_weight}, but expected one number strictly between 0 and 1: "
            "the bias log(1 + N(1/ε - 1)) is finite and positive only there"
        )


def even_bias_scores(
    position: EvenBias,
    queries: Sequence[int],
    keys: Sequence[int],
    *,
    step: Sequence[int] | None = None,
    attended: Int[Array, " queries"] | int | None = None,
) -> Float[Array, "heads queries keys"]:
    """b_(|δ_1|, |δ_2|) for every query and key, times M(N) if there is a leak.

    Args:
        queries, keys: Cells on each axis, row-major in the result.
        step: Cells of the key grid from one query to the next; 1 where both grids are one.
        attended: N of the leak, the keys that a query may attend to; all of them by default.

    Raises:
        ValueError: For a table of another number of axes, and a leak outside (0, 1).

    >>> position = EvenBias(jnp.array([[5.0, 1.0]]))
    >>> even_bias_scores(position, (3,), (3,))[0].tolist()
    [[5.0, 1.0, 0.0], [1.0, 5.0, 1.0], [0.0, 1.0, 5.0]]
    """
    check_uniform_weight(position)
    axes = position.axes
    step = (1,) * axes if step is None else tuple(step)
    if not len(queries) == len(keys) == len(step) == axes:
        raise ValueError(
            f"position.values.shape={position.values.shape} is a table for {axes} spatial axes, "
            f"but the grids are {tuple(queries)} and {tuple(keys)}; its shape should be heads, "
            "then one number of distances for each axis of the image"
        )
    dtype = score_dtype(position.values)
    values = position.values.astype(dtype)
    table = jnp.pad(values, [(0, 0)] + [(0, 1)] * axes)  # one entry beyond each axis: zero
    index: list[np.ndarray] = []
    for axis in range(axes):
        positions = step[axis] * np.arange(queries[axis])
        distances = np.abs(np.arange(keys[axis])[None, :] - positions[:, None])
        distances = np.minimum(distances, position.values.shape[1 + axis])
        shape = [1] * (2 * axes)
        shape[axis], shape[axes + axis] = distances.shape
        index.append(distances.reshape(shape))
    scores = table[(slice(None), *np.broadcast_arrays(*index))]
    scores = scores.reshape(position.heads, math.prod(queries), math.prod(keys))
    if position.uniform_weight is None:
        return scores
    uniform_weight = jnp.asarray(position.uniform_weight, dtype)
    count = jnp.asarray(math.prod(keys) if attended is None else attended).astype(dtype)
    return scores * jnp.log1p(count * ((1 - uniform_weight) / uniform_weight)).reshape(1, -1, 1)
