"""What structures refuse, by the argument that the message names."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest
import scipy.sparse
from ledger.structures.basis_cases import case, operands
from ledger.structures.graph_cases import FORMS
from ledger.structures.test_inversion import FAMILY

from convattn_ledger.structures.attention_convolution import (
    attention_convolution,
    softmax_mechanism,
)
from convattn_ledger.structures.basis import dense_basis
from convattn_ledger.structures.bi_affine import bi_affine
from convattn_ledger.structures.composition import StructuredConvolution, compose, compose_bases
from convattn_ledger.structures.contraction_order import contraction_work
from convattn_ledger.structures.graph import graph_basis, read_graph
from convattn_ledger.structures.graph_attention import leaky_relu
from convattn_ledger.structures.grids import (
    cuboid_shifts,
    kernel_to_structure,
    pooling_basis,
    structure_to_kernel,
    window_basis,
)
from convattn_ledger.structures.inversion import dual_basis, invert_mixed_product
from convattn_ledger.structures.laplacians import chebyshev_basis, laplacian_basis
from convattn_ledger.structures.masking import column_softmax, masked_scores
from convattn_ledger.structures.mixed_product import mixed_product
from convattn_ledger.structures.reductions import (
    controlled_convolution,
    grouped_convolution,
    separable_convolution,
)
from convattn_ledger.structures.shift_basis import shift_basis, strided_basis
from convattn_ledger.structures.shift_heads import attention_with_shifts
from convattn_ledger.structures.sparse_basis import sparse_basis
from convattn_ledger.structures.structured_convolution import structured_convolution
from convattn_ledger.structures.walks import power_basis, walk_basis

DENSE, MATRICES = case("dense")
X, THETA = operands(MATRICES)
KERNEL, GRID, EDGE = np.ones((3, 2, 2)), shift_basis((5,), [1, 0, -2]), np.array([[0, 1], [1, 0]])
LAYER = StructuredConvolution(GRID, jnp.ones((3, 2, 4)))
ADDED = np.array([[0, -np.inf], [-np.inf, 0]])  # an H of 0 and -∞: as True and False it would mask
BLANK = np.array([[True, False, False], [True, False, True]])
ZEROS = jnp.zeros((3, 2, 3)).at[2, :, 1].set(-jnp.inf)
ONE = {"a": np.eye(2), "b": np.eye(3)}
TOKENS, QUERIES = jnp.ones((2, 5, 2)), jnp.ones((2, 4, 3))
HEADS = jnp.ones((3, 2, 6))


def attention(shape, x=TOKENS, keys=TOKENS):
    return attention_convolution(x, keys, QUERIES, lambda k, q: jnp.zeros(shape), HEADS)


def with_shifts(basis):
    attend = lambda k, q: jnp.zeros((3, 5, 4))  # noqa: E731
    return attention_with_shifts(TOKENS, TOKENS, QUERIES, attend, HEADS, basis, HEADS[:1])


def entry(value):
    return np.array([[0.0, value], [value, 0.0]])


def isolated(form):
    adjacency = np.zeros((4, 4))
    adjacency[0, 2] = adjacency[2, 0] = 1
    return FORMS[form](adjacency)


REFUSED = [
    (lambda: dense_basis(jnp.ones((3,))), "expected (K, M, N)"),
    (lambda: dense_basis(jnp.ones((2, 0, 3))), "expected (K, M, N)"),
    (lambda: sparse_basis(np.ones((2, 2))), "matrices have the shapes"),
    (lambda: sparse_basis(5), "matrices have the shapes"),
    (lambda: sparse_basis([]), "matrices have the shapes"),
    (lambda: sparse_basis([np.ones((2, 2)), np.ones((2, 3))]), "matrices have the shapes"),
    (lambda: sparse_basis(np.ones((1, 0, 2))), "matrices have the shapes"),
    (lambda: shift_basis((), [()]), "at least one axis"),
    (lambda: shift_basis((3, 0), [(0, 0)]), "a side of the grid=0"),
    (lambda: shift_basis(2.0, [0]), "a side of the grid=2.0"),
    (lambda: shift_basis(3, []), "one shift"),
    (lambda: shift_basis((3, 4), [(1,)]), "as many integers in each shift"),
    (lambda: shift_basis(3, [0.9]), "a shift=0.9"),
    (lambda: shift_basis(3, [1, 0, 1]), "holds [(1,)] more than once"),
    (lambda: strided_basis(5, [-3, 3], 1, padding="VALID"), "window of (7,) nodes"),
    (lambda: strided_basis(5, [0], (1, 1)), "stride=(1, 1)"),
    (lambda: strided_basis(5, [0], 0), "stride=0"),
    (lambda: strided_basis(5, [0], padding="EDGE"), "padding='EDGE'"),
    (lambda: cuboid_shifts(0), "sizes="),
    (lambda: cuboid_shifts(()), "sizes=()"),
    (lambda: cuboid_shifts(3, 0), "no dilation 0"),
    (lambda: cuboid_shifts(3, 1.5), "dilation=1.5"),
    (lambda: cuboid_shifts((3, 3), 1, (0, 0, 0)), "offset=(0, 0, 0)"),
    (lambda: kernel_to_structure(KERNEL, (5, 5)), "kernel.shape=(3, 2, 2)"),
    (lambda: kernel_to_structure(KERNEL, 5, first=0.5), "first=0.5"),
    (lambda: kernel_to_structure(KERNEL, 2, padding="VALID"), "does not fit"),
    (lambda: structure_to_kernel(shift_basis(5, [0, 1, 3]), KERNEL), "regular right cuboid"),
    (lambda: structure_to_kernel(shift_basis(5, [0, 1]), KERNEL), "theta.shape=(3, 2, 2)"),
    (lambda: window_basis((4, 4), 5), "window of (5, 5) nodes"),
    (lambda: window_basis(4, (2, 2)), "window=(2, 2)"),
    (lambda: pooling_basis(4, 2, 2, 0), "dilation=0"),
    (lambda: contraction_work(1, 7, 6, 1, 1, DENSE), "inputs=7 and outputs=6"),
    (lambda: structured_convolution(X[0], DENSE, THETA), "(batch, 7, in_channels)"),
    (lambda: structured_convolution(X[:, :6], DENSE, THETA), "(batch, 7, in_channels)"),
    (lambda: structured_convolution(X, DENSE, THETA[:2]), "(3, in_"),
    (lambda: structured_convolution(X, DENSE, THETA[:, :1]), "(3, in_"),
    (lambda: structured_convolution(X, DENSE, THETA, order="fastest"), "order='fastest'"),
    (lambda: compose(LAYER, LAYER), "expected 4 input channels"),
    (lambda: compose_bases(GRID, DENSE), "second.inputs=7"),
    (lambda: mixed_product([1, 2], [1, 2, 3]), "should begin with K"),
    (lambda: mixed_product(1, [1]), "should begin with K"),
    (lambda: mixed_product(np.array(1, object), [1]), "should begin with K"),
    (lambda: dual_basis([[1, 2, 3]]), "has dimension 3: they cannot span it"),
    (lambda: dual_basis([[1], [2]]), "has dimension 1: they are dependent"),
    (lambda: dual_basis([[1, 0, 1], [0, 1, 1], [3, -2, 1]]), "3·a_0 - 2·a_1 - 1·a_2 = 0"),
    (lambda: dual_basis([[0]]), "1·a_0 = 0"),
    (lambda: dual_basis([[0.1, 0.2], [0.3, 0.6]]), "dependent up to rounding"),
    (lambda: invert_mixed_product(FAMILY, np.ones((3, 2), int)), "phi.shape=(3, 2)"),
    *(
        (lambda f=f, x=x, more=more: f(np.ones(x), DENSE, *map(np.ones, more)), "operand.shape=")
        for f, x, *more in (  # another size than the basis's, other channels, no batch, inputs
            (separable_convolution, (1, 7, 2), (4, 2), (2, 1)),
            (separable_convolution, (1, 7, 3), (3, 2), (2, 1)),
            (grouped_convolution, (1, 7, 3), (3, 2, 1, 1)),
            (controlled_convolution, (7, 2), (1, 3), (1, 2, 1)),
            (controlled_convolution, (1, 6, 2), (1, 3), (1, 2, 1)),
        )
    ),
    *(
        (lambda form=form, graph=graph: read_graph(FORMS[form](graph), symmetric=True), message)
        for form in FORMS
        for graph, message in (
            (np.ones((2, 3)), "adjacency.shape=(2, 3)"),
            (entry(np.nan), "not finite"),
            (entry(-2.0), "negative"),
            (entry(1j), "complex"),
            (np.array([[0, 1], [0, 0]]), "adjacency is not symmetric"),
        )
    ),
    *(
        (lambda m=matrix: graph_basis([m], np.dtype("uint8")), "an entry is 300, but expected")
        for matrix in (np.array([[300]]), scipy.sparse.csr_array(np.array([[300]])))
    ),
    *(
        (lambda make=make, form=form: make(isolated(form)), "isolated nodes, such as 1")
        for make in (laplacian_basis, lambda adjacency: chebyshev_basis(adjacency, 1))
        for form in FORMS
    ),
    (lambda: chebyshev_basis(EDGE, -1), "order=-1"),
    (lambda: chebyshev_basis(EDGE, 1.5), "order=1.5"),
    (lambda: chebyshev_basis(EDGE, 2, largest_eigenvalue=0.0), "largest_eigenvalue=0.0"),
    (lambda: chebyshev_basis(EDGE, 2, largest_eigenvalue=np.inf), "largest_eigenvalue=inf"),
    (lambda: power_basis(np.eye(2), 0), "order=0"),
    *(
        (lambda form=form: power_basis(FORMS[form](np.ones((4, 4), np.int32)), 17), "int32 ends")
        for form in FORMS
    ),
    (lambda: walk_basis(ONE, []), "sorts=[]"),
    (lambda: walk_basis(ONE, [()]), "one or more of"),
    (lambda: walk_basis(ONE, ["a.in"]), "sorts=['a.in']"),
    (lambda: walk_basis(ONE, ["a.b"]), "{'a': 2, 'b': 3} nodes"),
    (lambda: walk_basis({"a": -np.eye(2)}, ["a"]), "relations['a'] has weights"),
    (lambda: bi_affine(), "given no parameter"),
    (lambda: bi_affine(np.ones((2, 3))), "bilinear.shape=(2, 3)"),
    (lambda: bi_affine(np.ones((2, 3, 4)), np.ones((2, 4))), "key_weight.shape=(2, 4)"),
    (lambda: bi_affine(query_weight=np.ones((3, 1)), offset=np.ones(2)), "leading axis"),
    (lambda: bi_affine(offset=[True]), "offset.dtype=bool"),
    *(
        (lambda slope=slope: leaky_relu(jnp.ones(3), slope), "but expected to lie in (0, 1]")
        for slope in (0.0, 1.5, float("nan"))
    ),
    *(
        (lambda f=function, call=call: call(f, jnp.zeros((2, 2)), ADDED), "pass the boolean mask")
        for function in (column_softmax, masked_scores)
        for call in (lambda function, *arrays: function(*arrays), jax.eval_shape)
    ),
    (
        lambda: softmax_mechanism(lambda k, q: jnp.zeros((1, 5, 5)), np.tri(5, k=-1, dtype=bool).T)(
            TOKENS, TOKENS
        ),
        "column 0",
    ),
    (lambda: column_softmax(ZEROS[0], BLANK), "column 1 is masked everywhere"),
    # Under jit the mask alone is concrete.
    (lambda: jax.jit(lambda s: column_softmax(s, BLANK))(ZEROS[0]), "(1 such columns)"),
    (lambda: column_softmax(ZEROS), "column 1 of scores[2]"),
    (lambda: attention((3, 4, 5)), "but expected (2, 3, 5, 4) or (3, 5, 4)"),
    (lambda: attention((4, 5, 4)), "but expected (2, 3, 5, 4) or (3, 5, 4)"),
    (lambda: attention((3, 3, 5, 4)), "but expected (2, 3, 5, 4) or (3, 5, 4)"),
    (lambda: attention((3, 5, 4), keys=TOKENS[:1]), "with the same batch"),
    (lambda: attention((3, 5, 4), TOKENS[0], TOKENS[0]), "x[None]"),
    (lambda: attention((3, 4, 4), keys=TOKENS[:, 1:]), "the mechanism's output has shape"),
    (lambda: with_shifts(shift_basis(5, [1])), "basis.outputs=5, but the attention heads have 4"),
]


@pytest.mark.parametrize(("call", "message"), REFUSED)
def test_refusals(call, message, unchecked):
    with pytest.raises(ValueError) as caught:
        call()
    assert message in str(caught.value)
