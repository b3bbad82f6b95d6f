"""The windowed back end: softmax over a window, exact where integers allow, in tiles of any size.

Windows and tiles are static, so a few buckets are compiled; layers and images are drawn.
"""

import math
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, replace
from functools import cache, partial
from itertools import product
from unittest.mock import patch

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from comparison import assert_dtype, assert_equal, assert_within, gamma
from fast.programs import largest_intermediate
from hypothesis import given, settings
from hypothesis import strategies as st
from random_windows import HEADS, gaussians
from strategies import seeds

from convattn.encodings import AbsoluteEncoding, QuadraticEncoding
from convattn.encodings.layer import AttentionLayer, ContentScores
from convattn.fast import choose_windows
from convattn.fast.application import apply_attention
from convattn.fast.dropout import keep_scale
from convattn.fast.options import Dropout
from convattn.fast.windowed import tile_plan
from convattn.fast.windowed.window import skipped_weight, window_mask
from convattn.operators.attention import attention_weights, multi_head_self_attention
from convattn.operators.patches import add_zero_ring
from convattn.operators.shifts import TokenGrid

FEATURES, HEAD_FEATURES, OUT = 4, 2, 5


@dataclass(frozen=True)
class Bucket:
    """A grid, windows of the heads, and the sizes of tiles (None for those of the cost model)."""

    grid: TokenGrid
    windows: tuple
    sizes: tuple[int, ...] | None


# Alike and unlike windows, on both sides of zero, beyond the grid; rings of every kind; tiles that
# divide the axes and that do not, of one query, of all.
BUCKETS = (
    Bucket(TokenGrid((11,), ((0, 0),)), (((-3, 1),), ((-9, 0),), ((-2, 19),)), (1, 4)),
    Bucket(TokenGrid((9,), ((2, 5),)), (((-2, -2),), ((-1, 3),), ((4, 5),)), (1, 2)),
    Bucket(
        TokenGrid((7, 10), ((1, 0), (0, 2))),
        (((-1, 1), (0, 2)), ((-2, 0), (-1, 1)), ((-1, -1), (-9, 4))),
        (2, 3),
    ),
    Bucket(
        TokenGrid((1, 6), ((0, 0), (3, 1))),
        (((0, 0), (-3, 1)), ((-4, 5), (0, 0)), ((0, 0), (-1, 9))),
        None,
    ),
    Bucket(TokenGrid((9, 8), ((4, 5), (4, 4))), (((-2, 4), (-3, 3)),) * 3, (3, 8)),
)


@contextmanager
def tiles_of(sizes: tuple[int, ...] | None) -> Iterator[None]:
    """Tiles of these sizes rather than those that the cost model chooses."""
    if sizes is None:
        yield
        return
    tile_plan.plan_groups.cache_clear()
    with patch.object(tile_plan, "tile_sizes", lambda plane, *_: sizes):
        yield
    tile_plan.plan_groups.cache_clear()


def layer_on(grid: TokenGrid, encoding, value=None, output=None, **parts) -> AttentionLayer:
    axes = len(grid.queries)
    ones = (1,) * axes
    return AttentionLayer(encoding, value, output, None, None, ones, ones, ones, grid.ring, **parts)


def random_maps(generator, integers: bool = False):
    """Value and output maps of every head."""
    shapes = (HEADS, FEATURES, HEAD_FEATURES), (HEADS, HEAD_FEATURES, OUT)
    if integers:
        return [generator.integers(-1, 2, shape) for shape in shapes]
    return [jnp.asarray(generator.normal(size=shape)) for shape in shapes]


def masked_weights(encoding, grid: TokenGrid, windows) -> jax.Array:
    """The definition: the dense softmax with scores of -∞ outside the windows."""
    masks = [window_mask(grid, window).reshape(-1) for window in windows]
    keep = jnp.asarray(np.stack(masks))[:, grid.shift_index()]
    return attention_weights(jnp.where(keep, encoding.positional_scores(grid), -jnp.inf))


def masked(layer, images, windows, scale=None) -> jax.Array:
    """The definition of the layer, by matrices of queries × keys."""
    grid = TokenGrid(images.shape[1:-1], layer.ring)
    keys = add_zero_ring(images, grid.ring).reshape(len(images), -1, images.shape[-1])
    weights = masked_weights(layer.encoding, grid, windows)
    weights = weights if scale is None else weights[None] * scale
    out = multi_head_self_attention(keys, weights, layer.value, layer.output)
    return out.reshape(*images.shape[:-1], out.shape[-1])


