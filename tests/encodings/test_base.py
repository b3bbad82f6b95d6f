"""What every encoding offers: heads to take, leaves to train, scores to compile."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from comparison import assert_equal, assert_within
from token_grids import GRIDS, compiled_scores

from convattn.encodings import (
    AbsoluteEncoding,
    AxialEncoding,
    AxialRotaryEncoding,
    BiasEncoding,
    EnumeratedEncoding,
    GaussianEncoding,
    LearnedEncoding,
    MixtureEncoding,
    PolygonEncoding,
    QuadraticEncoding,
    QuadraticGridEncoding,
    RelativeEncoding,
    RotaryEncoding,
    ScalarEncoding,
)
from convattn.encodings.base import score_dtype
from convattn.operators.shifts import TokenGrid

GRID = GRIDS[3]
OFFSETS = ((0, -1), (1, 0), (0, 2))


def normal(seed, *shape):
    return jnp.asarray(np.random.default_rng(seed).normal(size=shape))


ENCODINGS = {
    "absolute": AbsoluteEncoding(normal(0, 3, 4, 2), normal(1, 3, 4, 2)),
    "absolute-table": AbsoluteEncoding(normal(0, 3, 4, 2), normal(1, 3, 4, 2), normal(2, 5, 8, 4)),
    "axial": AxialEncoding(
        (normal(0, 3, 4, 2), normal(1, 3, 2, 3)), (normal(2, 3, 4, 2), normal(3, 3, 2, 3))
    ),
    "axial-table": AxialEncoding(
        (normal(0, 3, 4, 2), normal(1, 3, 1, 3)),
        (normal(2, 3, 4, 2), normal(3, 3, 1, 3)),
        (normal(4, 5, 4), normal(5, 8, 1)),
    ),
    "axial-rotary": AxialRotaryEncoding(
        *((normal(part, 3, 4), normal(part + 1, 3, 2)) for part in (0, 2, 4))
    ),
    "bias": BiasEncoding(normal(0, 3, 3), None, OFFSETS),
    "bias-leak": BiasEncoding(normal(0, 3, 3), jnp.asarray(0.25), OFFSETS),
    "enumerated": EnumeratedEncoding(
        jnp.array([0.5, 1.0, 2.0]), jnp.array([0.0, 1.0, 2.5]), OFFSETS, (0, 1, 2), 3
    ),
    "gaussian": GaussianEncoding(normal(0, 3, 2), normal(1, 3, 2, 2)),
    "learned": LearnedEncoding(normal(0, 3, 6), (normal(1, 7, 2), normal(2, 13, 4))),
    "mixture": MixtureEncoding(normal(0, 3, 3) ** 2, OFFSETS),
    "polygon": PolygonEncoding(normal(0, 3, 2), OFFSETS),
    "quadratic": QuadraticEncoding(jnp.array([0.5, 1.0, 2.0]), normal(0, 3, 2)),
    "quadratic-grid": QuadraticGridEncoding(
        (jnp.array([0.5, 1.0]), jnp.array([2.0, 0.25])),
        (normal(0, 2), normal(1, 2)),
        ((0, 1), (1, 0), (1, 1)),
    ),
    "relative": RelativeEncoding(normal(0, 3, 2), normal(1, 3, 4, 2)),
    "relative-table": RelativeEncoding(normal(0, 3, 2), normal(1, 3, 4, 2), normal(2, 7, 13, 4)),
    "rotary": RotaryEncoding(normal(0, 3, 4, 2), normal(1, 3, 4), normal(2, 3, 4)),
    "scalar": ScalarEncoding(jnp.array([0.0, 1.0, 2.0]), normal(0, 3), None, OFFSETS),
    "scalar-limit": ScalarEncoding(
        jnp.array([1.0, 2.0, 3.0]), normal(0, 3), jnp.asarray(9.0), OFFSETS
    ),
}
every_encoding = pytest.mark.parametrize("encoding", ENCODINGS.values(), ids=ENCODINGS)


def scores_of(encoding):
    return np.asarray(compiled_scores(encoding, GRID))


def assert_same_sums(actual, expected):
    """XLA orders and fuses sums as it likes: they have at most 40 terms below 2¹⁰ in magnitude."""
    assert np.abs(expected).max() < 2**10
    assert_within(actual, expected, 40 * 2**10 * np.finfo(float).eps)


def test_every_encoding_is_here():
    import convattn.encodings as package

    classes = {getattr(package, name) for name in dir(package) if name.endswith("Encoding")}
    protocols = {package.Encoding, package.PositionalEncoding, package.SeparableEncoding}
    assert classes - protocols == {type(one) for one in ENCODINGS.values()}


@every_encoding
@pytest.mark.quick(7)
def test_scores_have_a_row_for_each_query_and_tell_the_heads_apart(encoding):
    scores = scores_of(encoding)
    assert scores.shape == (3, 12, 4 * 7)
    assert encoding.heads == 3
    assert not np.array_equal(scores[0], scores[1])
    assert not np.array_equal(scores[1], scores[2])


@every_encoding
@pytest.mark.quick(7)
def test_heads_are_taken_in_order_and_may_repeat(encoding):
    indices = (2, 0, 0, 1)
    taken = encoding.take_heads(indices)
    assert type(taken) is type(encoding)
    assert taken.heads == len(indices)
    assert_same_sums(scores_of(taken), scores_of(encoding)[list(indices)])
    gains = encoding.head_gains(7)
    if gains is None:
        assert taken.head_gains(7) is None
    else:
        assert_same_sums(taken.head_gains(7), np.asarray(gains)[list(indices)])


@every_encoding
def test_an_encoding_is_a_tree_of_arrays(encoding):
    leaves, structure = jax.tree.flatten(encoding)
    assert leaves
    assert all(isinstance(leaf, jax.Array) for leaf in leaves)
    hash(structure)
    again = jax.tree.unflatten(structure, leaves)
    assert_equal(scores_of(again), scores_of(encoding))
    doubled = jax.tree.map(lambda leaf: 2 * leaf, encoding)
    assert not np.array_equal(scores_of(doubled), scores_of(encoding))


@pytest.mark.quick(4)
@every_encoding
def test_gradients_are_finite_and_not_all_zero(encoding):
    def loss(candidate):
        weights = jax.nn.softmax(candidate.positional_scores(GRID), axis=-1)
        gains = candidate.head_gains(GRID.number_of_keys)
        weights = weights if gains is None else weights * gains[:, None, None]
        return jnp.sum(weights**2)

    gradients = jax.tree.leaves(jax.jit(jax.grad(loss))(encoding))
    assert len(gradients) == len(jax.tree.leaves(encoding))
    for gradient in gradients:
        assert np.isfinite(gradient).all()
        assert np.abs(gradient).max() > 0


@every_encoding
def test_scores_keep_at_least_float32(encoding):
    for stored, scored in [("bfloat16", "float32"), ("float32", "float32"), ("float64",) * 2]:
        cast = jax.tree.map(lambda leaf, to=stored: jax.ShapeDtypeStruct(leaf.shape, to), encoding)
        assert jax.eval_shape(lambda one: one.positional_scores(GRID), cast).dtype == scored


@pytest.mark.parametrize(
    "name", [name for name in ENCODINGS if not name.startswith(("absolute", "relative"))]
)
def test_grids_of_other_axes_are_refused(name):
    with pytest.raises(ValueError, match="axes=1 of the grid, but expected 2"):
        ENCODINGS[name].positional_scores(TokenGrid((3,), ((0, 0),)))


def test_only_scalar_encodings_know_the_number_of_keys():
    with_gains = {name for name, one in ENCODINGS.items() if one.head_gains(5) is not None}
    assert with_gains == {"scalar", "scalar-limit"}


def test_score_dtype_is_the_widest_parameter(implicit_promotion):
    assert score_dtype(jnp.ones(1, "bfloat16"), jnp.ones(1, "float16")) == "float32"
    assert score_dtype(jnp.ones(1, "int32")) == "float32"
    assert score_dtype(jnp.ones(1, "float32"), jnp.ones(1, "float64")) == "float64"
