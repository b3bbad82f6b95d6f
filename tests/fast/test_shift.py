"""The shift back end against dense: the same numbers, and never a matrix of queries and keys."""

from dataclasses import replace
from functools import partial
from itertools import product
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from comparison import assert_equal, assert_within, gamma
from fast.programs import largest_intermediate
from jax import Array

import convattn as ca
from convattn.encodings.bias import BiasEncoding
from convattn.encodings.enumerated import EnumeratedEncoding
from convattn.encodings.layer import AttentionLayer, ContentScores
from convattn.encodings.mixture import MixtureEncoding
from convattn.encodings.scalar import ScalarEncoding
from convattn.fast import AttentionOptions
from convattn.fast.application import apply_attention
from convattn.fast.dense import softmax_weights
from convattn.fast.shift import back_end
from convattn.fast.shift.back_end import offset_encoding, refusal, work
from convattn.fast.shift.mixed_heads import border_queries, interior
from convattn.fast.shift.shifted_products import as_convolution, as_product, shifted_products
from convattn.operators.shifts import TokenGrid

OFFSETS = ((-1, 0), (0, 2), (1, -1))
WIDE_RING = ((1, 1), (1, 2))
# name: (grid of tokens, ring). The offsets are all seen, some seen, some never, all by nobody.
GRIDS = {
    "all seen": ((4, 5), WIDE_RING),
    "wider ring": ((3, 4), ((2, 1), (1, 4))),
    "one side": ((4, 6), ((0, 3), (1, 0))),
    "bare": ((5, 6), ((0, 0), (0, 0))),
    "one row": ((1, 6), ((0, 0), (0, 0))),
    "one pixel": ((1, 1), ((0, 0), (0, 0))),
    "no other key": ((1, 1), ((0, 1), (1, 0))),
}


def random(seed: int, *shape: int, dtype: Any = np.float64) -> Array:
    return jnp.asarray(np.random.default_rng(seed).normal(size=shape), dtype)


ENCODINGS = {
    "bias": BiasEncoding(2 * random(1, 4, 3), None, OFFSETS),
    "leak": BiasEncoding(random(2, 4, 3), jnp.asarray(0.3), OFFSETS),
    "equal scores": BiasEncoding(jnp.zeros((4, 3)), None, OFFSETS),
    "mixture": MixtureEncoding(jnp.abs(random(3, 4, 3)), OFFSETS),
    "enumerated": EnumeratedEncoding(
        jnp.abs(random(4, 4)), random(5, 4), OFFSETS, codes=(2, 0, 1), spare=3
    ),
    "scalar": ScalarEncoding(random(6, 4), random(7, 3), None, OFFSETS),
    "scalar limit": ScalarEncoding(jnp.arange(1.0, 5.0), random(7, 3), jnp.asarray(4.0), OFFSETS),
    "far background": BiasEncoding(jnp.full((4, 3), -1024.0) + random(8, 4, 3), None, OFFSETS),
}
MAPS = {
    "both": (5, 3),
    "narrow": (5, 1),
    "output": (None, 3),
    "value": (3, None),
    "none": (None,) * 2,
}
FEATURES = 5


def make_layer(encoding: Any, maps: str, ring: Any) -> AttentionLayer:
    width, out = MAPS[maps]
    value = None if width is None else random(10, 4, FEATURES, width)
    output = None if out is None else random(11, 4, width or FEATURES, out)
    return AttentionLayer(encoding, value, output, ring=ring)


