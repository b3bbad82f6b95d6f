"""`jax.nn.dot_product_attention` gives what dense does, at the precision that is asked for."""

from dataclasses import replace

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from comparison import assert_equal, assert_within
from fast.layers import LAYER_BUCKETS, make_layer_case
from jax import lax
from matrix_products import precisions

from convattn.encodings import BiasEncoding
from convattn.encodings.layer import AttentionLayer, ContentScores
from convattn.fast.application import apply_attention
from convattn.fast.dot_product import DOT_PRODUCT, attend, precision_name
from convattn.fast.options import AttentionOptions, Dropout
from convattn.operators.shifts import TokenGrid
from convattn_ledger.bounds.back_ends.bounds import value_bound

RING = ((1, 0), (0, 2))
CONTENT = next(bucket for bucket in LAYER_BUCKETS if bucket.content)


def case_of(bucket, width=2, dtype="float32", scaled=True, images=None):
    """The case of a bucket with queries and keys of this width."""
    case = make_layer_case(bucket, 5, dtype, images)
    rng = np.random.default_rng(12)
    features = case.layer.content.query.shape[1]
    shapes = [(bucket.heads, features, width)] * 2 + [(bucket.heads, width)] * 2
    parts = (jnp.asarray(rng.normal(size=shape), jnp.dtype(dtype)) for shape in shapes)
    content = ContentScores(*parts, scaled=scaled)
    return replace(case, layer=replace(case.layer, content=content))


def apply(name, case, **options):
    """The result of a back end, compiled as a whole."""
    return jax.jit(lambda layer, images: apply_attention(layer, images, backend=name, **options))(
        case.layer, case.images
    )


@pytest.mark.slow
def test_the_wrong_scale_is_seen():
    """The planted case: scores over √E that should not be, and the other way round."""
    case = case_of(CONTENT, 7)
    bound = 2 * value_bound(case.layer, case.images)
    content = replace(case.layer.content, scaled=False)
    other = apply("dot_product", replace(case, layer=replace(case.layer, content=content)))
    with pytest.raises(AssertionError, match="too far"):
        assert_within(other, apply("dense", case), bound)


def uniform_layer(dtype):
    """Zero scores: each of 512 keys weighs 2⁻⁹, and nothing else is rounded."""
    content = ContentScores(jnp.zeros((1, 1, 1), dtype), jnp.zeros((1, 1, 1), dtype))
    encoding = BiasEncoding(jnp.zeros((1, 1), dtype), None, ((0,),))
    one = (1,)
    return AttentionLayer(encoding, None, None, None, content, one, one, one, ((0, 0),))


@pytest.mark.parametrize(("precision", "dtype"), [("highest", "float16"), ("default", "bfloat16")])
def test_sums_of_narrow_tokens_are_taken_in_float32(precision, dtype):
    """Ones times 2⁻⁹ add up to one; in bfloat16 sums would stop at a half."""
    tokens = jnp.ones((1, 512, 1), dtype)
    layer = uniform_layer(dtype)
    grid, options = TokenGrid((512,), ((0, 0),)), AttentionOptions(precision)
    outputs = jax.jit(attend, static_argnums=(1, 3))(layer, grid, tokens, options)
    assert_equal(outputs, np.ones((1, 512, 1)))
    narrow = np.float32(0)
    for _ in range(512):
        narrow = np.asarray(jnp.asarray(narrow + 2.0**-9, "bfloat16")).astype(np.float32)
    assert narrow == 0.5


@pytest.mark.parametrize(
    ("precision", "expected"),
    [
        (None, (lax.Precision.HIGHEST,) * 2),
        (lax.Precision.HIGH, (lax.Precision.HIGH,) * 2),
    ],
)
def test_every_product_carries_the_precision_forward_and_backward(precision, expected):
    case = case_of(CONTENT)

    def loss(layer, images):
        out = apply_attention(layer, images, backend="dot_product", precision=precision)
        return out.sum()

    pairs = precisions(jax.grad(loss, argnums=(0, 1)), case.layer, case.images)
    inside = [each for each in pairs if each == expected]
    assert len(inside) >= 6  # scores and mixing, and both factors of each on the way back
    # Scores of content are always projected at the highest precision.
    assert set(pairs) <= {expected, (lax.Precision.HIGHEST,) * 2}


@pytest.mark.parametrize(
    ("precision", "expected"),
    [
        (None, "default"),
        ("float32", "highest"),
        (lax.Precision.HIGH, "high"),
        ((lax.Precision.HIGH, lax.Precision.HIGH), "high"),
        (("highest", "float32"), "highest"),
        (lax.DotAlgorithmPreset.TF32_TF32_F32, "TF32_TF32_F32"),
        ("TF32_TF32_F32", "TF32_TF32_F32"),
        ((lax.Precision.HIGH, lax.Precision.HIGHEST), None),
        ("sharp", None),
    ],
)
def test_how_precisions_are_called(precision, expected):
    name = precision_name(precision)
    assert name == expected
    if name is not None:
        with jax.default_matmul_precision(name):  # knows it, or raises
            pass


LAYER = case_of(CONTENT).layer
WIDE = jax.tree.map(lambda part: part.astype(jnp.float64), LAYER)
PART = replace(LAYER, bias=jnp.zeros(LAYER.output.shape[2], jnp.float64))
DROPPING = {"dropout_rate": 0.5, "dropout_key": jax.random.key(0)}


@pytest.mark.parametrize(
    ("layer", "options", "message"),
    [
        (replace(LAYER, content=None), {}, "no content scores.*use separable, shift, chunked or"),
        (WIDE, {}, "takes softmax in float32"),
        (PART, {}, "float64 parameters"),
        (LAYER, DROPPING, "use dense or chunked"),
        (LAYER, {"precision": (lax.Precision.HIGH, lax.Precision.HIGHEST)}, "one named precision"),
    ],
    ids=range(5),
)
def test_what_it_refuses(layer, options, message):
    images = jnp.ones((1, 3, 4, 3), jnp.float32)
    with pytest.raises(ValueError, match=f"'dot_product' cannot serve this layer.*{message}"):
        apply_attention(layer, images, backend="dot_product", **options)


def test_the_work_without_content_is_refused():
    with pytest.raises(ValueError, match=r"layer\.content=None, but expected ContentScores"):
        DOT_PRODUCT.work(replace(LAYER, content=None), TokenGrid((3, 4), RING), 1, 3)


def test_what_is_served_is_not_refused_under_jit_either():
    grid, tokens = TokenGrid((3, 4), RING), jax.ShapeDtypeStruct((1, 3, 4, 3), jnp.float32)

    def served(layer, images):
        assert DOT_PRODUCT.refusal(layer, grid, AttentionOptions()) is None
        dropping = AttentionOptions(dropout=Dropout(0.5, jax.random.key(0)))
        assert DOT_PRODUCT.refusal(layer, grid, dropping) is not None
        return images

    assert jax.eval_shape(served, LAYER, tokens).shape == tokens.shape


def test_work_counts_the_wider_of_keys_and_values():
    grid = TokenGrid((3, 4), RING)
    narrow, wide = (DOT_PRODUCT.work(case_of(CONTENT, w).layer, grid, 2, 3) for w in (2, 9))
    pairs = 2 * LAYER.heads * 12 * grid.number_of_keys
    assert narrow.exponentials == wide.exponentials == pairs
    more = 2 * pairs * (9 - LAYER.value.shape[2])
    projections = 2 * 12 * LAYER.heads * 2 * 3 * (9 - 2)
    assert wide.products - narrow.products == more + projections
