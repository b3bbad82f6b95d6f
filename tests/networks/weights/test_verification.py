"""What a stored layer is compared with, and how far it may be from that."""

from dataclasses import replace

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from bounds.rounding_formula import RELATIVE, SINGLE
from comparison import assert_equal, assert_within
from roundings import gamma

import convattn as ca
from convattn.bounds.majorant import majorant_layer
from convattn.bounds.rounding import relative_error
from convattn.bounds.score_error import score_error
from convattn.bounds.two_layers import two_layers_bound
from convattn.constructions.linear_map import linear_map
from convattn.networks.recovered_kernel import recovery_size, uniform_part
from convattn.networks.weights import converted_layer
from convattn.networks.weights.verification import (
    Reference,
    _nothing_rounds,
    _own_rounding,
    on_large_image,
    reference,
    reference_of_two,
    rounding_tolerance,
)

KERNEL = np.arange(-4, 8, dtype=np.float32).reshape(3, 2, 2)
BIAS = np.array([1.0, -2.0], np.float32)


def test_the_convolution_in_float64_rounds_once_for_each_product_and_twice_more() -> None:
    """γ_n of n = 3·2 + 2, inflated by 2⁻²⁰; the formula in another order rounds a few times."""
    size, unit = np.array([1.0, 3.0]), 2.0**-53
    expected = 8 * unit / (1 - 8 * unit) * size * (1 + 2.0**-20)
    assert_within(_own_rounding(KERNEL, size), expected, 1e-12 * expected)


def test_nothing_rounds_of_integers_that_the_maps_hold() -> None:
    """Up to 2²⁴ in float32 and 2⁸ in bfloat16; of fractions, means and scalar scores something."""
    layer = ca.conv_to_attention(KERNEL, BIAS, form="limit")
    most = np.array([2.0**24])
    assert _nothing_rounds(layer, KERNEL, BIAS, most)
    assert _nothing_rounds(layer, KERNEL, None, most)
    assert not _nothing_rounds(layer, KERNEL, BIAS, most + 1)
    assert not _nothing_rounds(layer, KERNEL + 0.5, BIAS, most)
    assert not _nothing_rounds(layer, KERNEL, BIAS + 0.5, most)
    narrow = replace(layer, output=layer.output.astype(jnp.bfloat16))  # beside a wider bias
    assert _nothing_rounds(narrow, KERNEL, BIAS, np.array([2.0**8]))
    assert not _nothing_rounds(narrow, KERNEL, BIAS, np.array([2.0**8 + 1]))
    for padding, whole in (("EDGE", True), ("MEAN", False)):
        padded = ca.conv_to_attention(KERNEL, BIAS, form="limit", padding=padding)
        assert _nothing_rounds(padded, KERNEL, BIAS, most) is whole


def test_a_bound_that_zeros_would_meet_does_not_pass() -> None:
    """Scores of 1 - 10⁻⁷ leak leave 10⁷ times the roundoff: the bound exceeds the outputs."""
    layer = ca.conv_to_attention(KERNEL, BIAS, uniform_weight=1 - 2.0**-22)
    case = reference(layer, KERNEL, BIAS, (6,))
    compared = case.compare("zeros", lambda images: jnp.zeros(case.expected.shape))
    assert compared.error <= compared.bound
    assert not compared.passed
    near = case.compare("conv", lambda images: jnp.asarray(case.expected, jnp.float32))
    assert near.passed


@pytest.mark.slow
def test_the_reference_is_the_convolution_with_the_layer_s_stride_and_ring() -> None:
    layer = ca.conv_to_attention(KERNEL, BIAS, form="limit", stride=2, padding="CIRCULAR")
    case = reference(layer, KERNEL, BIAS, (6,), seed=3)
    filled = np.pad(case.images.astype(np.float64), [(0, 0), (1, 1), (0, 0)], "wrap")
    expected = sum(filled[:, tap : tap + 6] @ KERNEL[tap] for tap in range(3)) + BIAS
    assert_equal(case.expected, expected[:, ::2])
    assert case.equality
    assert_equal(case.bound, 0 * case.expected)


