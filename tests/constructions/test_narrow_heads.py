"""S.width: the places of coordinates in heads, by exact arithmetic, and the layers made of them."""

from functools import partial

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from comparison import assert_equal
from constructions.conversion_cases import applied, reference
from hypothesis import example, given
from hypothesis import strategies as st
from strategies import seeds

import convattn as ca
from convattn.bounds.head_width import shared_places, split_heads
from convattn.constructions.geometry import ConvolutionGeometry
from convattn.constructions.li_output_map import token_maps
from convattn.constructions.narrow_heads import (
    NarrowHeads,
    amplification_of,
    counted,
    exact_layout,
    fewest_narrow_heads,
    head_maps,
    limit_layout,
    price,
    usable_epsilon,
)
from convattn.encodings.bias import BiasEncoding
from convattn.encodings.mixture import MixtureEncoding
from convattn.operators.head_places import exact_heads, limit_heads


def drawn_supports(seed):
    rng = np.random.default_rng(seed)
    supports = rng.random((rng.integers(1, 6), rng.integers(1, 9))) < rng.random()
    supports[0, 0] = True
    return supports, int(rng.integers(len(supports))), int(rng.integers(1, 11))


def put(heads, j):
    """What the heads that hold j put at each offset, and with the share of the uniform row, of each
    map: `[offsets + 1, offsets]`; each head holds it once."""
    entries = np.argwhere(heads.coordinates == j)
    assert len({head for head, _ in entries}) == len(entries)
    total = np.zeros((heads.weights.shape[1] + 1, heads.weights.shape[1]))
    for head, slot in entries:
        total += np.outer([*heads.weights[head], 1], heads.coefficients[head, slot])
    return total


@given(seeds().map(drawn_supports))
@example((np.array([[True] + [False] * 5, [False] + [True] * 5]), 1, 3))  # an offset of three heads
def test_exact_heads_put_every_map_at_its_offset_and_nothing_elsewhere(drawn):
    supports, centre, head_dim = drawn
    heads = exact_layout(supports, centre, head_dim)
    assert heads.weights.min() >= 0
    assert len(heads.weights) == exact_heads(*counted(supports, centre), head_dim)
    for j in range(supports.shape[1]):
        expected = np.diag(supports[:, j].astype(float))
        expected[centre, centre] = supports[:, j].any()
        assert_equal(put(heads, j), np.concatenate([expected, 0 * expected[:1]]))


@pytest.mark.parametrize("heads", [1, 2, 3])
def test_the_heads_of_an_offset_differ_in_how_much_they_put_at_the_token_itself(heads):
    """One puts nothing there, two 0 and 1, three 0, 1 and 2: all others are pairs of 0 and 1."""
    supports = np.array([[True] * (heads * 2), [False] * (heads * 2)])
    weights = exact_layout(supports, 1, 2).weights
    assert weights[weights[:, 0] > 0].tolist() == [[1, x] for x in range(heads)]


@given(seeds(), st.sampled_from([2.0**-4, 2.0**-20]))
def test_limit_heads_are_wrong_by_epsilon_where_a_coordinate_is_read_by_its_own_token_alone(
    seed, epsilon
):
    supports, centre, head_dim = drawn_supports(seed)
    heads = limit_layout(supports, centre, head_dim, epsilon)
    widths, coordinates, read = counted(supports, centre)
    assert len(heads.weights) == limit_heads(widths, coordinates, read, head_dim)
    for j in range(supports.shape[1]):
        expected = np.diag(supports[:, j].astype(float))
        expected[centre, centre] = supports[:, j].any()
        error = put(heads, j)[:-1] - expected
        if np.delete(supports, centre, axis=0)[:, j].any():
            assert not error.any()
        assert np.delete(error, centre, axis=0).max(initial=0) <= epsilon
        assert not error[centre].any()


