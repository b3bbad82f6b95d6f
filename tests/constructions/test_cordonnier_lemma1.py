import jax.numpy as jnp
import numpy as np
import pytest
from comparison import assert_equal
from constructions.slow_definitions import slow_conv
from hypothesis import given
from hypothesis import strategies as st
from strategies import seeds, small_integers

from convattn.constructions.cordonnier_lemma1 import value_maps_for_bijection
from convattn.operators.shifts import from_query_minus_key, kernel_shifts

SHIFTS = kernel_shifts((3, 2), (1, 1))


def hard_attention_layer(images, heads_look_at, maps):
    """Each head gives the key at its shift weight one: Σ_h X_(q + f'(h)) W^(h), zeros outside."""
    _, rows, columns, _ = images.shape
    out = np.zeros((*images.shape[:-1], maps.shape[-1]))
    for (down, right), block in zip(heads_look_at, maps, strict=True):
        for y in range(rows):
            for x in range(columns):
                if 0 <= y + down < rows and 0 <= x + right < columns:
                    out[:, y, x] += images[:, y + down, x + right] @ block
    return out


@given(st.permutations(range(len(SHIFTS))), seeds())
def test_heads_in_any_order_give_the_convolution(order, seed):
    generator = np.random.default_rng(seed)
    images, kernel = small_integers(generator, 2, 4, 5, 2), small_integers(generator, 3, 2, 2, 3)
    look_at = [SHIFTS[index] for index in order]
    maps = value_maps_for_bijection(jnp.asarray(kernel).reshape(6, 2, 3), SHIFTS, look_at)
    output = hard_attention_layer(images, look_at, np.asarray(maps))
    assert_equal(output, slow_conv(images, kernel))


def test_heads_that_look_the_papers_way_without_translation_are_wrong():
    """f(h) = q - k in the paper: taken for k - q it gives the flipped kernel."""
    generator = np.random.default_rng(0)
    shifts = kernel_shifts((3, 3), (1, 1))
    images, kernel = small_integers(generator, 1, 4, 5, 1), small_integers(generator, 3, 3, 1, 1)
    maps = jnp.asarray(kernel).reshape(9, 1, 1)
    papers = [from_query_minus_key(shift) for shift in shifts]  # f of the head for each shift
    right = value_maps_for_bijection(maps, shifts, [from_query_minus_key(f) for f in papers])
    assert_equal(hard_attention_layer(images, shifts, np.asarray(right)), slow_conv(images, kernel))
    wrong = value_maps_for_bijection(maps, shifts, papers)
    output = hard_attention_layer(images, shifts, np.asarray(wrong))
    assert_equal(output, slow_conv(images, kernel[::-1, ::-1]))
    with pytest.raises(AssertionError, match="out"):
        assert_equal(output, slow_conv(images, kernel))


@pytest.mark.parametrize(
    "look_at",
    [SHIFTS[:-1], (*SHIFTS, SHIFTS[0]), (*SHIFTS[:-1], SHIFTS[0]), (*SHIFTS[:-1], (5, 5)), ()],
    ids=["one missing", "one more", "one twice", "one elsewhere", "none"],
)
def test_what_is_no_bijection_is_refused(look_at):
    with pytest.raises(ValueError, match=r"exactly once \(C20 Lemma 1 asks for a bijection\)"):
        value_maps_for_bijection(jnp.zeros((6, 1, 1)), SHIFTS, look_at)
