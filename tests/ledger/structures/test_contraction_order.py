from functools import partial

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from ledger.structures.basis_cases import NAMES, ORDERS, case

from convattn_ledger.structures import (
    cheapest_order,
    contraction_work,
    dense_basis,
    shift_basis,
    sparse_basis,
    structured_convolution,
)


@pytest.mark.parametrize("name", NAMES)
def test_the_work_is_what_the_definition_does(name) -> None:
    basis, matrices = case(name)
    size, inputs, outputs = matrices.shape
    batch, p, q = 3, 2, 4
    work = contraction_work(batch, inputs, outputs, p, q, basis)
    second = (batch * size * outputs * p * q, batch * size * inputs * p * q)
    second += (batch * inputs * outputs * p * q,)
    if name == "dense":
        first = [size * inputs * outputs * n for n in (batch * p, batch * q, p * q)]
        assert [work[order].products for order in ORDERS] == np.add(first, second).tolist()
        assert not any(work[order].entries for order in ORDERS)
    else:
        nonzeros = np.count_nonzero(matrices)
        entries = [nonzeros * n for n in (batch * p, batch * q, p * q)]
        if name != "sparse":
            entries[:2] = [0, 0]  # slices
        assert [work[order].products for order in ORDERS] == list(second)
        assert [work[order].entries for order in ORDERS] == entries
    between = (batch * size * outputs * p, batch * size * inputs * q, inputs * outputs * p * q)
    for order, numbers in zip(ORDERS, between, strict=True):
        sizes = (work[order].intermediate, work[order].operator, work[order].sliced)
        assert sorted(sizes) == [0, 0, numbers]
    assert bool(work["parameter_first"].sliced) == (name in ("sequence", "grid"))


def test_auto_takes_the_cheapest() -> None:
    for p, q in ((1, 32), (32, 1)):
        basis = shift_basis((8, 8), [(0, 0), (1, 0), (0, 1)])
        x, theta = jnp.ones((2, 64, p)), jnp.ones((3, p, q))
        chosen = cheapest_order(2, 64, 64, p, q, basis)
        programs = {
            order: str(
                jax.make_jaxpr(partial(structured_convolution, order=order))(x, basis, theta)
            )
            for order in ("auto", *ORDERS)
        }
        assert [order for order in ORDERS if programs[order] == programs["auto"]] == [chosen]


@pytest.mark.parametrize(
    ("sizes", "order"),
    [((1, 2, 128), "basis_first"), ((1, 128, 2), "parameter_first")],
)
def test_channels_decide(sizes, order) -> None:
    batch, p, q = sizes
    for basis in (
        dense_basis(np.ones((4, 64, 64), np.float32)),
        sparse_basis(np.tile(np.eye(64, dtype=np.float32), (4, 1, 1))),
        shift_basis(64, [0, 1, 2, 3]),
    ):
        assert cheapest_order(batch, 64, 64, p, q, basis) == order
