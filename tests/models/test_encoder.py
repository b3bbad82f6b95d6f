"""The encoder is that of the paper: against NumPy, with every parameter in use, and exportable."""

from functools import cache

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from comparison import assert_dtype, assert_equal, assert_within
from flax import nnx
from models.oracle import encoder_of
from models.tiny import ENCODINGS, SIZE, images, moved, tiny

import convattn as ca
from convattn.models.encoder_layer import folds
from convattn.models.settings import EncoderSettings

# 64-bit arithmetic on both sides, in other orders. A layer multiplies by maps of 8 to 48 inputs and
# divides by the spread of a token; an error of a few hundred roundings, amplified by at most a few
# powers of ten through both norms, is far below this, and every planted error is far above it.
CLOSE = 2.0**-30


def run(model, given, **options):
    return nnx.jit(lambda model, given: model(given, **options))(model, given)


@pytest.mark.parametrize("encoding", ENCODINGS)
def test_the_logits_are_those_of_the_loops(encoding):
    """In float64; without heads in the second layer for one of the encodings."""
    heads = (3, 0) if encoding == "gaussian" else (3, 2)
    model = moved(tiny(encoding, heads, dtype="float64", fold=False))
    given = images(dtype="float64")
    found = run(model, given)
    expected = np.stack([encoder_of(model, image) for image in np.asarray(given)])
    assert_dtype(found, "float64")
    assert_within(found, expected, CLOSE)
    if encoding == "quadratic":  # planted: an epsilon that is not the settings'
        other = moved(tiny(encoding, heads, dtype="float64", fold=False, norm_epsilon=1e-5))
        with pytest.raises(AssertionError, match="too far"):
            assert_within(run(other, given), expected, CLOSE)


@cache
def losses(encoding, dtype, **options):
    """The loss of a tiny model and its gradient, folded or not."""

    def of(model, given):
        return (model(given) ** 2).sum()

    model = moved(tiny(encoding, dtype=dtype, **options))
    return nnx.jit(nnx.value_and_grad(of))(model, images(dtype=dtype))


@pytest.mark.parametrize("encoding", ENCODINGS)
def test_a_gradient_flows_to_every_parameter(encoding):
    """But to the keys' bias, which adds the same to all scores of a query: its gradient is zero."""
    _, gradient = losses(encoding, "float64")
    leaves = dict(nnx.to_flat_state(gradient))
    assert (
        len(leaves)
        == {"quadratic": 16, "gaussian": 16, "learned": 17, "content": 20}[encoding] * 2
        - 2 * 12
        + 2 * 12
        + 4
    )
    for path, leaf in leaves.items():
        found = np.abs(np.asarray(leaf[...]))
        assert np.isfinite(found).all(), path
        if path[-1] == "key_bias":
            assert found.max() < CLOSE
        else:
            assert found.max() > 1e-6, path


def test_folding_changes_rounding_alone():
    value, gradient = losses("quadratic", "float64", fold=True)
    other, unfolded = losses("quadratic", "float64", fold=False)
    assert_within(value, other, CLOSE * float(other))
    for got, wanted in zip(*map(jax.tree.leaves, (gradient, unfolded)), strict=True):
        assert_within(got, wanted, CLOSE * (1 + np.abs(np.asarray(wanted)).max()))


def test_folding_is_decided_by_the_number_of_tokens():
    """Products of both ways: heads·d³ once, and d² for each token."""
    for heads, width in ((1, 3), (9, 400)):
        for tokens in (heads * width - 1, heads * width, heads * width + 1):
            assert folds(tokens, heads, width) == (heads * width**3 < tokens * width**2)
    shapes = []
    for batch in (1, 4):  # 12 tokens and 48, against 3 heads of 8
        model = tiny(heads=(3,), backend="dense")
        text = str(jax.make_jaxpr(lambda given, model=model: model(given))(images(batch)))
        shapes.append("f32[3,8,8] = dot_general" in text)
    assert shapes == [False, True]


@pytest.mark.parametrize("encoding", ["quadratic", "content"])
def test_half_precision_is_finite_and_its_logits_float32(encoding):
    model = tiny(encoding, dtype="bfloat16")
    assert {leaf.dtype for leaf in jax.tree.leaves(nnx.state(model, nnx.Param))} == {
        jnp.dtype("float32")
    }
    found = run(model, images(), training=True, dropout_key=jax.random.key(0))
    assert_dtype(found, "float32")
    assert np.isfinite(np.asarray(found)).all()
    exact = run(tiny(encoding, dtype="float32"), images())
    close = run(model, images())
    assert 0 < np.abs(np.asarray(close - exact)).max() < 0.1  # seven bits, and not eight more