@partial(jax.jit, static_argnums=1)
def majorants(layer: AttentionLayer, grid: TokenGrid, images: Array, cotangent: Array) -> Any:
    """What bounds the rounding of values, and of gradients with respect to layer and images.

    With A the weights, c the weight of a key that is no offset and W_h the maps, both back ends sum
    terms whose magnitudes add up to at most (A + 2c)|X||W|, and so do the gradients with respect to
    X and the maps. Of the gradient with respect to a score, dense sums A(|dA| + Σ A|dA|) and shift
    p_δ(D_δ + Σ |a|D + c Σ_k D_k) with D_k = |G_q||W_h||X_k|: with D* the largest D_k each query
    adds at most A·D*·C, C = 2 + (N + T)/(N - n), and D*·C to the score elsewhere. Parameters
    follow by |∂s/∂θ|, and gains by Σ_q D* |∂g/∂θ|.
    """
    encoding, keys = layer.encoding, grid.number_of_keys
    weights = softmax_weights(layer, grid, None)
    shifts = grid.key_positions[None] - grid.query_positions[:, None]
    at = {offset: (shifts == offset).all(-1) for offset in OFFSETS}
    other = ~np.any(list(at.values()), axis=0)
    everywhere = jnp.where(other, weights, 0).max(axis=-1, keepdims=True)
    gains = encoding.head_gains(keys)
    gains = jnp.ones(layer.heads) if gains is None else gains
    positive = jax.tree.map(jnp.abs, (images, layer.value, layer.output))

    def apply(raised: Any) -> Array:
        tokens = jnp.pad(raised[0], [(0, 0), *grid.ring, (0, 0)]).reshape(len(images), keys, -1)
        attended = jnp.einsum("h,hqk,bkd->bqhd", jnp.abs(gains), weights + 2 * everywhere, tokens)
        each = attended
        for part in raised[1:]:
            each = each if part is None else jnp.einsum("bqhd,hdo->bqho", each, part)
        return each.sum(axis=2).reshape(len(images), *grid.queries, -1)

    values, pullback = jax.vjp(apply, positive)
    linear = pullback(jnp.abs(cotangent))[0]
    maps = jnp.stack([jnp.eye(FEATURES)] * layer.heads)
    for part in positive[1:]:
        maps = maps if part is None else jnp.einsum("hdo,hoe->hde", maps, part)
    cotangents = jnp.abs(cotangent).reshape(len(images), -1, cotangent.shape[-1])
    reach = jnp.einsum(
        "bqo,hdo,bd->bhq", cotangents, maps, positive[0].max(axis=tuple(range(1, images.ndim - 1)))
    )
    largest = reach.sum(axis=0)
    rest = np.maximum(other.sum(axis=-1), 1)
    factor = 2 + (keys + len(OFFSETS)) / rest * (other.sum(axis=-1) > 0)
    per_query = largest * factor[None] * jnp.abs(gains)[:, None]
    scores = [(jnp.where(at[o], weights, 0).sum(-1) * per_query).sum(-1) for o in OFFSETS]
    scores.append(per_query.sum(-1))
    places = np.array([*OFFSETS, (9, 9)])
    slopes = jax.jacobian(lambda e: e.shift_scores(places, keys))(encoding)
    steps = jax.jacobian(lambda e: e.head_gains(keys) if e.head_gains(keys) is not None else gains)(
        encoding
    )

    def through(slope: Array, step: Array) -> Array:
        total = jnp.tensordot(jnp.stack(scores, axis=1), jnp.abs(slope), 2)
        return total + jnp.tensordot(largest.sum(-1), jnp.abs(step), 1)

    return values, (jax.tree.map(through, slopes, steps), *linear)


def counted(layer: AttentionLayer, grid: TokenGrid) -> int:
    """The lengths of all sums in a row, and 64 roundings of exp, quotients and their arguments.

    The argument of exp is rounded once, which counts as often as scores are apart.
    """
    table = layer.encoding.shift_scores(np.array([*OFFSETS, (9, 9)]), grid.number_of_keys)
    spread = int(np.ceil(np.ptp(np.asarray(table), axis=1).max()))
    sizes = [part.size for part in (layer.value, layer.output) if part is not None]
    return 3 * grid.number_of_keys + sum(sizes) + 4 * spread + 64


def values_and_gradients(
    backend: str, layer: AttentionLayer, images: Array, cotangent: Array
) -> Any:
    @jax.jit
    def both(encoding: Any, x: Array, value: Any, output: Any) -> Any:
        def apply(encoding: Any, x: Array, value: Any, output: Any) -> Array:
            changed = replace(layer, encoding=encoding, value=value, output=output)
            return apply_attention(changed, x, backend=backend)

        result, pullback = jax.vjp(apply, encoding, x, value, output)
        return result, pullback(cotangent)

    return both(layer.encoding, images, layer.value, layer.output)


# Every encoding, arrangement of maps and grid, the leaky bias with most of them, and strides.
CASES = [(name, "output", "one side", (1, 1)) for name in ENCODINGS]
CASES += [
    ("leak", "both", "all seen", (1, 1)),
    ("leak", "narrow", "bare", (1, 1)),
    ("scalar", "value", "one row", (1, 1)),
    ("bias", "none", "wider ring", (1, 1)),
    ("bias", "output", "one pixel", (1, 1)),
    ("bias", "output", "no other key", (1, 1)),
    ("leak", "output", "one side", (2, 3)),
    ("leak", "both", "all seen", (2, 2)),
    ("scalar", "narrow", "bare", (2, 1)),
    ("bias", "none", "wider ring", (7, 9)),
]


