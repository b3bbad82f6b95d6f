"""q·r_δ against explicit loops, exactly, and what does not fit is refused."""

from dataclasses import replace
from itertools import product

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from comparison import assert_equal, assert_within, gamma
from strategies import small_integers

import convattn as ca
from convattn.encodings import BiasEncoding
from convattn.encodings.layer import AttentionLayer, ContentScores
from convattn.networks.weights.formats import WeightsRefused
from convattn.operators.relative_content import relative_scores
from convattn.operators.shifts import TokenGrid
from convattn_ledger.structures.transformer import as_attention_convolution

BATCH, HEADS, FEATURES = 2, 3, 5
GRIDS = (
    (TokenGrid((3, 4), ((1, 0), (0, 2))), (2, 3)),  # H ≠ W, and a ring of another size on each side
    (TokenGrid((2, 5), ((0, 0), (0, 0))), (3, 1)),
    (TokenGrid((1, 3), ((2, 1), (0, 0))), (1, 1)),
    (TokenGrid((6,), ((1, 2),)), (4,)),
)


def integers(generator, *shape):
    return jnp.asarray(small_integers(generator, *shape), jnp.float64)


def tables_of(generator, grid, widths, extra=1):
    """For more tokens than there are, so that a row that is counted from the wrong end is seen."""
    return tuple(
        integers(generator, 2 * (n + extra + axis) - 1, width)
        for axis, (n, width) in enumerate(zip(grid.keys, widths, strict=True))
    )


