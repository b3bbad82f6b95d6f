"""The bound for all images of a box holds for drawn ones and corners, and notices errors."""

from dataclasses import replace

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from compiled_networks import Parameters, convolve
from scipy.special import erf

from convattn.compile import stock, to_vision_transformer
from convattn.compile.evaluation import evaluate
from convattn.compile.parameters import Builder

KERNEL, HEAD = Parameters(4).kernel(3, 3, 2, 3), Parameters(5).kernel(3, 2)
MIDDLE = np.random.default_rng(0).random((4, 6, 2)).astype(np.float32)
LOWER, UPPER = MIDDLE - np.float32(0.125), MIDDLE + np.float32(0.125)


def network(images, kernel=KERNEL, **options):
    maps = jax.nn.relu(convolve(images, kernel, **options) - 0.1)
    return maps.mean((1, 2)) @ HEAD.astype(images.dtype)


def strided(images):
    return network(images, window_strides=(2, 3))


def bent(images):
    maps = jax.nn.gelu(convolve(images, KERNEL), approximate=False)
    return maps.reshape(len(images), -1) @ jnp.cos(jnp.arange(144.0)).reshape(72, 2)


def drawn(count=40, seed=1):
    shares = np.random.default_rng(seed).random((count, *MIDDLE.shape))
    shares[: count // 2] = shares[: count // 2] < 0.5
    return np.clip(LOWER + shares * (UPPER - LOWER), LOWER, UPPER).astype(np.float32)


@pytest.fixture(scope="module")
def compiled():
    return to_vision_transformer(network, jnp.asarray(MIDDLE[None]))


@pytest.fixture(scope="module")
def bound(compiled):
    return compiled.bound_on_box(LOWER, UPPER)


def exact(compiled, images):
    return evaluate(compiled.plan.network, images)


def apart(compiled, arrays, images=None):
    images = drawn() if images is None else images
    held = {name: array.astype(np.float32) for name, array in arrays.items()}
    plan = compiled.plan
    streams = stock.run(held, jnp.asarray(images), plan.num_heads, compiled.constants.epsilon)
    return np.abs(np.asarray(streams.logits) - exact(compiled, images))


@pytest.mark.quick(1)
@pytest.mark.parametrize("function", [network, strided, bent])
def test_every_image_is_within_the_bound_which_is_small(function):
    compiled = to_vision_transformer(function, jnp.asarray(MIDDLE[None]))
    bound, images = compiled.bound_on_box(LOWER, UPPER), drawn()
    logits = exact(compiled, images)
    logits_of_transformer = np.asarray(compiled(images), np.float64)
    assert (bound.lower <= logits).all()
    assert (logits <= bound.upper).all()
    assert (np.abs(logits_of_transformer - logits) <= bound.transformer).all()
    theirs = np.asarray(function(images), np.float64)
    assert (np.abs(theirs - logits) <= bound.network).all()
    assert (np.abs(logits_of_transformer - theirs) <= bound.total).all()
    assert bound.total.max() <= 5e-3 * np.abs(logits).max()


def test_it_is_no_less_than_the_bound_of_a_run(compiled, bound):
    report = compiled.compared(network, drawn(4))
    assert (bound.transformer >= report.bound.construction.max(0)).all()
    smaller = compiled.bound_on_box(MIDDLE, MIDDLE)
    assert (smaller.total <= bound.total).all()
    assert (smaller.transformer <= 20 * report.bound.total.max()).all()


@pytest.mark.slow
def test_float64_has_a_smaller_bound(bound):
    with jax.enable_x64(True):
        wide = to_vision_transformer(network, jnp.asarray(MIDDLE[None], "float64"), dtype="float64")
        assert (wide.bound_on_box(LOWER, UPPER).total < 1e-6 * bound.total).all()


@pytest.mark.parametrize(
    "changed",
    [{"sharpness": 4.0}, {"slope": 16.0}, {"norm": 16.0}],
    ids=lambda held: next(iter(held)),
)
def test_a_constant_that_is_too_small_is_noticed_and_is_within_its_own_bound(
    compiled, bound, changed
):
    constants = replace(compiled.constants, **changed)
    errors = apart(compiled, Builder(compiled.plan, constants).arrays())
    assert (errors > bound.transformer).any()
    own = replace(compiled, constants=constants).bound_on_box(LOWER, UPPER)
    assert (errors <= own.transformer).all()


def test_a_kernel_that_is_off_by_a_thousandth_at_one_tap_is_noticed(compiled, bound):
    arrays = Builder(compiled.plan, compiled.constants).arrays()
    assert (apart(compiled, arrays) <= bound.transformer).all()
    for name in ("blocks.0.attn.proj.weight", "blocks.0.attn.qkv.weight"):
        weights = arrays[name].copy()
        part = weights[-len(weights) // 3 :] if "qkv" in name else weights
        part[np.unravel_index(np.abs(part).argmax(), part.shape)] *= 1.02
        assert (apart(compiled, arrays | {name: weights}) > bound.transformer).any(), name


def test_a_head_at_another_offset_is_noticed(compiled, bound):
    moved = KERNEL.at[0, 0].set(KERNEL[0, 1]).at[0, 1].set(KERNEL[0, 0])
    other = to_vision_transformer(lambda x: network(x, moved), jnp.asarray(MIDDLE[None]))
    assert (apart(compiled, other.timm) > bound.transformer).any()


def test_the_blocks_in_a_row_are_those_of_the_loop(compiled, bound):
    images = drawn(4)
    errors = np.abs(np.asarray(compiled.unrolled(images)) - np.asarray(compiled(images)))
    assert (errors <= bound.transformer).all()


def test_channels_may_stand_first(bound):
    def turned(images):
        return network(jnp.moveaxis(images, 1, -1))

    first = np.moveaxis(MIDDLE, -1, 0)
    compiled = to_vision_transformer(turned, jnp.asarray(first[None]), channels_first=True)
    box = compiled.bound_on_box(np.moveaxis(LOWER, -1, 0), np.moveaxis(UPPER, -1, 0))
    assert np.allclose(box.total, bound.total, rtol=1e-6)


def test_what_is_assumed_of_functions_holds_here():
    numbers = np.linspace(-8, 8, 4001, dtype=np.float32)
    unit = 2.0**-24
    assert float(jnp.exp(jnp.float32(0))) == 1.0
    apart = np.abs(np.asarray(jax.lax.erf(numbers), np.float64) - erf(numbers.astype(np.float64)))
    assert apart.max() <= 16 * unit
    assert np.asarray(jax.nn.softmax(jnp.array([0.0, -128.0], jnp.float32))).tolist() == [1.0, 0.0]


def test_a_box_of_other_images_and_constants_without_a_bound_are_refused(compiled):
    with pytest.raises(ValueError, match="lower and upper of"):
        compiled.bound_on_box(LOWER[1:], UPPER[1:])
    small = replace(compiled, constants=replace(compiled.constants, norm=1e-6))
    with pytest.raises(ValueError, match="Λ"):
        small.bound_on_box(LOWER, UPPER)