compiled_weights = jax.jit(masked_weights, static_argnums=(1, 2))
definition = jax.jit(masked, static_argnames="windows")


def nearest_keys(layer, grid: TokenGrid, images: np.ndarray, windows) -> np.ndarray:
    """What one-hot heads with integer centres give: the value of the nearest key that is kept."""
    centers = np.asarray(layer.encoding.centers).astype(int)
    shape = images.shape[0], *grid.queries, OUT
    out = np.zeros(shape, np.int64)
    for head, window in enumerate(windows):
        maps = np.asarray(layer.value[head], int) @ np.asarray(layer.output[head], int)
        for query in product(*map(range, grid.queries)):
            key = []
            for axis, (low, high) in enumerate(window):
                before, after = grid.ring[axis]
                least = max(query[axis] + low, -before)
                most = min(query[axis] + high, grid.queries[axis] + after - 1)
                key.append(min(max(query[axis] + centers[head, axis], least), most))
            if all(0 <= k < n for k, n in zip(key, grid.queries, strict=True)):
                out[(slice(None), *query)] += images[(slice(None), *key)] @ maps
    return out


@cache
def compiled(bucket: Bucket):
    """The layer of a bucket as a program: layer, images and cotangent to result and gradients."""

    @jax.jit
    def run(layer, images, cotangent):
        def loss(layer, images):
            out = apply_attention(layer, images, backend="windowed", windows=bucket.windows)
            return jnp.sum(cotangent * out), out

        with tiles_of(bucket.sizes):
            return jax.grad(loss, (0, 1), has_aux=True)(layer, images)

    return run


@cache
def compiled_definition(bucket: Bucket):
    """The same by matrices."""

    @jax.jit
    def run(layer, images, cotangent):
        def loss(layer, images):
            out = masked(layer, images, bucket.windows)
            return jnp.sum(cotangent * out), out

        return jax.grad(loss, (0, 1), has_aux=True)(layer, images)

    return run


@cache
def compiled_values(bucket: Bucket, precision):
    def run(layer, images):
        with tiles_of(bucket.sizes):
            return apply_attention(
                layer, images, backend="windowed", windows=bucket.windows, precision=precision
            )

    return jax.jit(run)


EXACT = (
    (BUCKETS[0], "float64", None),
    (BUCKETS[1], "float32", None),
    (BUCKETS[2], "bfloat16", "default"),
    (BUCKETS[3], "float16", None),
)


def check_one_hot_heads(bucket: Bucket, dtype: str, precision, seed: int):
    """Pixels up to 5 and maps of ±1: no sum exceeds 3·4·2·5 = 120 < 2⁷, and bfloat16 holds 2⁸."""
    grid = bucket.grid
    generator = np.random.default_rng(seed)
    images = generator.integers(0, 6, (2, *grid.queries, FEATURES))
    centers = generator.integers(-5, 6, (HEADS, len(grid.queries)))
    encoding = QuadraticEncoding(jnp.full(HEADS, 1024.0), jnp.asarray(centers, "float64"))
    maps_dtype = "float32" if dtype == "uint8" else dtype
    maps = [jnp.asarray(part, maps_dtype) for part in random_maps(generator, integers=True)]
    layer = layer_on(grid, encoding, *maps)
    out = compiled_values(bucket, precision)(layer, jnp.asarray(images, dtype))
    assert_dtype(out, maps_dtype)
    assert_equal(out, nearest_keys(layer, grid, images, bucket.windows))


@pytest.mark.slow
@given(case=st.sampled_from(EXACT), seed=seeds())
def test_one_hot_heads_are_exact(case, seed):
    check_one_hot_heads(*case, seed)


@pytest.mark.slow
def test_one_hot_heads_are_exact_on_integer_images(implicit_promotion):
    for seed in range(4):
        check_one_hot_heads(BUCKETS[4], "uint8", "default", seed)


