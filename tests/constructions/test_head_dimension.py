import tracemalloc

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from comparison import assert_equal
from hypothesis import given
from hypothesis import strategies as st
from strategies import seeds

from convattn.constructions.conversion import conv_to_attention
from convattn.constructions.head_dimension import split_heads


@pytest.mark.slow
@given(st.just(3), st.sampled_from([2, 5]), st.just(3), st.sampled_from([1, 2, 4]), seeds())
def test_split_heads_add_up_to_the_maps_and_are_as_few_as_the_supports_allow(
    heads, width_in, width_out, head_dim, seed
):
    generator = np.random.default_rng(seed)
    supports = generator.random((heads, width_in, width_out)) < 0.4
    supports[0, 0, 0] = True
    maps = generator.integers(-9, 10, supports.shape) * supports
    origins, value, output = split_heads(jnp.asarray(maps, "float32"), supports, head_dim)
    assert value.shape == (len(origins), width_in, head_dim)
    assert output.shape == (len(origins), head_dim, width_out)
    total = np.zeros(maps.shape)
    for origin, left, right in zip(origins, np.asarray(value), np.asarray(output), strict=True):
        total[origin] += left @ right
    assert_equal(total, maps)
    narrow = [min(s.any(1).sum(), s.any(0).sum()) for s in supports]
    assert [origins.count(h) for h in range(heads)] == [-(-n // head_dim) for n in narrow]
    assert list(origins) == sorted(origins)


@pytest.mark.slow
def test_a_head_that_is_wider_than_what_is_left_is_filled_with_zeros():
    """Three coordinates in heads of two, by rows and by columns, whichever are fewer."""
    for shape in ((3, 5), (5, 3)):
        maps = jnp.arange(1.0, 16.0).reshape(1, *shape)
        origins, value, output = split_heads(maps, np.ones((1, *shape), bool), 2)
        assert origins == (0, 0)
        assert not value[1, :, 1].any()
        assert not output[1, 1].any()
        assert_equal(jnp.einsum("hif,hfo->io", value, output), maps[0])
        origins, value, output = split_heads(maps, np.ones((1, *shape), bool), 7)
        assert origins == (0,)
        assert not value[0, :, 3:].any()
        assert not output[0, 3:].any()
        assert_equal(value[0] @ output[0], maps[0])


def test_what_lies_beyond_the_tokens_is_made_last():
    """A file of a network may name any dimension, and is refused by the shapes alone."""
    supports = np.ones((50, 2, 3), bool)
    tracemalloc.start()
    try:
        _, value, output = jax.eval_shape(
            lambda maps: split_heads(maps, supports, 10**6), jnp.zeros(supports.shape)
        )
        peak = tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()
    assert (value.shape, output.shape) == ((50, 2, 10**6), (50, 10**6, 3))
    assert peak < 8 * 10**6  # of 8·50·10⁶ for the coordinates alone


def test_maps_that_are_zero_need_no_head():
    origins, value, output = split_heads(jnp.ones((2, 3, 4)), np.zeros((2, 3, 4), bool), 5)
    assert origins == ()
    assert (value.shape, output.shape) == ((0, 3, 5), (0, 5, 4))


@pytest.mark.slow
def test_entries_are_counted_before_they_are_made():
    """Five coordinates fit into one head of 2²⁷, of (5 + 5)·2²⁷ entries."""
    with pytest.raises(ValueError, match="maps of 1 heads of dimension 134217728 would hold 1,3"):
        split_heads(jnp.ones((1, 5, 5)), np.ones((1, 5, 5), bool), 2**27)
    for shape in ((1, 2**15, 1), (1, 1, 2**15)):  # one head each, and not 2¹⁵
        assert split_heads(jnp.ones(shape), np.ones(shape, bool), 1)[0] == (0,)


@pytest.mark.slow
@pytest.mark.parametrize(("exact", "heads"), [(False, 20), (True, 32)])
def test_a_patch_embedding_of_16_pixels_and_three_channels(exact, heads):
    """S.headdim: 12 + 4·1 + 4·1 = 20 heads of 64, and 12 more for the uniform head."""
    kernel = np.random.default_rng(0).integers(1, 9, (3, 3, 3, 3)).astype(np.float32)
    layer = conv_to_attention(
        kernel, patch_size=16, head_dim=64, form="exact" if exact else "limit"
    )
    assert layer.heads == heads
    assert layer.value.shape == (heads, 768, 64)
    assert layer.output.shape == (heads, 64, 768)
    full = conv_to_attention(kernel, patch_size=16, form="exact" if exact else "limit")
    assert full.heads == 9 + exact
    table = np.asarray(layer.encoding.values)
    for head, block in enumerate(np.asarray(full.output)):
        chosen = (table == np.asarray(full.encoding.values)[head]).all(axis=1)
        total = np.matmul(layer.value[chosen], layer.output[chosen]).sum(axis=0)
        assert_equal(total, block)


@pytest.mark.parametrize("head_dim", [0, -1, True])
def test_head_dimensions_that_are_none_are_refused(head_dim):
    with pytest.raises(ValueError, match=f"head_dim={head_dim}, but expected an integer ≥ 1"):
        split_heads(jnp.ones((1, 2, 2)), np.ones((1, 2, 2), bool), head_dim)


def test_the_number_of_heads_does_not_lengthen_the_program():
    """A head at a time, a network of narrow heads takes minutes to trace."""
    supports = np.tril(np.ones((2, 8, 8), bool))
    supports[1, 4:] = False

    def length(head_dim):
        split = jax.make_jaxpr(lambda maps: split_heads(maps, supports, head_dim)[1:])
        return len(split(jnp.ones((2, 8, 8))).eqns)

    assert length(1) <= length(2) == length(8)