@pytest.mark.slow
def test_rounding_accounts_for_the_mean_of_taps_and_for_the_bound_of_exact_heads() -> None:
    """γ_(n + 1) + u of n pixels of the result, and 2ρ of the norm of what the heads do to
    magnitudes."""
    for stride, pixels in ((2, 3), (1, 5)):
        mean = gamma(pixels + 1, SINGLE) + SINGLE
        limit = ca.conv_to_attention(KERNEL, form="limit", stride=stride)
        assert rounding_tolerance(limit, KERNEL, (5,)) == pytest.approx(mean, rel=RELATIVE, abs=0)
    layer = ca.conv_to_attention(KERNEL, uniform_weight=0.25)
    grid = layer.token_grid((5,))
    scores = score_error(layer.encoding, grid)
    exponent = scores.absolute + SINGLE * (scores.range + 2 * scores.absolute)
    rho = relative_error(layer, grid, scores, exponent, np.float32, np.float32, False)
    with jax.enable_x64(True):
        absolute = jax.tree.map(jnp.asarray, majorant_layer(layer, KERNEL, None))
        sizes = [
            np.linalg.norm(np.asarray(linear_map(each, (5,)), float)) for each in (absolute, layer)
        ]
    expected = 2 * rho * sizes[0] / sizes[1] + mean
    assert rounding_tolerance(layer, KERNEL, (5,)) == pytest.approx(expected, rel=RELATIVE, abs=0)


@pytest.mark.slow
def test_where_no_tolerance_is_derived() -> None:
    scalar = ca.conv_to_attention(KERNEL, encoding="scalar", form="limit")
    with pytest.raises(ValueError, match="the limit form of a scalar encoding"):
        rounding_tolerance(scalar, KERNEL, (5,))
    maps = jnp.zeros((4, 2, 1), jnp.float32)
    content = replace(ca.conv_to_attention(KERNEL), content=ca.ContentScores(maps, maps))
    with pytest.raises(ValueError, match="the layer has content scores"):
        rounding_tolerance(content, KERNEL, (5,))


@pytest.mark.slow
def test_two_layers_may_be_off_by_their_bound_and_by_the_rounding_of_the_convolution() -> None:
    kernel = np.arange(-4, 8, dtype=np.float32).reshape(3, 2, 1, 2)
    layers = ca.conv_to_two_layers(kernel, form="limit")
    case = reference_of_two(layers, kernel, None, (4, 5))
    size = np.asarray(ca.conv(np.abs(case.images.astype(np.float64)), np.abs(kernel)))
    bound = two_layers_bound(layers, case.images) + _own_rounding(kernel, size)
    assert_equal(case.bound, bound)
    assert not case.equality


def test_a_comparison_passes_within_a_finite_bound() -> None:
    """Equal to the bound passes; one entry further, or any bound that is infinite, does not."""
    zeros = np.zeros((1, 2, 2))
    bound = np.array([[[0.5, 1], [2, 4]]])
    case = Reference(zeros[..., :1], zeros, bound, False)
    assert case.compare("way", lambda images: jnp.asarray(bound)).passed
    assert not case.compare("way", lambda images: jnp.asarray(bound * [1, 1.5])).passed
    endless = Reference(zeros[..., :1], zeros, np.array([[[0.5, 1], [2, np.inf]]]), False)
    assert not endless.compare("way", lambda images: jnp.asarray(zeros)).passed
    comparison = case.compare("way", lambda images: jnp.asarray(-bound / 2))
    assert (comparison.route, comparison.error, comparison.bound, comparison.largest) == (
        "way",
        2,
        4,
        0,
    )
    with pytest.raises(ValueError, match="way gave shape"):
        case.compare("way", lambda images: jnp.zeros((1, 2)))


