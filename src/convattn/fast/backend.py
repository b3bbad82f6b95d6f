"""What a back end is: a name, whom it refuses, how it attends, and how much work that is."""

from collections.abc import Callable
from typing import NamedTuple

from jax import Array

from convattn.encodings.layer import AttentionLayer
from convattn.fast.options import AttentionOptions
from convattn.operators.shifts import TokenGrid


class Work(NamedTuple):
    """What one application costs, counted before it is run; the cost model prices it.

    Attributes:
        products: Multiplications in matrix products.
        moved: Numbers that elementwise passes read or write.
        exponentials: Exponentials of softmaxes.
        calls: Operations that are launched one after the other.
    """

    products: float
    moved: float
    exponentials: float
    calls: float


class BackEnd(NamedTuple):
    """One way to apply a layer.

    Attributes:
        name: As `apply_attention(backend=...)` takes it.
        refusal: Why it cannot serve this layer, grid and these options, or None if it can. It looks
            at types, shapes and static fields only, so that it works under tracing.
        attend: `(layer, grid, tokens, options)`, tokens `[batch, *grid.queries, features]` without
            the ring, to `[batch, *grid.queries, out_features]` in at least float32, without the
            bias.
        work: `(layer, grid, batch, features, options)` to the `Work` of one forward pass.
        selective: Whether `attend` leaves out the queries that `options.queries` does not name.
        serves_registers: Whether a key without a place may be among the keys.
    """

    name: str
    refusal: Callable[[AttentionLayer, TokenGrid, AttentionOptions], str | None]
    attend: Callable[[AttentionLayer, TokenGrid, Array, AttentionOptions], Array]
    work: Callable[..., Work]
    selective: bool = False
    serves_registers: bool = False

    def reason_to_refuse(
        self, layer: AttentionLayer, grid: TokenGrid, options: AttentionOptions
    ) -> str | None:
        """Why it cannot serve, its own reason or a register that it does not know; or None."""
        if layer.register is not None and not self.serves_registers:
            return "it has a register, a key without a place; use dense or chunked"
        return self.refusal(layer, grid, options)