def test_another_window_is_noticed():
    bucket = BUCKETS[2]
    generator = np.random.default_rng(0)
    images = generator.integers(0, 6, (2, *bucket.grid.queries, FEATURES))
    encoding = QuadraticEncoding(jnp.full(HEADS, 1024.0), jnp.full((HEADS, 2), 3.0))
    maps = [jnp.asarray(part, "float64") for part in random_maps(generator, integers=True)]
    layer = layer_on(bucket.grid, encoding, *maps)
    out = compiled_values(bucket, None)(layer, jnp.asarray(images, "float64"))
    assert_equal(out, nearest_keys(layer, bucket.grid, images, bucket.windows))
    (rows, columns), *others = bucket.windows
    for window in (((rows[0], rows[1] + 1), columns), (rows, (columns[0], columns[1] + 1))):
        with pytest.raises(AssertionError, match="entries differ"):
            assert_equal(out, nearest_keys(layer, bucket.grid, images, (window, *others)))


def rounding_factor(layer, grid: TokenGrid, dtype="float64", more: int = 0) -> float:
    """How far two evaluations of a Gaussian layer can be apart, relative to the majorant.

    With a = |δ - Δ| and S = max ½ | |R|a |²: a score has 11 roundings on terms whose magnitudes add
    up to at most S, and its difference to the largest one 2 more. That moves e^s by 13·S·u, and its
    sum as much; exp counts as 8 roundings on both, and N + 4 are those of sum and quotient. Then
    come the products, the map V O perhaps, and the sum over the heads.
    """
    reach = np.abs(grid.shifts[None] - np.asarray(layer.encoding.centers)[:, None])
    roots = np.abs(np.asarray(layer.encoding.root_precision))
    largest = float((np.einsum("hij,hsj->hsi", roots, reach) ** 2).sum(-1).max()) / 2
    weights = 2 * 13 * largest + 2 * 8 + grid.number_of_keys + 4
    products = grid.number_of_keys + FEATURES + 2 * HEADS * HEAD_FEATURES + HEADS
    return 2 * gamma(math.ceil(weights) + products + 8 + more, dtype)


def absolute(layer) -> AttentionLayer:
    return replace(layer, value=jnp.abs(layer.value), output=jnp.abs(layer.output))


@pytest.mark.slow
@settings(max_examples=15)
@given(bucket=st.sampled_from((BUCKETS[0], BUCKETS[2])), seed=seeds())
def test_values_and_gradients_are_those_of_the_masked_softmax(bucket, seed):
    """Correlated heads with centres up to six tokens away, also outside the image; float64."""
    grid, windows = bucket.grid, bucket.windows
    generator = np.random.default_rng(seed)
    layer = layer_on(grid, gaussians(seed, len(grid.queries)), *random_maps(generator))
    images = jnp.asarray(generator.normal(size=(2, *grid.queries, FEATURES)))
    cotangent = jnp.asarray(generator.normal(size=(2, *grid.queries, OUT)))
    slopes, out = compiled(bucket)(layer, images, cotangent)
    expected, values = compiled_definition(bucket)(layer, images, cotangent)
    # The definition of absolute values adds up every term without its sign.
    positive = absolute(layer), jnp.abs(images), jnp.abs(cotangent)
    by_maps, majorant = compiled_definition(bucket)(*positive)
    assert_within(out, values, rounding_factor(layer, grid) * majorant)

    bounds = gradient_majorant(layer, images, cotangent, windows, by_maps)
    pairs = math.prod(grid.queries) * grid.number_of_keys
    factor = rounding_factor(layer, grid, more=len(images) * pairs + 2 * grid.number_of_keys + 30)
    for (path, slope), expected_slope, bound in zip(
        jax.tree.leaves_with_path(slopes),
        jax.tree.leaves(expected),
        jax.tree.leaves(bounds),
        strict=True,
    ):
        assert_within(slope, expected_slope, factor * bound, str(path))
    if factor < 2.0**-24:
        with pytest.raises(AssertionError, match="too far"):
            assert_within(slopes[1] * (1 + 2.0**-12), expected[1], factor * bounds[1])