@pytest.mark.slow
@pytest.mark.parametrize(("name", "maps", "where", "stride"), CASES)
def test_values_and_all_gradients_are_those_of_dense(
    name: str, maps: str, where: str, stride: tuple[int, int]
) -> None:
    """Of dense at stride 1, of whose result the stride is taken, with zero cotangents elsewhere."""
    space, ring = GRIDS[where]
    layer, grid = make_layer(ENCODINGS[name], maps, ring), TokenGrid(*GRIDS[where])
    images = random(12, 2, *space, FEATURES)
    taken = (slice(None), *(slice(None, None, step) for step in stride))
    out = apply_attention(layer, images, backend="dense").shape[-1]
    cotangent = random(13, 2, *space, out)
    cotangent = jnp.zeros_like(cotangent).at[taken].set(cotangent[taken])
    actual = values_and_gradients("shift", replace(layer, stride=stride), images, cotangent[taken])
    values, gradients = values_and_gradients("dense", layer, images, cotangent)
    bounds = majorants(layer, grid, images, cotangent)
    accuracy = 2 * gamma(counted(layer, grid), np.float64)
    expected, bounds = (values[taken], gradients), (bounds[0][taken], bounds[1])
    assert jax.tree.structure(actual) == jax.tree.structure(expected)
    assert actual[0].shape == (2, *(-(-n // s) for n, s in zip(space, stride, strict=True)), out)
    for one, two, bound in zip(*map(jax.tree.leaves, (actual, expected, bounds)), strict=True):
        assert_within(one, two, accuracy * np.asarray(bound), f"{name}, {maps}, {where}")


@pytest.mark.parametrize("border", ["zeros", "none"])
@pytest.mark.parametrize("stride", [2, 3])
@pytest.mark.quick(2)
def test_queries_that_the_stride_leaves_out_are_not_computed(stride: int, border: str) -> None:
    """No value of the program has as many numbers as the result at stride 1."""
    layer = ca.conv_to_attention(
        np.ones((3, 3, 1, 64), np.float32), stride=stride, padding="SAME_TORCH"
    )
    images = jnp.ones((1, 32, 31, 1), jnp.float32)
    run = partial(apply_attention, backend="shift", border=border)
    assert largest_intermediate(run, layer, images) < 32 * 31 * 64 / 3
    unstrided = replace(layer, stride=(1, 1))
    assert largest_intermediate(run, unstrided, images) >= 32 * 31 * 64
    grid = TokenGrid((32, 31), layer.ring)
    strided = tuple(range(0, side, stride) for side in grid.queries)
    some, every = (
        work(layer, grid, 1, 1, AttentionOptions(queries=each)).products for each in (strided, None)
    )
    assert some < every / 3


@pytest.mark.slow
def test_the_bounds_are_tight_enough_to_see_a_wrong_leak() -> None:
    layer, grid = make_layer(ENCODINGS["leak"], "output", WIDE_RING), TokenGrid((4, 5), WIDE_RING)
    images, cotangent = random(12, 2, 4, 5, FEATURES), random(13, 2, 4, 5, 3)
    wrong = replace(layer.encoding, uniform_weight=layer.encoding.uniform_weight * (1 + 1e-10))
    actual = apply_attention(replace(layer, encoding=wrong), images, backend="shift")
    expected = apply_attention(layer, images, backend="dense")
    bound = (
        2 * gamma(counted(layer, grid), np.float64) * majorants(layer, grid, images, cotangent)[0]
    )
    with pytest.raises(AssertionError, match="expected within"):
        assert_within(actual, expected, bound)


@pytest.mark.slow
@pytest.mark.parametrize("way", ["taps", "heads", "apart"])
@pytest.mark.parametrize("narrow", ["bfloat16", "float16"])
def test_at_the_highest_precision_narrow_tokens_are_as_good_as_wide_ones(
    monkeypatch: pytest.MonkeyPatch, way: str, narrow: str
) -> None:
    """Bit by bit, in the box and at the border: the tokens are widened before anything else."""
    monkeypatch.setattr(back_end, "cheapest_way", lambda *_: way)
    layer = make_layer(ENCODINGS["leak"], "both", ((0, 0), (0, 0)))
    layer = jax.tree.map(lambda part: part.astype("float32"), layer)
    tokens, grid = random(12, 2, 5, 6, FEATURES, dtype=narrow), TokenGrid((5, 6), layer.ring)
    result = back_end.attend(layer, grid, tokens, AttentionOptions())
    expected = back_end.attend(layer, grid, tokens.astype("float32"), AttentionOptions())
    assert result.dtype == np.float32
    assert_equal(result, expected)


@pytest.mark.parametrize("narrow", ["bfloat16", "float16"])
def test_the_sum_over_all_tokens_is_taken_in_float32(narrow: str) -> None:
    """2^11 + 1 is no number of either dtype."""
    ones = jnp.ones((1, 3, 683, 1, 2), narrow)
    total = back_end.sum_of_tokens(ones, 2, np.dtype("float32"))
    assert total.dtype == np.float32
    assert_equal(total, np.full((1, 1, 2), 3 * 683))


@pytest.mark.slow
@pytest.mark.parametrize("offsets", [((0, 0),), ((-2, 1), (-2, 2), (0, 1), (0, 2))])
def test_the_convolution_and_the_product_sum_the_same(offsets: Any) -> None:
    generator = np.random.default_rng(0)
    tokens = jnp.asarray(generator.integers(-4, 5, (2, 5, 4, 3)), jnp.float32)
    taps = jnp.asarray(generator.integers(-4, 5, (len(offsets), 3, 2)), jnp.float32)
    boxes = ((0, 5), (0, 4)), ((1, 4), (2, 3)), ((0, 2), (4, 6)), ((9, 11), (0, 4))
    steps = (1, 1), (2, 3)
    for box in [
        tuple(map(range, *zip(*box, strict=True), step)) for box in boxes for step in steps
    ]:
        rest = (tokens, taps, offsets, box, np.dtype("float32"), "highest")
        assert as_product(*rest).shape == (2, *map(len, box), 2)
        assert_equal(as_convolution(*rest), as_product(*rest))
        assert_equal(shifted_products(*rest), as_product(*rest))
    with pytest.raises(ValueError, match="fill no box"):
        as_convolution(tokens, taps, (*offsets[:-1], (3, 7), (4, 9)), *rest[3:])


def test_box_and_border_part_the_queries() -> None:
    for space, ring in GRIDS.values():
        grid = TokenGrid(space, ring)
        for stride in (None, (2, 1), (3, 2), (9, 9)):
            queries = tuple(map(range, (0, 1), space, stride or (1, 1)))
            box = interior(grid, OFFSETS, queries)
            inside, border = list(product(*box)), map(tuple, border_queries(queries, box).tolist())
            every = product(*queries)
            assert sorted([*inside, *border]) == list(every)
            is_inside = [
                all(
                    -low <= q + step < size + high
                    for q, step, size, (low, high) in zip(query, offset, space, ring, strict=True)
                )
                for query in inside
                for offset in OFFSETS
            ]
            assert all(is_inside)
    assert interior(TokenGrid((4, 5), WIDE_RING), OFFSETS) == (range(4), range(5))
    assert interior(TokenGrid((9, 9), ((0, 0), (0, 0))), OFFSETS, (range(0, 9, 2),) * 2) == (
        range(2, 8, 2),
        range(2, 7, 2),
    )


@pytest.mark.slow
@pytest.mark.parametrize("border", ["zeros", "none"])
def test_no_matrix_of_queries_and_keys_is_formed(border: str) -> None:
    layer = ca.conv_to_attention(np.ones((3, 3, 2, 3), np.float32))
    images = jnp.ones((1, 40, 30, 2), jnp.float32)

    def largest(backend: str) -> int:
        def loss(layer: AttentionLayer, x: Array) -> Array:
            return apply_attention(layer, x, border=border, backend=backend).sum()

        return largest_intermediate(jax.value_and_grad(loss, argnums=(0, 1)), layer, images)

    assert largest("shift") < 1200 * 1200 / 10
    assert largest("dense") >= 1200 * 1200


def test_what_it_refuses_and_that_auto_goes_elsewhere() -> None:
    images = jnp.ones((1, 4, 4, 2))
    layer = ca.conv_to_attention(np.ones((3, 3, 2, 2), np.float32))
    quadratic = ca.conv_to_attention(np.ones((3, 3, 2, 2), np.float32), encoding="quadratic")
    with pytest.raises(ValueError, match="are not a sparse offset table"):
        apply_attention(quadratic, images, backend="shift")
    with pytest.raises(ValueError, match="are not a sparse offset table"):
        offset_encoding(quadratic)
    content = ContentScores(jnp.ones((10, 2, 3)), jnp.ones((10, 2, 3)))
    with pytest.raises(ValueError, match="content scores"):
        apply_attention(replace(layer, content=content), images, backend="shift")
    with pytest.raises(ValueError, match="never formed; use dense"):
        apply_attention(
            layer, images, backend="shift", dropout_rate=0.5, dropout_key=jax.random.key(0)
        )
    other_rank = replace(layer, encoding=BiasEncoding(jnp.ones((10, 1)), None, ((0,),)))
    assert "axes of the grid" in str(
        refusal(other_rank, TokenGrid((4, 4), WIDE_RING), AttentionOptions())
    )
    assert refusal(layer, TokenGrid((4, 4), layer.ring), AttentionOptions()) is None