def sparse(size: int) -> np.ndarray:
    """A kernel with its taps at the corners and in the middle, and one in between."""
    kernel = np.zeros((size, size, 1, 1), np.float32)
    kernel[:: size // 2, :: size // 2] = np.arange(1, 10).reshape(3, 3, 1, 1)
    return kernel


@pytest.mark.parametrize("options", [{}, {"encoding": "quadratic"}, {"patch_size": 2}])
@pytest.mark.quick(1)
def test_heads_that_look_beyond_the_kernel_show_on_a_large_image(options) -> None:
    """On the smallest image of a 3 × 3 kernel they see zeros alone."""
    layer = ca.conv_to_attention(sparse(11), form="limit", **options)
    sides = recovery_size(layer, (3, 3), None)
    near = sparse(11)[4:7, 4:7]
    far = on_large_image(layer, near, sides)
    assert far.distance > 0.9 > 1e-3 > far.rounding
    assert on_large_image(layer, sparse(11), sides).distance == 0


@pytest.mark.quick(1)
@pytest.mark.parametrize(
    "options",
    [
        *({"padding": padding} for padding in ("VALID", "MEAN", "CIRCULAR")),
        *({"stride": 2, "padding": padding} for padding in ("SAME", "REFLECT")),
        {"patch_size": 2},
        {"dilation": 2, "form": "limit"},
        {"num_heads": "min"},
    ],
)
def test_on_a_large_image_a_layer_is_its_convolution_up_to_rounding(options) -> None:
    kernel = np.random.default_rng(0).normal(size=(3, 3, 2, 2)).astype(np.float32)
    layer = ca.conv_to_attention(kernel, np.array([1e3, -7], np.float32), **options)
    result = on_large_image(layer, kernel, recovery_size(layer, (3, 3), None))
    assert result.distance <= result.rounding < 0.01
    other = on_large_image(layer, 1.01 * kernel, recovery_size(layer, (3, 3), None))
    assert other.distance > other.rounding


@pytest.mark.parametrize("patch", [1, 4])
@pytest.mark.quick(1)
def test_the_uniform_part_is_seen_at_every_patch_size(patch) -> None:
    kernel = np.random.default_rng(0).normal(size=(3, 3, 1, 1)).astype(np.float32)
    layer = ca.conv_to_attention(kernel, form="limit", sharpness=16.0, patch_size=patch)
    uniform, rounded = uniform_part(layer, kernel, recovery_size(layer, (3, 3), None))
    assert uniform > 1e-5 > rounded


@pytest.mark.slow
@pytest.mark.parametrize(("form", "loses"), [("exact", False), ("limit", True)])
def test_heads_that_mix_offsets_have_no_bound_here(form, loses) -> None:
    kernel = np.random.default_rng(0).normal(size=(3, 3, 1, 1)).astype(np.float32)
    layer = ca.conv_to_attention(kernel, patch_size=4, head_dim=6, num_heads="min", form=form)
    with pytest.raises(
        ValueError, match=r"makes heads that mix offsets, .*; leave it out"
    ) as error:
        reference(layer, kernel, None, (8, 8))
    assert ("off by up to about ε + κu" in str(error.value)) is loses


@pytest.mark.slow
def test_a_conversion_to_two_layers_that_is_wrong_is_seen(monkeypatch):
    kernel, right = np.random.default_rng(0).normal(size=(3, 2, 2, 4)), ca.conv_to_two_layers
    kernel, options = kernel.astype(np.float32), {"groups": 2, "dilation": (1, 2)}
    (comparison,) = converted_layer.convert_to_two_layers(kernel, None, {}).comparisons
    assert (comparison.passed, comparison.image) == (True, (1, 3, 2, 2))
    (comparison,) = converted_layer.convert_to_two_layers(kernel, None, options).comparisons
    assert comparison.passed
    assert (comparison.route, comparison.image) == ("both layers", (1, 3, 4, 4))
    (larger,) = converted_layer.convert_to_two_layers(
        kernel, None, options, image_size=(6, 7)
    ).comparisons
    assert (larger.passed, larger.image) == (True, (1, 6, 7, 4))
    wrong = lambda kernel, bias, **options: right(kernel + 0.1, bias, **options)  # noqa: E731
    monkeypatch.setattr(converted_layer, "conv_to_two_layers", wrong)
    assert not converted_layer.convert_to_two_layers(kernel, None, options).comparisons[0].passed
