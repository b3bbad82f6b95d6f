"""The encoder is that of the paper: against NumPy, with every parameter in use, and exportable."""

from functools import cache, partial

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from comparison import assert_dtype, assert_equal, assert_within
from fast.programs import product_dtypes
from flax import nnx
from lab.models.oracle import encoder_of
from lab.models.tiny import ENCODINGS, SIZE, images, tiny

from convattn.nnx.layers.compute import compute_dtype
from convattn_lab.models import encoder_layer
from convattn_lab.models.build import build_model
from convattn_lab.models.settings import EncoderSettings, ResNetSettings
from convattn_lab.models.sizes import abstract_model

# 64-bit arithmetic on both sides, in other orders. A layer multiplies by maps of 8 to 48 inputs and
# divides by the spread of a token; an error of a few hundred roundings, amplified by at most a few
# powers of ten through both norms, is far below this, and every planted error is far above it.
CLOSE = 2.0**-30


@partial(nnx.jit, static_argnames="training")
def run(model, batch, training=False, dropout_key=None):
    return model(batch, training=training, dropout_key=dropout_key)


@pytest.mark.slow
@pytest.mark.parametrize("encoding", ENCODINGS)
def test_the_logits_are_those_of_the_loops(encoding):
    """In float64; without heads in the second layer for one of the encodings."""
    heads = (3, 0) if encoding == "gaussian" else (3, 2)
    model, batch = tiny(encoding, heads, dtype="float64", fold=False), images(dtype="float64")
    result = run(model, batch)
    expected = np.stack([encoder_of(model, image) for image in np.asarray(batch)])
    assert_dtype(result, "float64")
    assert_within(result, expected, CLOSE)
    if encoding == "gaussian":  # planted: an epsilon that is not the settings'
        other = tiny(encoding, heads, dtype="float64", fold=False, norm_epsilon=1e-5)
        wrong = np.stack([encoder_of(other, image) for image in np.asarray(batch)])
        with pytest.raises(AssertionError, match="too far"):
            assert_within(result, wrong, CLOSE)


@cache
def losses(encoding, fold):
    """The loss of a tiny model and its gradient, in float64."""

    def of(model, batch):
        return (model(batch) ** 2).sum()

    model = tiny(encoding, (3,), dtype="float64", fold=fold)
    return nnx.jit(nnx.value_and_grad(of))(model, images(dtype="float64"))


@pytest.mark.slow
@pytest.mark.parametrize("encoding", ["quadratic", "content"])
def test_a_gradient_flows_to_every_parameter(encoding):
    """But to the keys' bias, which adds the same to all scores of a query: its gradient is zero."""
    _, gradient = losses(encoding, False)
    leaves = dict(nnx.to_flat_state(gradient))
    assert len(leaves) == 4 + {"quadratic": 14, "content": 18}[encoding]
    for path, leaf in leaves.items():
        result = np.abs(np.asarray(leaf[...]))
        assert np.isfinite(result).all(), path
        if path[-1] == "key_bias":
            assert result.max() < CLOSE
        else:
            assert result.max() > 1000 * CLOSE, path


@pytest.mark.slow
def test_folding_changes_rounding_alone():
    """Gradients are held in float32, as the parameters are: two roundings more."""
    value, gradient = losses("quadratic", True)
    other, unfolded = losses("quadratic", False)
    assert_within(value, other, CLOSE * float(other))
    for actual, expected in zip(*map(jax.tree.leaves, (gradient, unfolded)), strict=True):
        largest = np.abs(np.asarray(expected)).max()
        assert_within(actual, expected, CLOSE * (1 + largest) + 2.0**-23 * largest)


@pytest.mark.quick(1)
@pytest.mark.parametrize("encoding", ["quadratic", "content"])
def test_half_precision_is_finite_and_its_logits_float32(encoding):
    model = tiny(encoding, (2,), dtype="bfloat16")
    dtypes = {leaf.dtype for leaf in jax.tree.leaves(nnx.state(model, nnx.Param))}
    assert dtypes == {jnp.dtype("float32")}
    result = run(model, images())
    assert_dtype(result, "float32")
    assert np.isfinite(np.asarray(result)).all()
    assert ("bfloat16", "bfloat16", "float32") in product_dtypes(model, images())


@pytest.mark.slow
def test_dropout_takes_place_in_training_only_and_draws_from_the_key_alone():
    model = tiny(heads=(2,), dropout=0.3, attention_dropout=0.2, backend="dense")
    batch, first = images(), jax.random.key(1)

    def program(**options):
        return str(jax.make_jaxpr(lambda batch: model(batch, **options))(batch))

    plain = program()
    assert program(training=True) == plain
    assert program(dropout_key=first) == plain
    assert program(training=True, dropout_key=first) != plain
    dropped = run(model, batch, True, first)
    assert_equal(run(model, batch, True, first), dropped)
    for other in (run(model, batch, True, jax.random.key(2)), run(model, batch)):
        assert np.abs(np.asarray(other - dropped)).min() > 0


