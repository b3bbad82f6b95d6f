import jax
import jax.numpy as jnp
import numpy as np
import pytest
import scipy.sparse
from comparison import assert_dtype, assert_equal
from jax.experimental.sparse import BCOO, bcoo_concatenate
from structures.basis_cases import case

from convattn.structures import basis_from_entries, sparse_basis

MATRICES = case("sparse")[1].astype(np.float32)


def sources():
    yield "dense", MATRICES
    yield "rows of lists", [matrix.tolist() for matrix in MATRICES]
    yield "coordinates", [scipy.sparse.coo_matrix(matrix) for matrix in MATRICES]
    yield "compressed", [scipy.sparse.csr_array(matrix) for matrix in MATRICES]
    yield "one BCOO", BCOO.fromdense(jnp.asarray(MATRICES))
    yield "BCOO with padding", BCOO.fromdense(jnp.asarray(MATRICES), nse=MATRICES.size)
    yield "batched BCOO", BCOO.fromdense(jnp.asarray(MATRICES), n_batch=1)
    yield "several BCOO", [BCOO.fromdense(jnp.asarray(matrix)) for matrix in MATRICES]


@pytest.mark.parametrize("source", list(sources()), ids=lambda source: source[0])
def test_every_source_gives_the_same_basis(source) -> None:
    basis = sparse_basis(source[1])
    assert_equal(basis.matrices(), MATRICES)
    assert basis.nonzeros == np.count_nonzero(MATRICES)


def test_duplicates_are_summed_and_zeros_dropped() -> None:
    twice = scipy.sparse.coo_matrix(
        (np.array([1, 2, 5, -5], np.int32), ([0, 0, 1, 1], [2, 2, 0, 0])), shape=(2, 3)
    )
    basis = sparse_basis([twice])
    assert basis.nonzeros == 1
    assert_equal(basis.matrices(), [[[0, 0, 3], [0, 0, 0]]])
    again = BCOO((jnp.array([1, 2]), jnp.array([[0, 0, 1], [0, 0, 1]])), shape=(1, 1, 2))
    assert_equal(sparse_basis(again).matrices(), [[[0, 3]]])
    assert_equal(
        sparse_basis(bcoo_concatenate([again, again], dimension=0)).matrices(), [[[0, 3]]] * 2
    )


def test_sums_of_half_types_are_rounded_once() -> None:
    values = jnp.asarray([256.0, 1.0, 1.0], jnp.bfloat16)  # 257 is no bfloat16, 258 is
    basis = basis_from_entries(values, [0] * 3, [0] * 3, [0] * 3, (1, 1, 1))
    assert_dtype(basis.values, jnp.bfloat16)
    assert_equal(basis.values, [258])


def test_values_can_be_differentiated() -> None:
    basis = sparse_basis(MATRICES)
    x = jnp.asarray(np.random.default_rng(0).integers(-5, 6, (1, 7, 1)), jnp.float32)
    slope = jax.grad(lambda basis: basis.gather(x).sum(), allow_int=True)(basis)
    assert_equal(slope.values, x[0, basis.keys, 0])


@pytest.mark.parametrize(
    ("matrices", "message"),
    [
        (np.ones((2, 2)), "give a single one as"),
        (scipy.sparse.eye(3), "give a single one as"),
        ([], "expected an array"),
        (5, "expected an array"),
        ([np.ones((2, 2)), np.ones((2, 3))], "should have one shape"),
        ([np.ones(2)], "should have one shape"),
    ],
)
def test_what_is_no_family_is_refused(matrices, message) -> None:
    with pytest.raises(ValueError, match=message):
        sparse_basis(matrices)


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (([1], [0], [2], [0], (1, 2, 2)), r"keys runs from 2 to 2, but expected to lie in 0\.\.1"),
        (([1], [-1], [0], [0], (1, 2, 2)), "bases runs from -1"),
        (([1, 2], [0], [0], [0], (1, 2, 2)), "should have one length"),
        (([1], [0], [0], [0], (1, 0, 2)), "all at least 1"),
    ],
)
def test_entries_that_do_not_fit_are_refused(arguments, message) -> None:
    with pytest.raises(ValueError, match=message):
        basis_from_entries(*arguments)


def test_64_bit_values_are_refused_where_they_would_be_truncated() -> None:
    with jax.enable_x64(False), pytest.raises(ValueError, match="64-bit types are off"):
        sparse_basis([scipy.sparse.eye(3)])


@pytest.mark.parametrize(("dtype", "value"), [("int8", 100), ("uint8", 200), ("int32", 2**30)])
def test_sums_that_wrap_around_are_refused(dtype, value) -> None:
    twice = np.array([value, value], dtype)
    message = rf"add up to {2 * value}, but {dtype} ends at .*wider type"
    with pytest.raises(ValueError, match=message):
        sparse_basis([scipy.sparse.coo_matrix((twice, ([0, 0], [1, 1])), shape=(2, 2))])
    with pytest.raises(ValueError, match=message):
        basis_from_entries(jnp.asarray(twice), [0, 0], [1, 1], [1, 1], (1, 2, 2))


def test_sums_come_back_to_the_dtype_and_64_bits_may_be_passed_on_the_way() -> None:
    values = jnp.asarray([100, 100, -100], jnp.int8)
    assert_equal(basis_from_entries(values, [0] * 3, [0] * 3, [0] * 3, (1, 1, 1)).values, [100])
    large = np.array([2**62, 2**62, 2**62, -(2**62), -(2**62), -1])
    basis = basis_from_entries(large, [0] * 6, [0] * 6, [0] * 6, (1, 1, 1))
    assert int(basis.values[0]) == 2**62 - 1
    with pytest.raises(ValueError, match="int64 ends at"):
        basis_from_entries(large[:3], [0] * 3, [0] * 3, [0] * 3, (1, 1, 1))


def test_floats_that_would_become_infinite_are_refused_and_infinities_kept() -> None:
    with pytest.raises(ValueError, match="float32 ends at"):
        basis_from_entries(np.full(2, 3e38, "float32"), [0] * 2, [0] * 2, [0] * 2, (1, 1, 1))
    kept = np.array([np.inf, 1], "float32")
    assert_equal(basis_from_entries(kept, [0] * 2, [0] * 2, [0] * 2, (1, 1, 1)).values, [np.inf])


@pytest.mark.parametrize("place", range(3))
def test_indices_are_not_cut_down_to_integers(place, unchecked) -> None:
    indices = [[0], [0], [0]]
    for wrong in ([0.9], [True]):
        indices[place] = wrong
        with pytest.raises(ValueError, match="but indices should be integers"):
            basis_from_entries([1.0], *indices, (1, 1, 1))
    with pytest.raises(ValueError, match=r"shape=1\.5, but expected an integer"):
        basis_from_entries([1.0], [0], [0], [0], (1, 1.5, 1))