@pytest.mark.parametrize("size", [(1,), (2,), (7,), (3, 3), (4, 5)])
@pytest.mark.parametrize("patch", [1, 2, 3, 5])
@pytest.mark.parametrize("channels", [(2, 2), (2, 3), (3, 2)])
def test_places_of_a_generic_kernel_are_those_of_its_maps(size, patch, channels):
    geometry = ConvolutionGeometry.of(size, patch)
    maps = np.asarray(token_maps(jnp.ones((*size, *channels)), geometry))
    side = maps.any(axis=2 if channels[0] <= channels[1] else 1)
    sizes = (geometry.kernel_size, geometry.patch_size, geometry.dilation, *channels)
    places = shared_places(*sizes)
    assert counted(side, geometry.offsets.index((0,) * len(size))) == places
    for head_dim in (1, 2, 3, 5, 100):
        split = split_heads(*sizes, head_dim)
        assert limit_heads(*places, head_dim) <= split
        assert exact_heads(*places, head_dim) <= split - (-places[1] // head_dim)


@pytest.mark.slow
def test_a_patch_embedding_of_16_pixels_and_three_channels():
    """16 heads of 64 in the limit, within ε, and 28 exactly."""
    rng = np.random.default_rng(0)
    kernel, images = rng.integers(-9, 10, (3, 3, 3, 3)), rng.integers(0, 9, (1, 48, 48, 3))
    kernel, images = kernel.astype(np.float64), images.astype(np.float64)
    expected = np.asarray(reference(images, kernel))
    largest = 9 * 9 * 27  # |W| |X| over the taps and channels
    for exact, heads, error in ((True, 28, 1e-12), (False, 16, 2.0**-20 * largest)):
        layer = ca.conv_to_attention(
            kernel, patch_size=16, head_dim=64, num_heads="min",
            form="exact" if exact else "limit", epsilon=None if exact else 2.0**-20,
        )  # fmt: skip
        assert layer.heads == heads == layer.value.shape[0]
        assert layer.value.shape[2] == layer.output.shape[1] == 64
        difference = np.abs(np.asarray(applied(layer, images)) - expected).max()
        assert difference < error
        assert exact or difference > error * 2.0**-10


@pytest.mark.slow
@pytest.mark.parametrize(
    ("channels", "options"),
    [
        ((2, 3), {"patch_size": 2, "stride": 2}),
        ((3, 2), {"patch_size": 2, "stride": 3}),
        ((2, 3), {"patch_size": 3, "padding": "EDGE"}),
        ((3, 2), {"patch_size": 2, "dilation": 3}),
    ],
)
def test_both_sides_and_all_options(channels, options):
    rng = np.random.default_rng(0)
    kernel, bias = rng.normal(size=(3, 3, *channels)), rng.normal(size=channels[1])
    images = rng.normal(size=(1, 6, 6, channels[0]))
    named = {name: value for name, value in options.items() if name != "patch_size"}
    expected = np.asarray(reference(images, kernel, bias, **named))
    for form, largest in (("exact", 1e-12), ("limit", 1e-5)):
        both = {"head_dim": 2, "form": form, **options}
        layer = ca.conv_to_attention(kernel, bias, num_heads="min", **both)
        usual = jax.eval_shape(partial(ca.conv_to_attention, **both), kernel, bias)
        assert layer.heads <= usual.heads
        assert np.abs(np.asarray(applied(layer, images)) - expected).max() < largest


def test_sums_of_narrow_maps_are_rounded_once():
    """256 + 1 is 256 in bfloat16, and 256 + 1 + 1 is 258."""
    heads = NarrowHeads(np.zeros((1, 3)), np.zeros((1, 1), int), np.ones((1, 1, 3)))
    maps = jnp.asarray([256, 1, 1], jnp.bfloat16).reshape(3, 1, 1)
    assert head_maps(heads, maps)[1].tolist() == [[[258]]]


@pytest.mark.slow
def test_other_heads_where_they_are_fewer():
    sobel = np.array([[1, 0, -1], [2, 0, -2], [1, 0, -1]], np.float32)[..., None, None]
    zeros = ca.conv_to_attention(0 * sobel, head_dim=1, num_heads="min")
    assert zeros.heads == 1
    assert not np.asarray(ca.apply_attention(zeros, np.ones((1, 3, 3, 1), np.float32))).any()
    assert ca.conv_to_attention(sobel, head_dim=1, num_heads="min").heads == 2  # S.kernel's
    kernel = np.random.default_rng(0).normal(size=(3, 3, 2, 2)).astype("bfloat16")
    limit = ca.conv_to_attention(kernel, head_dim=2, num_heads="min", form="limit")
    assert limit.heads == 5  # S.kernel's, which are exact: rank four
    full = np.random.default_rng(0).normal(size=(3, 3, 3, 3)).astype("bfloat16")
    limit = ca.conv_to_attention(full, head_dim=3, num_heads="min", form="limit")
    assert isinstance(limit.encoding, BiasEncoding)  # one-hot heads are as few
    for epsilon in (5.0, 1e-9):
        with pytest.raises(ValueError, match="epsilon="):
            ca.conv_to_attention(full, head_dim=3, num_heads="min", form="limit", epsilon=epsilon)
    narrow = ca.conv_to_attention(kernel, head_dim=3, patch_size=4, num_heads="min")
    assert isinstance(narrow.encoding, MixtureEncoding)
    by_patches = {"head_dim": 3, "patch_size": 4, "num_heads": "min", "form": "limit"}
    with pytest.raises(ValueError, match=r"nothing of the result in bfloat16.*form='exact'"):
        ca.conv_to_attention(kernel, **by_patches)


@pytest.mark.slow
@pytest.mark.parametrize(("form", "entry"), [("exact", 1e38), ("limit", 1e36)])
def test_maps_that_overflow_are_refused(form, entry):
    kernel = np.full((3, 3, 1, 1), entry, np.float32)
    kernel += np.random.default_rng(0).normal(size=kernel.shape).astype(np.float32) * entry / 9
    options = {"patch_size": 6, "head_dim": 5, "form": form}
    ca.conv_to_attention(kernel, **(options | {"form": "limit"}))
    with pytest.raises(ValueError, match="overflow float32"):
        ca.conv_to_attention(kernel, num_heads="min", **options)


@given(
    st.dictionaries(st.integers(1, 14), st.integers(1, 3), max_size=4),
    st.integers(0, 12),
    st.integers(0, 40),
    st.integers(1, 9),
)
def test_no_fewer_heads_have_the_places(widths, beyond, alone, head_dim):
    """The least number of heads by trying all ways to divide them among the groups."""
    read = max(widths, default=0) + (beyond if widths else 0)
    heads = exact_heads(widths, read + alone, read, head_dim)
    if read + alone == 0:
        assert heads == 0
        return
    base = [-(-width // head_dim) for width, number in widths.items() for _ in range(number)]
    taken = [width for width, number in widths.items() for _ in range(number)]
    best = [0]  # the most room by the number of further heads
    groups = [*zip(base, taken, strict=True), (max(2, -(-2 * read // head_dim)), 2 * read)]
    for least, width in groups:
        rooms = [
            (heads * head_dim - width) // 2 if heads > 1 else 0
            for heads in range(least, least + 90)
        ]
        best = [
            max(best[one] + rooms[more - one] for one in range(min(more + 1, len(best))))
            for more in range(90)
        ]
    fewest = next(more for more, room in enumerate(best) if room >= alone)
    assert heads == sum(base) + groups[-1][0] + fewest


@pytest.mark.parametrize("unit", [1.0, 4.0])
def test_the_maps_of_heads_pick_coordinates_and_are_scaled_by_the_sum_of_their_row(unit):
    """Offset 1 of two coordinates and three others, in heads of two places, one of them empty."""
    supports = np.array([[True, True], [True, False]])
    heads = exact_layout(supports, 0, 2)
    maps = jnp.arange(1.0, 13.0).reshape(2, 2, 3)
    picked, rows = head_maps(heads, maps, unit)
    sums = 1 / unit + heads.weights.sum(axis=1)
    for head, coordinates in enumerate(heads.coordinates):
        for slot, j in enumerate(coordinates):
            assert picked[head, :, slot].tolist() == [float(j == 0), float(j == 1)]
            expected = np.tensordot(heads.coefficients[head, slot], maps[:, j], 1) * (j >= 0)
            assert_equal(rows[head, slot], sums[head] * expected)


def test_no_maps_no_heads():
    maps = jnp.zeros((3, 2, 2))
    assert fewest_narrow_heads(maps, ((-1,), (0,), (1,)), 1, True) is None


@pytest.mark.parametrize(
    ("epsilon", "message"),
    [
        (0.0, "epsilon=0.0, but expected a number strictly between 0 and 1"),
        (1.0, "epsilon=1.0, but expected"),
        (float("nan"), "epsilon=nan, but expected"),
        (1e-5, "amplifies rounding by 2.0e.05, .*a larger epsilon, or a wider dtype"),
    ],
)
def test_refused_epsilons(epsilon, message):
    with pytest.raises(ValueError, match=message):
        usable_epsilon(epsilon, jnp.float32)
    least = 2 / (2**17 - 1)  # κ = 2¹⁷, and u = 2⁻²⁴
    assert usable_epsilon(least * 1.001, jnp.float32) == least * 1.001
    with pytest.raises(ValueError, match="amplifies"):
        usable_epsilon(least * 0.999, jnp.float32)


@pytest.mark.slow
def test_a_refused_epsilon_is_refused_by_a_conversion():
    options = {"num_heads": "min", "head_dim": 1, "form": "limit"}
    zeros = np.zeros((3, 1, 1), np.float32)
    assert not jnp.any(ca.conv_to_attention(zeros, **options, epsilon=0.01).output)
    with pytest.raises(ValueError, match=r"epsilon=1\.5, but expected a number strictly between"):
        ca.conv_to_attention(zeros, **options, epsilon=1.5)
    for left_out in options:
        rest = {name: value for name, value in options.items() if name != left_out}
        with pytest.raises(ValueError, match=r"epsilon=0\.01, but only the limit form"):
            ca.conv_to_attention(zeros, **rest, epsilon=0.01)


def test_epsilon_balances_what_is_wrong_and_what_is_rounded():
    roundoff = 2.0**-24
    epsilon = usable_epsilon(None, jnp.float32)
    assert epsilon == pytest.approx((amplification_of(epsilon) - 1) * roundoff)
    with pytest.raises(ValueError, match="head_dim=0, but expected an integer ≥ 1"):
        fewest_narrow_heads(jnp.ones((1, 1, 1)), ((0,),), 0, True)


@pytest.mark.slow
def test_a_limit_form_says_what_it_loses():
    kernel = np.random.default_rng(0).normal(size=(3, 3, 1, 1)).astype(np.float32)
    options = {"patch_size": 4, "head_dim": 6, "num_heads": "min"}
    for epsilon in (None, 0.25):
        limit = ca.conv_to_attention(kernel, form="limit", epsilon=epsilon, **options)
        used, roundoff = usable_epsilon(epsilon, jnp.float32), 2.0**-24
        said = price(limit.encoding, jnp.float32)
        assert f"ε = {used:.2g} is off by up to about" in said
        assert f"ε + κu = {used + amplification_of(used) * roundoff:.2g} of max|X|·Σ|W|" in said
        assert "proved for one kernel of S.kernel, and open here (S.price)" in said
    assert price(ca.conv_to_attention(kernel, **options).encoding, jnp.float32) == ""


@pytest.mark.slow
def test_heads_that_look_at_one_offset_lose_nothing():
    kernel = np.zeros((3, 3, 1, 1), np.float32)
    kernel[1, 1] = 1
    options = {"patch_size": 4, "head_dim": 2, "num_heads": "min", "form": "limit"}
    layer = ca.conv_to_attention(kernel, **options)
    assert price(layer.encoding, jnp.float32) == ""