def gradient_majorant(layer, images, cotangent, windows, by_maps):
    """The gradient's terms added up without their signs.

    The loss is linear in X, V and O, so these get the gradient of the loss of absolute values. A
    score s_qk has the slope A(g_k - Σ A g) with |g| ≤ ḡ, the same of absolute values, and ½|Rd|²
    has the slopes (Rd)_i d_j by R_ij and RᵀRd by d, of terms that add up to (|R|a)_i a_j
    and |R|ᵀ|R|a.
    """
    grid = TokenGrid(images.shape[1:-1], layer.ring)
    plain = absolute(layer)
    weights = np.asarray(compiled_weights(layer.encoding, grid, windows))
    keys = np.asarray(add_zero_ring(jnp.abs(images), grid.ring)).reshape(len(images), -1, FEATURES)
    flat = np.abs(cotangent).reshape(len(images), -1, OUT)
    slope = np.einsum("bqo,bkf,hfe,heo->hqk", flat, keys, plain.value, plain.output, optimize=True)
    slope = weights * (slope + np.sum(weights * slope, -1, keepdims=True))
    shifts = grid.shifts[np.asarray(grid.shift_index())]
    reach = np.abs(shifts - np.asarray(layer.encoding.centers)[:, None, None])
    roots = np.abs(layer.encoding.root_precision)
    scaled = np.einsum("hij,hqkj->hqki", roots, reach)
    by_root = np.einsum("hqk,hqki,hqkj->hij", slope, scaled, reach)
    by_center = np.einsum("hqk,hij,hqki->hj", slope, roots, scaled)
    encoding = replace(layer.encoding, centers=by_center, root_precision=by_root)
    return replace(by_maps[0], encoding=encoding), by_maps[1]


def lost(layer, images, windows) -> np.ndarray:
    """The bound on what windows change, and on rounding."""
    grid = TokenGrid(images.shape[1:-1], layer.ring)
    values = np.einsum("...f,hfe,heo->h...o", images, layer.value, layer.output)
    largest = np.abs(values).reshape(HEADS, -1).max(axis=1)
    skipped = np.asarray(skipped_weight(layer.encoding, grid, windows), np.float64)
    majorant = np.asarray(dense(absolute(layer), jnp.abs(images)), np.float64)
    rounding = rounding_factor(layer, grid, images.dtype) * majorant
    return (2 * skipped @ largest + rounding) * (1 + 2.0**-9)


dense = jax.jit(partial(apply_attention, backend="dense"))


@pytest.mark.slow
def test_the_chosen_windows_change_less_than_a_rounding_of_the_weights():
    dtype = "float32"
    grid = TokenGrid((14, 13), ((0, 0), (0, 0)))
    generator = np.random.default_rng(5)
    maps = [part.astype(dtype) for part in random_maps(generator)]
    layer = layer_on(grid, gaussians(5, 2, dtype=dtype), *maps)
    images = jnp.asarray(generator.normal(size=(2, *grid.queries, FEATURES)), dtype)
    run = partial(apply_attention, backend="windowed")
    out = jax.jit(lambda images: run(layer, images))(images)
    windows = choose_windows(layer.encoding, grid)
    assert any(shift != 13 for window in windows for shift in window[0])
    skipped = skipped_weight(layer.encoding, grid)
    assert_equal(skipped, skipped_weight(layer.encoding, grid, windows))
    assert (np.asarray(skipped) <= jnp.finfo(dtype).eps / 2).all()
    assert_within(out, dense(layer, images), lost(layer, images, windows))
    everything = (((-13, 13), (-12, 12)),) * HEADS
    out = jax.jit(partial(run, windows=everything))(layer, images)
    assert_equal(skipped_weight(layer.encoding, grid, everything), np.zeros(HEADS))
    assert_within(out, dense(layer, images), lost(layer, images, everything))


@pytest.mark.slow
def test_a_window_that_is_too_small_is_noticed():
    grid = TokenGrid((14, 13), ((0, 0), (0, 0)))
    generator = np.random.default_rng(0)
    layer = layer_on(grid, gaussians(0, 2, reach=1), *random_maps(generator))
    images = jnp.asarray(generator.normal(size=(2, *grid.queries, FEATURES)))
    windows = (((-1, 1), (-1, 1)),) * HEADS
    out = jax.jit(partial(apply_attention, backend="windowed", windows=windows))(layer, images)
    assert (np.asarray(skipped_weight(layer.encoding, grid, windows)) > 2.0**-24).all()
    everything = (((-13, 13), (-12, 12)),) * HEADS
    majorant = definition(absolute(layer), jnp.abs(images), everything)
    with pytest.raises(AssertionError, match="too far"):
        assert_within(
            out,
            dense(layer, images),
            rounding_factor(layer, grid) * majorant,
        )