@pytest.mark.slow
def test_each_layer_drops_other_numbers(monkeypatch):
    """The keys of layers and of their three parts are all different."""
    keys = []

    def attend(layer, tokens, *, dropout_key, dropout_rate, **_):
        assert dropout_rate == 0.2
        return keep(tokens, dropout_rate, dropout_key)

    def keep(values, rate, key):
        keys.append(tuple(np.asarray(jax.random.key_data(key)).tolist()))
        return values

    monkeypatch.setattr(encoder_layer, "apply_attention", attend)
    monkeypatch.setattr(encoder_layer, "dropout", keep)
    model = tiny(dropout=0.3, attention_dropout=0.2)
    model(images(), training=True, dropout_key=jax.random.key(0))
    assert len(keys) == len({*keys}) == 6


@pytest.mark.slow
def test_the_first_numbers_come_from_the_seed():
    """And linear maps of n inputs begin within 1/√n, and not much nearer."""
    settings = EncoderSettings("content", heads=(2, 0), width=8, inner=6)
    arguments = {"classes": 5, "image_size": SIZE}
    models = [build_model(settings, **arguments, rngs=nnx.Rngs(seed)) for seed in (0, 0, 1)]
    first, same, other = (jax.tree.leaves(nnx.state(model)) for model in models)
    for left, right in zip(first, same, strict=True):
        assert_equal(left, right)
    assert any((left != right).any() for left, right in zip(first, other, strict=True))
    attention = models[0].layers[0].attention
    for parameter, inputs in (
        (attention.value, 16),
        (attention.query, 8),
        (models[0].embedding.kernel, 12),
    ):
        assert 0.9 < float(jnp.abs(parameter[...]).max()) * np.sqrt(inputs) <= 1


@pytest.mark.slow
@pytest.mark.parametrize("encoding", ["quadratic", "gaussian"])
def test_the_most_extreme_settings_stay_finite(encoding):
    """Also where tokens are zero, so that LayerNorm has nothing but epsilon to divide by."""
    extremes = {"norm_epsilon": 1e-20, "center_variance": 1e6, "spread_variance": 1e6}
    settings = EncoderSettings(encoding, heads=(2,), width=2, inner=2, **extremes)
    model = build_model(settings, classes=2, image_size=(4, 4), rngs=nnx.Rngs(0))

    @nnx.jit
    def step(model, inputs):
        return nnx.value_and_grad(lambda model: (model(inputs) ** 2).sum())(model)

    graph, state = nnx.split(model)
    nonzero = ("classifier", "norm")
    zero = jax.tree_util.tree_map_with_path(
        lambda path, leaf: leaf * any(name in jax.tree_util.keystr(path) for name in nonzero),
        state,
    )
    images = jnp.ones((1, 4, 4, 3))

    def is_finite(model):
        leaves = jax.tree.leaves(step(model, images))
        return all(np.isfinite(np.asarray(leaf)).all() for leaf in leaves)

    assert is_finite(nnx.merge(graph, state))
    model = nnx.merge(graph, zero)
    assert is_finite(model)
    for layer in model.layers:  # planted: beyond what float32 holds to the power -3/2
        layer.attention_norm.epsilon = layer.outer_norm.epsilon = 1e-30
    assert not is_finite(model)


def test_a_smaller_image_is_served_and_a_larger_one_refused():
    model = tiny("learned")
    shapes = [jax.ShapeDtypeStruct((1, *size, 3), jnp.float32) for size in ((6, 4), (10, 6))]
    assert jax.eval_shape(model, shapes[0]).shape == (1, 5)
    with pytest.raises(ValueError, match="its table of"):
        jax.eval_shape(model, shapes[1])


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"classes": 0}, "classes=0"),
        ({"image_size": (7, 6)}, "image_size.* 2 divides"),
        *(({"image_size": size}, "image_size") for size in ((8,), (0, 8), (8.0, 8), 8, ("8", "8"))),
        ({"dtype": "int32"}, "dtype='int32'"),
        ({"dtype": "foo"}, "dtype='foo'"),
        ({"dtype": None}, "dtype=None"),
        ({"settings": None}, "NoneType"),
    ],
)
def test_what_does_not_fit_is_refused(options, message):
    settings = EncoderSettings(heads=(2,), width=8)
    arguments = {"settings": settings, "classes": 5, "image_size": SIZE, "rngs": nnx.Rngs(0)}
    with pytest.raises(ValueError, match=message):
        build_model(**{**arguments, **options})


@pytest.mark.parametrize(
    "settings", [EncoderSettings(heads=(2,), width=8), ResNetSettings((2,), (1,))]
)
@pytest.mark.parametrize(
    ("shape", "dtype", "message"),
    [
        ((8, 6, 3), "float32", "batch axis"),
        ((2, 8, 6, 4), "float32", "channels come last"),
        ((2, 1, 8, 6, 3), "float32", r"expected \[batch, height, width, 3\]"),
        ((2, 8, 6, 3), "uint8", "images.dtype=uint8, but expected floats, normalised"),
    ],
)
def test_images_that_do_not_fit_are_refused(settings, shape, dtype, message):
    model = abstract_model(settings, classes=5, image_size=SIZE)
    with pytest.raises(ValueError, match=message):
        jax.eval_shape(model, jax.ShapeDtypeStruct(shape, dtype))


def test_float64_is_refused_where_jax_would_compute_in_float32():
    assert compute_dtype("float64") == np.float64
    with jax.enable_x64(False), pytest.raises(ValueError, match="64-bit types are off"):
        compute_dtype("float64")
