"""The layers of a function, the function of its layers, and the report."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from comparison import assert_within
from jax import lax
from networks.transformation.convolutions import convolve, integers

from convattn.networks.transformation.application import Application
from convattn.networks.transformation.attention_of import attention_of
from convattn.networks.transformation.contents import remaining_convolutions
from convattn.networks.transformation.report import output_difference
from convattn.networks.transformation.with_attention import with_attention

IMAGES, KERNEL = integers(2, 6, 5, 3) / 4, integers(3, 3, 3, 3, seed=1) / 16
KERNELS = integers(2, 3, 3, 3, 3, seed=2) / 16


@jax.custom_vjp
def with_own_slope(images):
    return convolve(images, KERNEL)


with_own_slope.defvjp(
    lambda images: (with_own_slope(images), None), lambda _, cotangent: (cotangent,)
)


def network(images):
    """A convolution in each kind of place."""
    with jax.named_scope("stem"):
        images = convolve(images, KERNEL, window_strides=(2, 1))
    images, _ = lax.scan(lambda x, k: (jnp.tanh(convolve(x, k)), None), images, KERNELS)
    with jax.named_scope("tied"):
        images, _ = lax.scan(lambda x, _: (convolve(x, KERNEL), None), images, None, length=2)
    images = lax.cond(images.sum() > 1e9, lambda x: convolve(x, 2 * KERNEL), with_own_slope, images)
    images = convolve(images, jax.nn.softmax(KERNEL + images.mean(), axis=0))  # a dynamic filter
    return images.mean((1, 2))


@pytest.fixture(scope="module")
def converted():
    return attention_of(network, IMAGES)


@pytest.mark.slow
def test_layers_stand_where_kernels_do_not_depend_on_the_arguments(converted):
    layers, apply, report = converted
    shapes = {name: layer.output.shape for name, layer in layers.items()}
    assert shapes == {
        "stem": (10, 3, 3),
        "convolution": (2, 10, 3, 3),  # the two steps of a scan
        "tied": (10, 3, 3),
    }
    names = [line.path for line in report.layers]
    assert names == ["stem", "convolution", "tied", "convolution:2", "convolution:4"]
    expected = network(IMAGES)
    np.testing.assert_allclose(apply(layers, IMAGES), expected, rtol=0, atol=1e-12)
    np.testing.assert_allclose(jax.jit(apply)(layers, IMAGES), expected, rtol=0, atol=1e-12)
    other = integers(5, 7, 8, 3) / 8  # other images, another size, which SAME pads otherwise
    np.testing.assert_allclose(apply(layers, other), network(other), rtol=0, atol=1e-12)


def carried(images):
    return lax.fori_loop(0, 2, lambda step, x: jnp.tanh(convolve(x, KERNELS[step])), images)


def backwards(images):
    body = lambda x, k: (jnp.tanh(convolve(x, k)), None)  # noqa: E731
    return lax.scan(body, images, KERNELS, reverse=True)[0]


def tied_blocks(images):
    def blocks(x, _):
        return lax.scan(lambda x, k: (jnp.tanh(convolve(x, k)), None), x, KERNELS)

    return lax.scan(blocks, images, None, length=3)[0]


def by_branch(images):
    def body(x, step):
        return convolve(x, lax.cond(step > 0, lambda k: k, lambda k: -k, KERNEL)), None

    return lax.scan(body, images, jnp.arange(2))[0]


def until(images):
    body = lambda c: (c[0] + 1, convolve(c[1], KERNELS[c[0]]))  # noqa: E731
    return lax.while_loop(lambda c: c[0] < 2, body, (0, images))[1]


def unevenly(images):
    """As often as it has steps, but on the example in the first step only."""
    rounds = jnp.where(images.max() > 1, jnp.array([1, 1]), jnp.array([2, 0]))

    def body(x, row):
        times, kernel = row
        repeat = lambda c: (c[0] + 1, convolve(c[1], kernel))  # noqa: E731
        return lax.while_loop(lambda c: c[0] < times, repeat, (0, x))[1], None

    return lax.scan(body, images, (rounds, KERNELS))[0]


def counted(images):
    steps = images.astype(int).max()
    body = lambda c: (c[0] + 1, c[1] / 2)  # noqa: E731
    return convolve(images, lax.while_loop(lambda c: c[0] < steps, body, (0, KERNEL))[1])


@pytest.mark.parametrize(
    ("function", "axes"),
    [
        (carried, (2,)),
        (backwards, (2,)),
        (tied_blocks, (2,)),
        (by_branch, (2,)),
        (until, None),
        (unevenly, None),
        (counted, None),
    ],
)
@pytest.mark.quick(1)
def test_layers_of_loops_are_those_of_their_steps(function, axes):
    layers, apply, _ = attention_of(function, IMAGES)
    shapes = [layer.output.shape for layer in layers.values()]
    assert shapes == ([] if axes is None else [(*axes, 10, 3, 3)])
    for images in (IMAGES, 3 * IMAGES):
        expected = function(images)
        bound = 1e-12 * max(1, float(abs(expected).max()))
        np.testing.assert_allclose(apply(layers, images), expected, rtol=0, atol=bound)


@pytest.mark.slow
def test_each_layer_is_used_and_has_a_gradient(converted):
    layers, apply, _ = converted
    outputs = jax.jit(lambda layers: apply(layers, IMAGES))
    slopes = jax.jit(jax.grad(lambda layers: (outputs(layers) ** 2).sum()))(layers)
    for name, layer in layers.items():
        steps = slopes[name].output.reshape(-1, *layer.output.shape[-3:])
        assert all(float(abs(step).max()) > 1e-6 for step in steps), name
        moved = jax.tree.map(lambda array: array + 0.1, layer)
        change = outputs({**layers, name: moved}) - outputs(layers)
        assert float(abs(change).max()) > 1e-6, name


@pytest.mark.slow
def test_the_report_holds_measured_differences_and_bounds(converted):
    report = converted.report
    assert report.passed
    assert report.same_class
    assert all(0 < line.difference <= line.bound < 1e-10 for line in report.layers)
    assert 0 < report.difference < 1e-12
    assert report.left == ()
    assert str(report).splitlines()[-2].startswith("5 layers; the outputs differ by")


def test_a_call_whose_difference_is_not_a_number_fails():
    def function(images):
        steps = lax.scan(lambda x, _: (x * jnp.nan, convolve(x, KERNEL)), images, None, length=2)
        return steps[1][0]

    report = attention_of(function, IMAGES).report
    assert np.isfinite(report.difference)
    assert not report.passed


@pytest.mark.parametrize(
    ("one", "other", "difference"),
    [(np.int32(2**30), np.int32(2**30 + 1), 1.0), (np.array([1e300]), np.array([3e300]), 2e300)],
)
def test_outputs_are_compared_in_all_their_bits(one, other, difference):
    with jax.enable_x64(False):
        assert output_difference(one, other) == (difference, float(abs(one).max()), True)


def test_what_is_left_stands_in_the_report_with_the_reason():
    def function(images):
        with jax.named_scope("pointwise"):
            images = convolve(images, KERNEL[:1, :1])
        with jax.named_scope("volume"):
            volume = lax.conv(images[:, None], jnp.ones((1, 1, 2, 2, 1)), (1, 1, 1), "SAME")
        return convolve(volume[:, 0], KERNEL)

    report = attention_of(function, IMAGES, pointwise="keep").report
    assert report.left == (
        "pointwise, kernel (1, 1, 3, 3): pointwise='keep': it mixes no pixels",
        "volume, kernel (2, 2, 1, 1, 1): 3 axes of space, where attention takes sequences and "
        "images",
    )
    assert "2 convolutions are left" in str(report)
    with pytest.raises(ValueError, match="strict=True, but the convolution volume"):
        attention_of(function, IMAGES, strict=True)


def test_parameters_that_are_arguments_have_no_layer():
    converted = attention_of(convolve, IMAGES, KERNEL)
    assert converted.layers == {}
    assert len(converted.report.layers) == 1
    result = converted.apply({}, IMAGES, KERNELS[0])
    np.testing.assert_allclose(result, convolve(IMAGES, KERNELS[0]), rtol=0, atol=1e-12)


def test_under_jit_layers_are_made_and_nothing_is_measured():
    layers = jax.eval_shape(lambda: attention_of(network, IMAGES).layers)
    assert layers["stem"].output.shape == (10, 3, 3)
    report = []

    def compiled(images):
        converted = attention_of(lambda x: convolve(x, KERNEL), images)
        report.append(converted.report)
        return converted.apply(converted.layers, images)

    np.testing.assert_allclose(jax.jit(compiled)(IMAGES), convolve(IMAGES, KERNEL), atol=1e-12)
    assert (report[0].difference, report[0].layers[0].difference) == (None, None)


def test_an_empty_batch_and_keys_among_the_outputs():
    def function(images, key):
        return convolve(images, KERNEL), jax.random.split(key)

    for images in (IMAGES[:0], IMAGES):
        layers, apply, report = attention_of(function, images, jax.random.key(0))
        result, keys = apply(layers, images, jax.random.key(0))
        assert report.passed is (True if images.size else None)
        assert (result.shape, keys.shape) == (images.shape, (2,))


@pytest.mark.parametrize("of_impl", [jax.random.key, jax.random.PRNGKey])
def test_a_function_may_hold_keys_of_random_numbers(of_impl):
    """As noise, and as what a kernel is made of: another key makes another one."""
    keys = [of_impl(0), of_impl(1)]

    def function(images):
        kernel = jax.random.normal(keys[0], KERNEL.shape)
        return convolve(images + jax.random.normal(keys[1], images.shape), kernel)

    layers, apply, report = attention_of(function, IMAGES)
    assert len(layers) == 1
    assert report.passed
    assert_within(apply(layers, IMAGES), function(IMAGES), 1e-5)
    keys.reverse()
    with pytest.raises(ValueError, match="another kernel on these arguments"):
        apply(layers, IMAGES)


def test_convolutions_on_several_devices_are_attention_without_layers():
    mesh = jax.make_mesh((1,), ("rows",), axis_types=(jax.sharding.AxisType.Auto,))
    spec = jax.sharding.PartitionSpec("rows")
    function = jax.shard_map(
        lambda x: convolve(x, KERNEL), mesh=mesh, in_specs=spec, out_specs=spec
    )
    layers, apply, report = attention_of(function, IMAGES)
    assert (layers, report.without_rule) == ({}, "shard_map")
    assert 0 < report.difference < 1e-12
    assert remaining_convolutions(apply, layers, IMAGES) == ()


def test_other_layers_than_those_of_the_example_are_refused():
    def function(images):
        with jax.named_scope("wide" if images.shape[1] > 6 else "narrow"):
            return convolve(images, KERNEL)

    layers, apply, _ = attention_of(function, IMAGES)
    for wrong in ({}, {**layers, "head": layers["narrow"]}, layers["narrow"]):
        with pytest.raises(ValueError, match=r"layers=.*, but expected a dictionary of .*narrow"):
            apply(wrong, IMAGES)
    with pytest.raises(ValueError, match=r"has no convolutions \['narrow'\] and"):
        apply(layers, integers(2, 8, 7, 3))


def test_names_are_all_different_whatever_the_scopes_are_called():
    def function(images):
        for scope, scale in (("a", 1), ("a:2", 2), ("a", 4), ("convattn.attention_pool", 1)):
            with jax.named_scope(scope):
                images = convolve(images, KERNEL * scale)
        return images

    layers, apply, _ = attention_of(function, IMAGES)
    assert list(layers) == ["a", "a:2", "a:3", "convattn.attention_pool"]
    np.testing.assert_allclose(apply(layers, IMAGES), function(IMAGES), rtol=0, atol=1e-12)


LARGER = integers(2, 12, 12, 3)  # another branch of the functions below
ANOTHER = "another kernel on these arguments than on the example"


def from_a_callback(images):
    shape = jax.ShapeDtypeStruct(KERNEL.shape, KERNEL.dtype)
    kernel = jax.pure_callback(lambda: np.asarray(KERNEL) * images.shape[1], shape)
    return convolve(images, kernel)


def changed_in_a_while(images):
    step = lambda carry: (2 * carry[0], convolve(carry[1], carry[0]))  # noqa: E731
    return lax.while_loop(lambda carry: carry[0].max() < 20, step, (KERNEL, images))[1]


@pytest.mark.parametrize("function", [from_a_callback, changed_in_a_while])
def test_a_kernel_that_is_not_seen_through_has_no_layer_and_is_made_at_each_call(function):
    layers, apply, report = attention_of(function, IMAGES)
    assert not layers
    assert report.layers
    for images in (IMAGES, LARGER):
        expected = function(images)
        np.testing.assert_allclose(apply({}, images), expected, rtol=0, atol=1e-9)


def test_kernels_of_a_trace_are_told_apart_in_it():
    def run(kernel):
        def function(images):
            return convolve(images, kernel * images.shape[1])

        layers, apply, _ = attention_of(function, IMAGES)
        with pytest.raises(ValueError, match=ANOTHER):
            apply(layers, LARGER)
        return apply(layers, IMAGES)

    outputs = jax.jit(run)(KERNEL)
    np.testing.assert_allclose(
        outputs, convolve(IMAGES, KERNEL * IMAGES.shape[1]), rtol=0, atol=1e-9
    )


def of_size(small, large):
    """A choice between the images of the example and `LARGER`."""
    return lambda images: small if images.shape[1] < 8 else large


twice = of_size(1, 2)  # what another kernel is multiplied with


def other_groups(images):
    if images.shape[1] < 8:
        return convolve(images, KERNEL)
    return convolve(jnp.tile(images, 3), jnp.tile(KERNEL, 3), feature_group_count=3)


def other_order_of_axes(images):
    order = ("NHWC", of_size("HWIO", "WHOI")(images), "NHWC")
    return convolve(images, KERNEL, dimension_numbers=order)


def other_order(images):
    for kernel in of_size(KERNELS, KERNELS[::-1])(images):
        images = jnp.tanh(convolve(images, kernel))
    return images


def another_before(images):
    if images.shape[1] > 8:
        images = convolve(images, 2 * KERNEL)
    return convolve(images, KERNEL)


def of_the_images(images):
    scale = 1 if images.shape[1] < 8 else jnp.abs(images).mean()
    return convolve(images, KERNEL * scale)


def in_a_while(images):
    kernel = KERNEL * images.shape[1]
    step = lambda carry: (carry[0] + 1, convolve(carry[1], kernel))  # noqa: E731
    return lax.while_loop(lambda carry: carry[0] < 2, step, (0, images))[1]


def in_a_branch(images):
    kernel = KERNEL * twice(images)
    return lax.cond(images.sum() > -1e9, lambda x: convolve(x, kernel), jnp.negative, images)


def made_again(images):
    kernel = jax.jit(lambda k: jnp.tile(k, 1) * images.shape[1])(KERNEL)
    return jax.checkpoint(lambda x: convolve(x, kernel))(images)


def in_a_carry(images, kernel, factor):
    step = lambda carry, _: ((convolve(*carry), carry[1] / factor), None)  # noqa: E731
    return lax.scan(step, (images, kernel), None, length=2)[0][0]


OTHERS = {
    "shape": (lambda x: convolve(x, of_size(KERNEL, KERNEL[:1])(x)), ANOTHER),
    "kernel": (lambda x: convolve(x, KERNEL * twice(x)), ANOTHER),
    "dilation": (
        lambda x: convolve(x, KERNEL, rhs_dilation=(x.shape[1] // 6,) * 2),
        r"\(2, 2\), .* on these arguments",
    ),
    "order of axes": (other_order_of_axes, "order of axes are"),
    "groups": (other_groups, ANOTHER),
    "order": (other_order, ANOTHER),
    "another before": (another_before, r"and other ones, \['convolution:2'\], but expected"),
    "of the images": (of_the_images, ANOTHER),
    "by rows": (
        lambda x: lax.scan(lambda c, k: (convolve(c, k), None), x, KERNELS * twice(x))[0],
        ANOTHER,
    ),
    "in a loop": (
        lambda x: lax.fori_loop(0, 2, lambda _, c: convolve(c, KERNEL * twice(x)), x),
        ANOTHER,
    ),
    "in a while": (in_a_while, ANOTHER),
    "in a branch": (in_a_branch, ANOTHER),
    "made again": (made_again, ANOTHER),
    "in a carry": (lambda x: in_a_carry(x, KERNEL * twice(x), 2), ANOTHER),
    "step of a carry": (lambda x: in_a_carry(x, KERNEL, of_size(2, 3)(x)), ANOTHER),
}


@pytest.mark.parametrize("name", OTHERS)
@pytest.mark.quick(5)
def test_other_convolutions_than_on_the_example_are_refused(name):
    function, message = OTHERS[name]
    layers, apply, _ = attention_of(function, IMAGES)
    with pytest.raises(ValueError, match=message):
        apply(layers, LARGER)
    assert jnp.allclose(apply(layers, IMAGES), function(IMAGES), rtol=0, atol=1e-11)


def kept_in_place(images):
    state = jax.new_ref(jnp.zeros_like(images))
    state[...] = convolve(images, KERNEL)
    return state[...]


def kernel_in_place(images):
    kernel = jax.new_ref(KERNEL)

    def step(images, _):
        images = jnp.tanh(convolve(images, kernel[...]))
        kernel[...] = kernel[...] / 2
        return images, None

    return lax.scan(step, images, None, length=3)[0]


@pytest.mark.parametrize("function", [kept_in_place, kernel_in_place])
def test_arrays_that_change_in_place_are_refused(function):
    with pytest.raises(ValueError, match="changes an array in place"):
        attention_of(function, IMAGES)
    assert jnp.allclose(with_attention(function)(IMAGES), function(IMAGES), rtol=0, atol=1e-12)


def test_the_limit_form_has_layers_and_no_bound():
    layers, _, report = attention_of(lambda x: convolve(x, KERNEL), IMAGES, form="limit")
    assert list(layers) == ["convolution"]
    assert report.without_rule == "attention in the limit form and float64"


@pytest.mark.parametrize("dtype", ["float16", "bfloat16"])
@pytest.mark.quick(1)
def test_more_terms_than_a_dtype_has_bits_for(dtype):
    images = integers(1, 6, 6, 256, dtype=dtype) / 4
    kernel = integers(3, 3, 256, 2, seed=1).astype(dtype) / 64
    report = attention_of(lambda images: convolve(images, kernel), images).report
    assert report.difference <= report.largest * 2.0**-5
    assert report.without_rule == f"attention in this form and {dtype}"

    def summed(images):  # the sums are in the dtype, and the convolution is not
        return convolve(images, KERNEL).astype(dtype).reshape(1, -1) @ jnp.ones((12288, 1), dtype)

    report = attention_of(summed, integers(1, 64, 64, 3) / 4).report
    assert "too many terms for their dtype" in report.without_rule


@pytest.mark.parametrize(
    ("of", "dtype"),
    [
        (lambda x: jnp.floor(1e15 * x).astype(int), "int64"),
        (jnp.fft.fft, "complex128"),
    ],
)
def test_outputs_that_differ_and_are_no_real_numbers_have_no_bound(of, dtype):
    images = jnp.sin(jnp.arange(240.0).reshape(2, 8, 5, 3))
    report = attention_of(lambda images: of(convolve(images, KERNEL)), images).report
    assert report.difference > 0
    assert report.without_rule == f"outputs of {dtype}"
    assert not report.entries


def layer(images):
    return convolve(images, KERNEL)


@pytest.mark.parametrize(
    ("function", "example", "options", "message"),
    [
        (jnp.tanh, IMAGES, {}, "no convolution that becomes attention"),
        (layer, IMAGES, {"where": lambda _: False}, r"no convolution .*`where` leaves it"),
        (IMAGES, IMAGES, {}, "expected a function"),
        (network, IMAGES, {"stict": True}, r"stict=…, but expected options among where, form, "),
        (network, jax.eval_shape(lambda: IMAGES), {}, "ShapeDtypeStruct, but expected arrays"),
    ],
)
def test_what_cannot_be_converted_is_refused(function, example, options, message):
    with pytest.raises(ValueError, match=message):
        attention_of(function, example, **options)


def test_a_kernel_that_is_read_twice_has_two_layers():
    layers = attention_of(lambda x: convolve(convolve(x, KERNEL), KERNEL), IMAGES).layers
    assert [*layers] == ["convolution", "convolution:2"]


def test_a_step_is_decided_by_the_program_that_is_delivered(monkeypatch):
    """Where a sign is that of a tie, the two runs compared may agree, and the layers not."""

    def function(images):
        return jnp.sign(convolve(images, KERNEL))

    expected = function(IMAGES)
    monkeypatch.setattr(Application, "__call__", lambda *args: -expected)
    report = attention_of(function, IMAGES).report
    assert report.difference == 2 * jnp.abs(expected).max()
    assert report.passed is not True
    assert not report.same_class


def test_a_bound_that_zeros_would_meet_judges_nothing():
    """A leak of all but 10⁻¹⁵ costs all digits of float64."""
    report = attention_of(lambda x: convolve(x, KERNEL), IMAGES, uniform_weight=1 - 2.0**-50).report
    assert report.layers[0].bound >= report.layers[0].largest
    assert report.layers[0].passed is None
    assert report.passed is None
    assert "no derived bound says something" in str(report)


def test_zeros_tell_nothing():
    report = attention_of(lambda x: convolve(x, KERNEL), 0 * IMAGES).report
    assert report.difference == 0
    assert report.layers[0].passed is None
    assert report.passed is None
    assert "zeros tell nothing: the images or the outputs of convolution are" in str(report)
