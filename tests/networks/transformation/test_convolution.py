"""Every kind of `lax.conv_general_dilated` as attention."""

import hypothesis.strategies as st
import jax
import jax.numpy as jnp
import numpy as np
import pytest
from hypothesis import given, settings
from jax import lax
from networks.transformation.convolutions import assert_attention, convolve, integers

from convattn.networks.transformation.convolution import Convolution
from convattn.networks.transformation.with_attention import with_attention

IMAGES, KERNEL = integers(2, 6, 5, 4), integers(3, 2, 4, 6, seed=1)


def only_convolution(function, *args):
    equations = jax.make_jaxpr(function)(*args).eqns
    (equation,) = [each for each in equations if each.primitive.name == "conv_general_dilated"]
    return Convolution.of(equation)


@pytest.mark.quick(2)
@pytest.mark.parametrize(
    "options",
    [
        {"window_strides": (2, 3)},
        {"rhs_dilation": (2, 1), "padding": [(2, 2), (0, 1)]},
        {"padding": [(3, 4), (0, 5)]},  # beyond the reach
        {"padding": [(-1, 2), (2, -2)], "window_strides": (1, 2)},
        {"padding": [(5, -1), (0, 0)]},
        {"lhs_dilation": (2, 3), "padding": [(1, 2), (1, 1)]},  # a transposed convolution
        {"lhs_dilation": (2, 1), "window_strides": (3, 1), "padding": [(-1, 2), (0, 0)]},
        {"batch_group_count": 2},
    ],
    ids=str,
)
def test_strides_dilations_paddings_and_groups_of_the_batch(options):
    assert_attention(lambda images: convolve(images, KERNEL, **options), IMAGES)


def test_groups_of_channels_and_one_axis():
    depthwise = integers(3, 3, 1, 8)
    assert_attention(lambda images: convolve(images, depthwise, feature_group_count=4), IMAGES)
    row, taps = integers(2, 7, 4), integers(4, 2, 6)
    numbers = ("NWC", "WIO", "NWC")
    assert_attention(
        lambda row: lax.conv_general_dilated(
            row, taps, (2,), [(1, 2)], dimension_numbers=numbers, feature_group_count=2
        ),
        row,
    )


@settings(max_examples=8)
@given(  # the order of space is that of the kernel
    images=st.permutations("NHWC"),
    kernel=st.permutations("HWIO").filter(lambda axes: axes.index("H") < axes.index("W")),
    outputs=st.permutations("NHWC"),
)
@pytest.mark.slow
def test_every_order_of_axes(images, kernel, outputs):
    numbers = ("".join(images), "".join(kernel), "".join(outputs))
    operands = [
        jnp.transpose(array, [usual.index(axis) for axis in order])
        for array, usual, order in ((IMAGES, "NHWC", images), (KERNEL, "HWIO", kernel))
    ]
    convolution = only_convolution(
        lambda *args: convolve(*args, dimension_numbers=numbers), *operands
    )
    assert convolution.image_shape == IMAGES.shape
    assert convolution.kernel_shape == KERNEL.shape
    np.testing.assert_array_equal(convolution.images(operands[0]), IMAGES)
    np.testing.assert_array_equal(convolution.kernel(operands[1]), KERNEL)
    expected = convolve(*operands, dimension_numbers=numbers)
    np.testing.assert_array_equal(convolution.result(convolve(IMAGES, KERNEL)), expected)


@pytest.mark.slow
def test_dtypes_of_operands_and_results_are_kept():
    for dtype in (jnp.float16, jnp.bfloat16, jnp.float32):
        images, kernel = IMAGES.astype(dtype), KERNEL.astype(dtype)
        result = with_attention(convolve)(images, kernel)
        assert result.dtype == dtype
        # Integers that the narrow dtypes hold: what rounds is the attention, in float32 at least,
        # maps of twice the kernel and the result, each once: 4 u of the sum of all terms.
        size = float(convolve(abs(IMAGES), abs(KERNEL)).max()) + float(abs(KERNEL).sum() * 3)
        allowed = 4 * float(jnp.finfo(dtype).eps) * size
        assert float(abs(result.astype(float) - convolve(IMAGES, KERNEL)).max()) <= allowed
    converted = with_attention(lambda *args: convolve(*args, preferred_element_type=jnp.float32))
    result = converted(IMAGES.astype(jnp.bfloat16), KERNEL.astype(jnp.bfloat16))
    assert result.dtype == jnp.float32
    assert float(abs(result - convolve(IMAGES, KERNEL)).max()) < 1e-3  # a bfloat16 ends at 0.5


@pytest.mark.parametrize(
    ("images", "kernel", "words"),
    [
        (integers(1, 2, 4, 4, 4), integers(2, 2, 2, 2, 2), "3 axes of space"),
        (integers(1, 2, 4, dtype=np.int32), integers(2, 2, 2, dtype=np.int32), "int32"),
        (integers(1, 2, 4, dtype=np.complex128), integers(2, 2, 2, dtype=complex), "complex128"),
        (integers(1, 2, 2), integers(2, 2, 3), "no outputs"),
        (
            integers(1, 2, 4, dtype=jnp.float8_e4m3fn),
            integers(2, 2, 2, dtype=jnp.float8_e4m3fn),
            "float8_e4m3fn",
        ),
    ],
)
def test_what_attention_does_not_express_stays_and_says_why(images, kernel, words):
    def function(images, kernel):
        axes = kernel.ndim - 2
        return lax.conv_general_dilated(images, kernel, (1,) * axes, "VALID")

    assert words in only_convolution(function, images, kernel).reason
    result = with_attention(function)(images, kernel)
    np.testing.assert_array_equal(result, function(images, kernel))
    with pytest.raises(ValueError, match=f"strict=True, but the convolution .*{words}"):
        with_attention(function, strict=True)(images, kernel)


def test_an_explicit_sharding_stays():
    mesh = jax.make_mesh((1,), ("rows",), axis_types=(jax.sharding.AxisType.Explicit,))
    with jax.set_mesh(mesh):
        sharding = jax.sharding.NamedSharding(mesh, jax.sharding.PartitionSpec("rows"))
        images = jax.device_put(integers(2, 5, 4, 3), sharding)
        kernel = integers(3, 3, 3, 3)
        assert only_convolution(convolve, images, kernel).reason == "explicit sharding"
        result = with_attention(convolve)(images, kernel)
        np.testing.assert_array_equal(result, convolve(images, kernel))


def test_names_are_those_of_scopes():
    def function(images):
        with jax.named_scope("stem"), jax.named_scope("conv"):
            return convolve(images, KERNEL)

    assert str(only_convolution(function, IMAGES)) == "stem/conv, kernel (3, 2, 4, 6)"