@pytest.mark.slow
def test_dropout_has_the_zeros_of_the_dense_back_end():
    bucket = BUCKETS[2]
    grid, windows = bucket.grid, bucket.windows
    generator = np.random.default_rng(2)
    layer = layer_on(grid, gaussians(2, len(grid.queries), reach=2), *random_maps(generator))
    images = jnp.asarray(generator.normal(size=(2, *grid.queries, FEATURES)))
    everything = (tuple((s.start, s.stop - 1) for s in grid.shift_ranges),) * HEADS
    majorant = 2 * definition(
        absolute(layer), jnp.abs(images), everything
    )  # kept weights are doubled
    bound = rounding_factor(layer, grid) * majorant

    @partial(jax.jit, static_argnames=("backend", "windows"))
    def apply(key, backend="windowed", windows=None):
        options = {"dropout_rate": 0.5, "dropout_key": key}
        with tiles_of(bucket.sizes):
            return apply_attention(layer, images, backend=backend, windows=windows, **options)

    key, other = jax.random.key(3), jax.random.key(4)
    expected = apply(key, backend="dense")
    assert_within(apply(key, windows=everything), expected, bound)
    with pytest.raises(AssertionError, match="too far"):
        assert_within(apply(other, windows=everything), expected, bound)

    pairs = jnp.arange(math.prod(grid.queries))[:, None], jnp.arange(grid.number_of_keys)
    scale = keep_scale(Dropout(0.5, key), 2, HEADS, *pairs, jnp.float64)
    bound = 2 * rounding_factor(layer, grid) * definition(absolute(layer), jnp.abs(images), windows)
    assert_within(apply(key, windows=windows), definition(layer, images, windows, scale), bound)


@pytest.mark.slow
def test_no_array_is_as_large_as_queries_times_keys():
    encoding = QuadraticEncoding(jnp.ones(1), jnp.zeros((1, 2)))
    layer = AttentionLayer(encoding, None, jnp.ones((1, 2, 2)))
    images = jnp.ones((1, 32, 32, 2))

    def largest(backend, **options):
        def loss(layer, images):
            return jnp.sum(apply_attention(layer, images, backend=backend, **options) ** 2)

        return largest_intermediate(jax.grad(loss, (0, 1)), layer, images)

    assert largest("dense") >= 1024**2
    assert largest("windowed", windows=(((-4, 4), (-4, 4)),)) < 1024**2 / 8


@pytest.mark.slow
def test_windows_make_it_work_under_jit_and_without_them_it_is_refused():
    grid = BUCKETS[2].grid
    generator = np.random.default_rng(4)
    layer = layer_on(grid, gaussians(4, 2), *random_maps(generator))
    images = jnp.asarray(generator.normal(size=(2, *grid.queries, FEATURES)))
    windows = choose_windows(layer.encoding, grid)
    run = partial(apply_attention, backend="windowed")
    expected = definition(layer, images, windows)
    bound = rounding_factor(layer, grid) * definition(absolute(layer), jnp.abs(images), windows)
    assert_within(jax.jit(partial(run, windows=windows))(layer, images), expected, bound)
    # Here the images alone are traced, and the parameters are constants of the program.
    assert_within(jax.jit(lambda images: run(layer, images))(images), expected, bound)
    with pytest.raises(ValueError, match=r"traced .*windows=convattn\.fast\.choose_windows"):
        jax.jit(run)(layer, images)
    with pytest.raises(ValueError, match="traced"):
        jax.grad(lambda layer: run(layer, images).sum())(layer)


@pytest.mark.parametrize(
    ("changes", "windows", "message"),
    [
        ({"content": ContentScores(*[jnp.ones((HEADS, 4, 2))] * 2)}, None, "has content scores"),
        (
            {"encoding": AbsoluteEncoding(jnp.ones((HEADS, 4, 2)), jnp.ones((HEADS, 4, 2)))},
            None,
            "AbsoluteEncoding are not a function of the shift",
        ),
        ({}, (((-1, 1), (0, 0)),), "there are 1 windows, but the layer has 3"),
        ({}, (((1, -1), (0, 0)),) * 3, "its smallest shift is above its largest"),
        ({}, (((2, 3), (0, 0)),) * 3, "head 0 on axis 0 .* leaves a query at the border without"),
    ],
)
def test_what_it_refuses(changes, windows, message):
    layer = replace(layer_on(BUCKETS[2].grid, gaussians(0, 2)), **changes)
    with pytest.raises(
        ValueError, match=f"(backend='windowed' cannot serve this layer|windows=.*): .*{message}"
    ):
        apply_attention(layer, jnp.ones((1, 7, 10, 4)), backend="windowed", windows=windows)
