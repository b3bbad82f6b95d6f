"""Layers on images against exact convolutions: what passes, and what is planted and must fail."""

import jax.numpy as jnp
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from strategies import seeds

import convattn as ca
from convattn_ledger import EvidenceFailed, Level
from convattn_ledger.evidence import equals_convolution, integer_kernel
from convattn_ledger.evidence import layer_runs as module


@given(
    seeds(),
    st.lists(st.integers(1, 7), min_size=1, max_size=2),
    st.integers(1, 30),
    st.integers(1, 5),
)
def test_no_kernel_leaves_the_range_of_float16(seed, size, in_channels, out_channels):
    kernel = integer_kernel(np.random.default_rng(seed), tuple(size), in_channels, out_channels)
    assert kernel.shape == (*size, in_channels, out_channels)
    assert np.abs(kernel).max() <= module.LARGEST_WEIGHT
    columns = kernel.reshape(-1, out_channels)
    for sign in (1, -1):
        assert np.maximum(sign * columns, 0).sum(0).max() <= 60
    # The largest and the smallest output: white where the sign is right, black elsewhere.
    assert float(jnp.finfo("float16").max) > 60 * 255 + 8


def test_a_kernel_uses_its_range_and_its_seed():
    kernel = integer_kernel(np.random.default_rng(0), (5, 5), 3, 4)
    assert set(np.unique(kernel)) == {-3, -2, -1, 0, 1, 2, 3}
    assert (kernel[::-1, ::-1] != kernel).any()
    assert (integer_kernel(np.random.default_rng(1), (5, 5), 3, 4) != kernel).any()
    first = integer_kernel(np.random.default_rng(0), (9, 9), 30, 2)
    assert np.maximum(first, 0).sum((0, 1, 2)).max() > 57  # the limit was met, and cut off


def test_on_whole_images(run):
    """A claim as it is made: 16 images of 32 × 32 pixels; the claims have all other layers."""
    evidence = equals_convolution("here", (3, 3), dtypes=("float16",), quick=True)
    assert (evidence.level, evidence.quick) == (Level.BOUNDED, True)
    assert "underflows to zero" in evidence.assumes
    assert evidence.check(run) == "16 images, 9 heads; float16 equal"
    exact = equals_convolution("here", (3, 3), form="exact")
    assert "4 units in the last place" in exact.assumes


def first_number(result, number):
    return result.at[(0,) * result.ndim].set(number)


@pytest.mark.slow
@pytest.mark.parametrize("form", ["limit", "exact"])
@pytest.mark.parametrize(
    ("change", "message"),
    [
        (lambda result: result.astype("float64"), r"float32: the result has dtype float64"),
        (lambda result: first_number(result, jnp.nan), r"1 of 512 entries .* at \(0, 0, 0, 0\)"),
        (lambda result: first_number(result, jnp.inf), r"1 of 512 entries .* at \(0, 0, 0, 0\)"),
        (lambda result: result[:, 1:], r"shape \(2, 7, 8, 4\)"),
        (lambda result: result[:1], r"shape \(1, 8, 8, 4\)"),
        (lambda result: result + 1000, r"512 of 512 entries"),
    ],
    ids=["dtype", "NaN", "infinity", "size", "batch", "far off"],
)
def test_a_wrong_result_fails(run, few_images, monkeypatch, form, change, message):
    apply = module.apply_attention
    monkeypatch.setattr(module, "apply_attention", lambda *args: change(apply(*args)))
    with pytest.raises(EvidenceFailed, match=message):
        equals_convolution("here", (3, 3), form=form, dtypes=("float32",)).check(run)


def test_one_unit_in_the_last_place_fails_a_limit_layer(run, few_images, monkeypatch):
    apply = module.apply_attention

    def off(layer, images):
        result = apply(layer, images)
        return result.at[1, 2, 3, 0].set(jnp.nextafter(result[1, 2, 3, 0], jnp.inf))

    monkeypatch.setattr(module, "apply_attention", off)
    with pytest.raises(EvidenceFailed, match=r"1 of 512 entries differ; at \(1, 2, 3, 0\)"):
        equals_convolution("here", (3, 3), dtypes=("float64",)).check(run)


def test_an_entry_out_of_its_bound_fails(run, few_images, monkeypatch):
    right = module.layer_error_bound
    monkeypatch.setattr(module, "layer_error_bound", lambda *args: 0 * right(*args))
    with pytest.raises(EvidenceFailed, match=r"exceed the bound; at .* the bound 0"):
        equals_convolution("here", (3, 3), form="exact", dtypes=("bfloat16",)).check(run)


def test_a_bound_may_be_reached_and_not_exceeded():
    expected, bound = np.array([8, 4]), np.array([0.5, 0.0])
    module.within("float32", jnp.array([8.5, 4.0]), expected, bound)
    for result in ([8.5, 4.0625], [8.5625, 4.0]):
        with pytest.raises(EvidenceFailed, match="1 of 2 entries exceed"):
            module.within("float32", jnp.array(result), expected, bound)


@pytest.mark.parametrize("bound", [np.array([np.nan, 1.0]), np.ones(3)])
def test_a_bound_that_is_none_fails(bound):
    with pytest.raises(EvidenceFailed, match=r"the bound is not finite|with a bound of shape"):
        module.within("float32", jnp.array([1.0, 1.0]), np.array([1, 1]), bound)


def test_expected_numbers_are_rounded_once():
    """2049 is no bfloat16; the result must be the nearest one, 2048."""
    assert module.equal("bfloat16", jnp.array([2048.0], "bfloat16"), np.array([2049]))
    for wrong in (2064.0, 2040.0):
        with pytest.raises(EvidenceFailed, match=rf"got {wrong}, expected 2048\.0"):
            module.equal("bfloat16", jnp.array([wrong], "bfloat16"), np.array([2049]))


def test_the_convolution_is_not_zero(run, few_images):
    """Otherwise a layer of zeros would pass."""
    images = module.whole_images(run)
    kernel = integer_kernel(run.rng("kernel"), (3, 3), 3, module.OUT_CHANNELS)
    assert (np.asarray(ca.conv(images, kernel)) != 0).mean() > 0.9
