"""The bound of a run where its terms are hard: parts that cancel, bends, tokens off the lattice."""

from dataclasses import replace

import compiled_networks as networks
import jax
import jax.numpy as jnp
import numpy as np
import pytest

from convattn.compile import to_vision_transformer
from convattn.compile.box_bound import _Run as BoxRun
from convattn.compile.box_values import BoxValues
from convattn.compile.parameters import Constants
from convattn.compile.stored_values import StoredValues


def circular(images, kernel):
    wide = jnp.pad(images, ((0, 0), (1, 1), (1, 1), (0, 0)), mode="wrap")
    return networks.convolve(wide, kernel, padding="VALID")


def two_layers(seed):
    """Circular layers of taps -1, 0 and 1, and images."""
    rng = np.random.default_rng(seed)
    one, two = (jnp.asarray(rng.choice([-1.0, 0.0, 1.0], size=(3, 3, c, 2))) for c in (1, 2))
    images = jnp.asarray(rng.random((4, 3, 4, 1)))
    return lambda x: circular(jax.nn.relu(circular(x, one)), two).mean((1, 2)), images


def report(function, images, norm, **options):
    constants = Constants(norm, 2.0**100, 1024.0, 1e-6)
    return to_vision_transformer(
        function, images, dtype="float64", constants=constants, **options
    ).report


@pytest.mark.parametrize("seed", [2, 18])  # moved over bends, with several blocks for a layer
@pytest.mark.quick(1)
def test_blocks_whose_factors_differ_are_within_the_bound(seed):
    for num_heads in (1, 3):
        result = report(*two_layers(seed), 1000.0, num_heads=num_heads)
        assert result.within
        assert result.ratio < 10


@pytest.mark.slow
def test_parts_that_cancel_in_several_blocks_are_within_the_bound():
    kernel = jnp.zeros((1, 3, 1, 1)).at[0, 0].set(100.0).at[0, 2].set(-100.0)

    def function(images):
        wide = jnp.pad(images, ((0, 0), (0, 0), (1, 1), (0, 0)), mode="wrap")
        return jax.nn.relu(networks.convolve(wide, kernel, padding="VALID")).mean((1, 2))

    result = report(function, jnp.ones((1, 2, 4, 1)), 1e4, num_heads=1)
    assert result.within
    assert 1e-3 < result.difference < result.bound.construction.max() < 0.1


def one_tap(size):
    """A stride of 2, whose only tap reads rows between the points of the lattice."""
    kernel = jnp.zeros((3, 3, 1, 1)).at[0, 1].set(size)
    return lambda x: jax.nn.relu(
        networks.convolve(x, kernel.astype(x.dtype), window_strides=(2, 2))
    ).mean((1, 2))


def stripes(first):
    return jnp.zeros((1, 8, 8, 1), jnp.float32).at[:, first::2].set(1.0)


@pytest.mark.parametrize(("size", "for_training"), [(100.0, True), (1e7, False)])
@pytest.mark.quick(1)
def test_the_norm_is_that_of_tokens_between_the_points_of_a_lattice_too(size, for_training):
    function = one_tap(size)
    first, second = (
        to_vision_transformer(function, stripes(row), for_training=for_training) for row in (0, 1)
    )
    assert first.report.within
    assert second.report.within
    assert second.report.largest == 0  # all that the lattice holds, while other tokens hold `size`
    assert second.report.largest_token >= size
    assert 0.25 < second.constants.norm / first.constants.norm < 4
    held = StoredValues(second.plan, second.constants, second.streams(stripes(1)))
    deviation = max(held.deviation(stream).max() for stream in held.before)
    assert deviation * second.plan.largest_ratio < 0.3


def test_on_a_box_a_norm_that_is_too_small_leaves_nothing_of_the_sharpness():
    image = np.full((4, 4, 1), 9.0)
    small = Constants(9.0, 2.0**100, 64.0, 1e-6)
    function = one_tap(1.0)
    plan = to_vision_transformer(function, jnp.asarray(image[None], jnp.float32)).plan
    run = BoxRun(plan, small, 2.0**-53, BoxValues(plan.network, image, image), 100.0)
    assert run._factor() > 1
    assert run._leak(run._factor()) == 2.0
    assert run._leak(0.01) < 2.0


@pytest.mark.parametrize("field", ["norm", "slope", "sharpness", "epsilon"])
@pytest.mark.parametrize("number", [-1.0, np.nan, np.inf])
def test_constants_are_positive_and_finite(field, number):
    numbers = {"norm": 2.0, "slope": 2.0, "sharpness": 2.0, "epsilon": 0.0} | {field: number}
    with pytest.raises(ValueError, match="but expected finite numbers, positive ones"):
        Constants(**numbers)


def test_a_norm_below_the_other_constants_of_a_token_is_refused():
    with pytest.raises(ValueError, match=r"norm=1\.0, but expected more than 2\.\d+"):
        report(one_tap(1.0), jnp.ones((1, 8, 8, 1)), 1.0)


@pytest.mark.parametrize(
    ("constants", "message"),
    [
        (Constants(1e30, 2.0**60, 128.0, 1e-6), r"norm=1e\+30, but expected at most 4\.6"),
        (Constants(1e5, 2.0**126.5, 100.0, 0.0), "beyond the normal range of float32"),
        ((1.0, 2.0, 3.0, 4.0), "but expected a Constants"),
    ],
)
def test_constants_beyond_the_range_of_the_dtype_are_refused(constants, message):
    with pytest.raises(ValueError, match=message):
        to_vision_transformer(
            lambda x: jax.nn.relu(x).mean((1, 2)), stripes(0), constants=constants
        )


def test_training_constants_that_overflow_are_refused_and_zeros_do_not_pass():
    def function(images):
        return jax.nn.relu(images - 0.5).mean((1, 2))

    with pytest.raises(ValueError, match="whose squares LayerNorm can add in float32"):
        to_vision_transformer(function, 1e25 * stripes(0), for_training=True)
    passed = to_vision_transformer(function, stripes(0), for_training=True).report
    assert passed.passed
    assert not replace(passed, difference=passed.largest).passed