def loops(tables, queries, grid, widths):
    """q_a·table_a[k_a - q_a + reach], one query, key and axis at a time."""
    ends = np.cumsum((0, *widths))
    shape = (*queries.shape[:3], grid.number_of_keys)
    total = np.zeros(shape)
    for b, h in np.ndindex(shape[:2]):
        pairs = product(enumerate(grid.query_positions), enumerate(grid.key_positions))
        for (number, query), (key_number, key) in pairs:
            for axis, table in enumerate(tables):
                vector = np.asarray(table)[(len(table) - 1) // 2 + key[axis] - query[axis]]
                block = queries[b, h, number, ends[axis] : ends[axis + 1]]
                total[b, h, number, key_number] += block @ vector
    return total


@pytest.mark.slow
@pytest.mark.parametrize(("grid", "widths"), GRIDS, ids=str)
def test_the_scores_are_those_of_the_loops(grid, widths):
    rng = np.random.default_rng(1)
    tables = tables_of(rng, grid, widths)
    queries = integers(rng, BATCH, HEADS, int(np.prod(grid.queries)), sum(widths))
    expected = loops(tables, np.asarray(queries), grid, widths)
    actual = relative_scores(tables, queries, grid)
    assert_equal(actual, expected)
    turned = tuple(table[::-1] for table in tables)  # planted: δ = query - key
    with pytest.raises(AssertionError, match="entries differ"):
        assert_equal(relative_scores(turned, queries, grid), expected)


def layer_of(rng, grid, widths, **changes):
    draw = [integers(rng, HEADS, FEATURES, sum(widths)) for _ in range(2)]
    draw += [integers(rng, HEADS, sum(widths)) for _ in range(2)]
    tables = tables_of(rng, grid, widths)
    content = ContentScores(*draw, **{"scaled": False, "tables": tables, **changes})
    axes = len(grid.queries)
    encoding = BiasEncoding(jnp.zeros((HEADS, 1)), None, ((0,) * axes,))
    ones = (1,) * axes
    return AttentionLayer(encoding, None, None, None, content, ones, ones, ones, grid.ring)


@pytest.mark.parametrize(("grid", "widths"), GRIDS)
@pytest.mark.quick(1)
def test_content_scores_are_the_formula(grid, widths):
    """(X_q Q + a)·(X_k K + c) + (X_q Q + a)·r, over the root of the key features where scaled."""
    rng = np.random.default_rng(3)
    content = layer_of(rng, grid, widths).content
    keys = integers(rng, BATCH, grid.number_of_keys, FEATURES)
    query_keys = np.ravel_multi_index(tuple(grid.query_positions.T), grid.keys)
    left = np.einsum("bqd,hde->bhqe", keys[:, query_keys], content.query)
    left = left + np.asarray(content.query_bias)[:, None]
    right = np.einsum("bkd,hde->bhke", keys, content.key) + np.asarray(content.key_bias)[:, None]
    expected = np.einsum("bhqe,bhke->bhqk", left, right) + loops(content.tables, left, grid, widths)
    assert_equal(content.scores(keys[:, query_keys], keys, grid), expected)
    scaled = replace(content, scaled=True).scores(keys[:, query_keys], keys, grid)
    expected = expected / np.sqrt(sum(widths))
    assert_within(scaled, expected, 2 * gamma(2, "float64") * np.abs(expected))  # root, quotient


@pytest.mark.slow
@pytest.mark.parametrize("backend", ["dense", "chunked", "dot_product"])
def test_a_table_that_is_too_small_is_refused(backend):
    grid, widths = GRIDS[0]
    layer = layer_of(np.random.default_rng(5), grid, widths)
    layer = jax.tree.map(lambda part: part.astype(jnp.float32), layer)
    images = jnp.ones((1, 3, 4, FEATURES), jnp.float32)
    ca.apply_attention(layer, images, backend=backend)
    wide = replace(layer, ring=((0, 0), (0, 6)))
    with pytest.raises(ValueError, match=r"axis 1 of the image has shifts up to 9, but its table"):
        ca.apply_attention(wide, images, backend=backend)


def test_tables_that_do_not_fit_are_refused():
    grid, widths = GRIDS[0]
    layer = layer_of(np.random.default_rng(6), grid, widths)
    images = jnp.ones((1, 3, 4, FEATURES))
    one = replace(layer.content, tables=layer.content.tables[:1])
    wide = replace(layer.content, tables=(layer.content.tables[0],) * 2)
    for content in (one, wide):
        with pytest.raises(ValueError, match="one for each of the 2 axes, with 5 features in all"):
            ca.apply_attention(replace(layer, content=content), images)
    with pytest.raises(ValueError, match="grid=None"):
        layer.content.scores(images.reshape(1, 12, -1), images.reshape(1, 12, -1))
    with pytest.raises(ValueError, match="tables"):
        as_attention_convolution(layer.content, jnp.ones((3, 5, 2)), jnp.ones((3, 2, 5)))


def test_a_file_from_before_there_were_tables_is_read():
    from convattn.networks.weights.files import WeightsFile
    from convattn.networks.weights.stored_layer import layer_arrays, layer_metadata, restore_layer

    grid, widths = GRIDS[0]
    layer = layer_of(np.random.default_rng(8), grid, widths, tables=None)
    layer = replace(layer, output=jnp.ones((3, 5, 2)))
    metadata = layer_metadata(layer)
    assert '"tables": null' in metadata["layer"]
    metadata["layer"] = metadata["layer"].replace(', "tables": null', "")
    assert "tables" not in metadata["layer"]
    assert restore_layer(WeightsFile("old", layer_arrays(layer), metadata)).content.tables is None
    arrays = layer_arrays(layer)
    del arrays["content.query_bias"]  # planted: nothing else may be missing
    with pytest.raises(WeightsRefused, match="query_bias"):
        restore_layer(WeightsFile("old", arrays, metadata))


@pytest.mark.parametrize(
    "spoilt",
    [
        lambda rows, columns: (rows[:-1], columns),
        lambda rows, columns: (rows, columns[:0]),
        lambda rows, columns: (rows[:, 0], columns),
        lambda rows, columns: [rows, columns],
        lambda rows, columns: jnp.stack([rows, rows]),
    ],
    ids=["even", "none", "vector", "list", "array"],
)
@pytest.mark.parametrize("backend", ["dense", "chunked", "dot_product"])
def test_tables_of_another_form_are_refused(spoilt, backend):
    """Tables for more tokens than there are, so that a row less would pass for all of them."""
    tables = (jnp.ones((11, 2), jnp.float32),) * 2
    silent = BiasEncoding(jnp.zeros((1, 1), jnp.float32), None, ((0, 0),))
    images = jnp.ones((1, 3, 2, 4), jnp.float32)

    def apply(tables):
        content = ContentScores(*[jnp.ones((1, 4, 4), jnp.float32)] * 2, tables=tables)
        layer = AttentionLayer(silent, None, None, content=content)
        return jax.eval_shape(lambda: ca.apply_attention(layer, images, backend=backend))

    assert apply(tables).shape == images.shape
    with pytest.raises(ValueError, match="expected a tuple with"):
        apply(spoilt(*tables))