# --------------------------------------------------------------------------------- dropout
def test_dropout_takes_place_in_training_only_and_draws_from_the_key_alone():
    model, given = tiny(dropout=0.3, attention_dropout=0.2), images()
    first, second = jax.random.key(1), jax.random.key(2)
    plain = run(model, given)
    dropped = run(model, given, training=True, dropout_key=first)
    assert_equal(run(model, given), plain)
    assert_equal(run(model, given, training=True), plain)
    assert_equal(run(model, given, dropout_key=first), plain)
    assert_equal(run(model, given, training=True, dropout_key=first), dropped)
    others = (run(model, given, training=True, dropout_key=second), plain)
    for other in others:
        assert np.abs(np.asarray(other - dropped)).min() > 0


def test_each_layer_drops_other_numbers():
    """The keys of layers and of their three parts are all different."""
    seen = []
    original = ca.models.encoder_layer.drop
    model = tiny(dropout=0.3, attention_dropout=0.2)
    try:
        ca.models.encoder_layer.drop = lambda values, rate, key: seen.append(key) or values
        model(images(), training=True, dropout_key=jax.random.key(0))
    finally:
        ca.models.encoder_layer.drop = original
    assert len(seen) == 4
    assert len({tuple(jax.random.key_data(key).tolist()) for key in seen}) == 4


def test_the_first_numbers_come_from_the_seed():
    for left, right in zip(*(jax.tree.leaves(nnx.state(tiny())) for _ in range(2)), strict=True):
        assert_equal(left, right)


@pytest.mark.parametrize("encoding", ["quadratic", "gaussian"])
def test_centres_and_spreads_begin_as_stated(encoding):
    """N(0, 2) and I + N(0, 0.01): means and variances of n numbers, within five deviations."""
    from convattn.models.positional_attention import PositionalAttention

    count = 4000
    settings = EncoderSettings(encoding, heads=(count,), width=1)
    attention = PositionalAttention(settings, count, (4, 3), rngs=nnx.Rngs(0))
    middle = np.eye(2) if encoding == "gaussian" else 1.0
    for part, variance in (
        (np.asarray(attention.centers[...], np.float64), 2.0),
        (np.asarray(attention.spreads[...], np.float64) - middle, 0.01),
    ):
        n = part.size
        assert abs(part.mean()) < 5 * np.sqrt(variance / n)
        assert abs(part.var() - variance) < 5 * variance * np.sqrt(2 / n)


# ---------------------------------------------------------------------------- the whole
@pytest.mark.parametrize("encoding", ENCODINGS)
def test_attention_layers_are_for_analysis(encoding):
    """What a layer attends to, without the dense map; none for a layer without heads."""
    model = moved(tiny(encoding, (3, 0), dtype="float64"))
    first, second = model.attention_layers()
    assert (first.heads, second.heads) == (3, 0)
    assert_equal(first.value, model.layers[0].attention.value[...])
    tokens = jnp.asarray(np.random.default_rng(5).normal(size=(1, 4, 3, 8)))
    _, weights = ca.apply_attention(first, tokens, return_weights=True)
    from models.oracle import scores

    found = jax.nn.softmax(scores(model.layers[0].attention, np.asarray(tokens[0])), axis=-1)
    assert_within(weights.reshape(3, 12, 12), found, CLOSE)


def test_a_smaller_image_is_served_and_a_larger_one_refused():
    model = tiny("learned")
    assert model(jnp.ones((1, 6, 4, 3))).shape == (1, 5)
    with pytest.raises(ValueError, match="its table of"):
        model(jnp.ones((1, 10, 6, 3)))


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"classes": 0}, "classes=0"),
        ({"image_size": (7, 6)}, "2 divides"),
        ({"dtype": "int32"}, "dtype='int32'"),
        ({"settings": None}, "NoneType"),
    ],
)
def test_what_does_not_fit_is_refused(options, message):
    from convattn.models.build import build_model

    settings = EncoderSettings(heads=(2,), width=8)
    given = {"settings": settings, "classes": 5, "image_size": SIZE, "rngs": nnx.Rngs(0)}
    with pytest.raises(ValueError, match=message):
        build_model(**{**given, **options})


def test_it_exports_for_every_platform():
    graph, state = nnx.split(tiny())

    @jax.jit
    def forward(state, given):
        return nnx.merge(graph, state)(given)

    platforms = ["cpu", "cuda", "tpu"]
    exported = jax.export.export(forward, platforms=platforms)(state, images())
    assert exported.platforms == tuple(platforms)
    assert_equal(exported.call(state, images()), forward(state, images()))
