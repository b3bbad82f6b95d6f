"""Which of Figure 1's three orders is cheapest, from shapes and the type of basis alone.

The paper says that the choice "essentially depends on the respective dimensions M, P, N, Q, B, K"
and that a sparse A "may require a specific treatment". Here is that in numbers. With nnz the
nonzeros of the basis (KMN if it is dense), the products of the two contractions are

| order             | with A            | with Θ or x  | intermediate tensor |
|-------------------|-------------------|--------------|---------------------|
| `basis_first`     | B·nnz·P           | B·K·N·P·Q    | B·K·N·P             |
| `parameter_first` | B·nnz·Q           | B·K·M·P·Q    | B·K·M·Q             |
| `operator`        | nnz·P·Q           | B·M·N·P·Q    | M·N·P·Q             |

A dense product costs a multiplication; an entry of a sparse basis costs a read, a multiplication
and an addition somewhere in memory, which is dearer; a shift costs a copy of a slice, and in
`parameter_first`, where slices are only summed, less than that. Tensors are written and read once.

`SECONDS` holds what each of these costs: six constants, of which only the ratios matter, fitted to
times of 240 random shapes on two cores of a CPU and rounded. On the fifty other shapes of
`experiments/contraction_orders.py` they chose the fastest order (or one within 5 % of it) 46 times,
with the least times of three runs taken together; single short runs gave 43 to 47. Constants fitted
to 30 shapes on an overloaded machine did 40 times, and the number of products alone 38 times. On
another machine, `experiments/calibrate_contraction_orders.py` fits them anew.
"""

from typing import NamedTuple

import numpy as np

from convattn_ledger.structures.basis import Basis, DenseBasis
from convattn_ledger.structures.shift_basis import ShiftBasis

ORDERS = ("basis_first", "parameter_first", "operator")


class Work(NamedTuple):
    """How often each kind of step is taken, or, in `SECONDS`, what one such step costs.

    Attributes:
        products: Multiplications and additions within matrix products.
        intermediate: Numbers written and read again between the contractions.
        operands: Numbers of x, Θ, y and a dense A.
        operator: Numbers of Φ.
        entries: Products with an entry of a basis that is not dense, scattered in memory.
        sliced: Numbers of the intermediate that are only summed slice by slice.
    """

    products: float
    intermediate: float
    operands: float
    operator: float
    entries: float
    sliced: float


SECONDS = Work(
    products=0.025e-9,
    intermediate=1.3e-9,
    operands=0.13e-9,
    operator=1.7e-9,
    entries=1.2e-9,
    sliced=0.35e-9,
)


def contraction_work(
    batch: int, inputs: int, outputs: int, in_channels: int, out_channels: int, basis: Basis
) -> dict[str, Work]:
    """The steps of each order.

    Args:
        batch, inputs, outputs, in_channels, out_channels: B, M, N, P, Q.
        basis: Only its type, K and the number of its nonzeros count.

    Source: A19 Section 1.4 and Figure 1.

    >>> from convattn_ledger.structures import shift_basis
    >>> contraction_work(1, 5, 5, 2, 3, shift_basis(5, [0]))["basis_first"].products
    30
    """
    if (inputs, outputs) != (basis.inputs, basis.outputs):
        raise ValueError(
            f"inputs={inputs} and outputs={outputs}, but expected {basis.inputs} and "
            f"{basis.outputs}, those of the basis"
        )
    pairs = in_channels * out_channels
    dense, sliced = isinstance(basis, DenseBasis), isinstance(basis, ShiftBasis)
    operands = batch * (inputs * in_channels + outputs * out_channels) + basis.size * pairs
    operands += basis.nonzeros if dense else 0
    gathered = batch * basis.size * outputs * in_channels
    mapped = batch * basis.size * inputs * out_channels
    joined = inputs * outputs * pairs
    # With A, with Θ or x, and the intermediate tensor: where it is stored, and its size.
    steps = {
        "basis_first": (batch * in_channels, gathered * out_channels, "intermediate", gathered),
        "parameter_first": (
            batch * out_channels,
            mapped * in_channels,
            "sliced" if sliced else "intermediate",
            mapped,
        ),
        "operator": (pairs, batch * joined, "operator", joined),
    }
    work = {}
    for order, (columns, products, place, numbers) in steps.items():
        with_basis = basis.nonzeros * columns
        entries = 0 if dense or (sliced and order != "operator") else with_basis
        between = {"intermediate": 0, "operator": 0, "sliced": 0} | {place: numbers}
        products += with_basis if dense else 0
        work[order] = Work(products=products, operands=operands, entries=entries, **between)
    return work


def cheapest_order(
    batch: int, inputs: int, outputs: int, in_channels: int, out_channels: int, basis: Basis
) -> str:
    """The order that takes the fewest seconds by estimate; the first of `ORDERS` among equals.

    Arguments and errors are those of `contraction_work`.

    >>> from convattn_ledger.structures import shift_basis
    >>> cheapest_order(8, 256, 256, 64, 4, shift_basis((16, 16), [(0, 0), (0, 1)]))
    'parameter_first'
    """
    work = contraction_work(batch, inputs, outputs, in_channels, out_channels, basis)
    return min(ORDERS, key=lambda order: float(np.dot(work[order], SECONDS)))
