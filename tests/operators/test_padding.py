"""Every padding against NumPy's, XLA's and Flax's own."""

import math
from functools import partial

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from comparison import assert_equal, assert_within
from convolution_in_numpy import MODES, by_taps, convolution, filled
from flax import nnx
from hypothesis import given
from hypothesis import strategies as st
from jax import export, lax

from convattn.operators.convolution import conv
from convattn.operators.padding import (
    NAMED_PADDINGS,
    fill_around,
    fill_ring,
    filled_axes,
    outside_places,
    read_padding,
)

sizes = st.integers(1, 5)


@pytest.mark.parametrize("widths", [((0, 2), (1, 0)), ((5, 7), (4, 0))], ids=str)
@pytest.mark.parametrize("fill", MODES)
@pytest.mark.quick(3)
def test_a_fill_is_numpys(fill, widths):
    """Also further around than the image is long, on sides of one to three pixels."""
    for side in (1, 2, 3):
        images = np.arange(1, 1 + 2 * side * 3).reshape(1, side, 3, 2)
        assert_equal(fill_around(jnp.asarray(images), fill, widths), filled(images, widths, fill))


def test_a_mean_is_that_of_the_image_and_the_channel_in_at_least_float32():
    images = jnp.array([[[1, 10], [2, 20], [6, 60]], [[0, 0], [0, 0], [3, 0]]], jnp.bfloat16)
    filled = fill_around(images, "MEAN", ((1, 2),))
    assert filled.dtype == jnp.float32
    assert_equal(filled[:, 0], [[3, 30], [1, 0]])
    assert_equal(filled[:, -1], [[3, 30], [1, 0]])
    assert_equal(filled[:, 1:4], images)


@pytest.mark.parametrize("name", ["SAME", "SAME_LOWER"])
@given(side=st.integers(1, 9), kernel=sizes, stride=st.integers(1, 4), dilation=st.integers(1, 3))
def test_xlas_rule_is_xlas(name, side, kernel, stride, dilation):
    reach = dilation * (kernel - 1) + 1
    padding = read_padding(name, (kernel,), (dilation,), (stride,))
    expected = lax.padtype_to_pads((side,), (reach,), (stride,), name)
    assert [*padding.at((side,), (stride,))] == expected
    assert padding.output_size((side,), (stride,)) == (-(-side // stride),)


def test_at_stride_two_and_even_sizes_it_is_not_torchs():
    images, kernel = jnp.arange(8.0).reshape(1, 8, 1), jnp.array([1.0, 0, 0]).reshape(3, 1, 1)
    torch, xla = (
        conv(images, kernel, stride=2, padding=p)[0, :, 0] for p in ("SAME_TORCH", "SAME")
    )
    assert torch.tolist() == [0, 1, 3, 5]
    assert xla.tolist() == [0, 2, 4, 6]
    odd = images[:, :7]
    assert_equal(conv(odd, kernel, stride=2), conv(odd, kernel, stride=2, padding="SAME_TORCH"))


# torch 2.11: nn.Conv1d(1, 1, 4, padding="same", dilation=d, padding_mode=…), kernel 1 to 4, 0 to 8.
OF_TORCH = [
    ("SAME", 1, [11, 20, 30, 40, 50, 60, 70, 44, 23]),
    ("SAME", 2, [15, 22, 31, 40, 50, 60, 34, 40, 19]),
    ("SAME", 3, [26, 33, 42, 51, 24, 30, 36, 15, 18]),
    ("CIRCULAR", 3, [47, 39, 49, 59, 24, 34, 44, 27, 37]),
    ("REFLECT", 3, [32, 36, 44, 52, 52, 54, 56, 52, 48]),
    ("EDGE", 3, [26, 33, 42, 51, 56, 62, 68, 71, 74]),
]


@pytest.mark.parametrize(("padding", "dilation", "expected"), OF_TORCH)
def test_even_kernels_with_dilation_are_torchs(padding, dilation, expected):
    images, kernel = jnp.arange(9).reshape(1, 9, 1), jnp.arange(1, 5).reshape(4, 1, 1)
    result = conv(images, kernel, dilation=dilation, padding=padding)
    assert result.ravel().tolist() == expected


@pytest.mark.parametrize("fill", MODES)
@pytest.mark.parametrize(("kernel", "stride", "dilation"), [(2, 3, 1), (4, 2, 3), (5, 1, 2)])
@pytest.mark.quick(4)
def test_same_lays_half_of_the_dilated_kernel_before_at_every_stride(
    fill, kernel, stride, dilation
):
    """The other axis has K = 2 and d = 1."""
    images = np.arange(2 * 6 * 3).reshape(1, 6, 6, 1) % 7
    weights = np.arange(1, 2 * kernel + 1).reshape(kernel, 2, 1, 1)
    total = dilation * (kernel - 1)
    padded = filled(images, ((total // 2, total - total // 2), (0, 1)), fill)
    expected = by_taps(padded, weights, (stride, stride), (dilation, 1))
    name = "SAME_TORCH" if fill == "ZEROS" else fill
    assert_equal(
        conv(images, weights, stride=stride, dilation=(dilation, 1), padding=name), expected
    )


OF_FLAX = ["SAME", "SAME_LOWER", "VALID", "CIRCULAR", "REFLECT", "CAUSAL", ((1, 0),), 2]


@pytest.mark.parametrize("padding", OF_FLAX, ids=str)
@pytest.mark.parametrize(("side", "stride", "dilation"), [(8, 2, 1), (9, 3, 2)])
@pytest.mark.quick(6)
def test_it_is_flaxs(padding, side, stride, dilation):
    theirs = nnx.Conv(
        2, 3, (3,), stride, padding=padding, kernel_dilation=dilation, rngs=nnx.Rngs(0),
        precision="highest",
    )  # fmt: skip
    theirs.kernel[...] = jnp.round(8 * theirs.kernel[...])
    images = jnp.arange(side * 4.0).reshape(2, side, 2) % 5
    kernel = theirs.kernel[...]
    assert_equal(
        conv(images, kernel, stride=stride, dilation=dilation, padding=padding), theirs(images)
    )


@given(
    name=st.sampled_from([*(set(NAMED_PADDINGS) - {"MEAN"})]),
    side=st.integers(3, 9),
    kernel=st.integers(1, 4),
    stride=st.integers(1, 3),
    dilation=st.integers(1, 2),
    patch=st.integers(1, 3),
)
def test_the_filled_ring_holds_what_the_outputs_read(name, side, kernel, stride, dilation, patch):
    """Output i stands at pixel s·i of the first token behind the ring, and reads from there."""
    padding = read_padding(name, (kernel,), (dilation,), (stride,))
    (before, after), (low, high) = padding.at((side,), (stride,))[0], padding.reach[0]
    if side + before + after <= low + high:
        with pytest.raises(ValueError, match="leave no position"):
            padding.output_size((side,), (stride,))
        return
    ring = ((-(-low // patch), -(-(patch - 1 + high) // patch)),)
    (axis,) = filled_axes(padding, (side,), (stride,), (patch,), ring)
    images = jnp.arange(1, side + 1).reshape(1, side, 1)
    ringed = np.asarray(fill_ring(images, padding.fill, (axis,)))[0, :, 0]
    assert len(ringed) == patch * axis.tokens
    expected = filled(images, ((before, after),), padding.fill)[0, :, 0]
    first = patch * axis.queries.start
    for i in range(axis.outputs):
        for tap in range(kernel):
            assert (
                ringed[first + stride * i + dilation * tap - low]
                == expected[stride * i + dilation * tap]
            )
    last = first + stride * (axis.outputs - 1)
    assert last // patch == (axis.queries[-1] if patch > 1 or stride == 1 else last)


@pytest.mark.parametrize(
    ("padding", "axes", "message"),
    [
        ("CAUSAL", 2, "expected a sequence, which has an order"),
        ("circular", 1, "expected one of SAME, SAME_LOWER.*write 'CIRCULAR'"),
        ((1, 2, 3), 2, "or 2 of them"),
        (((1, 2, 3),), 1, "one integer or pair"),
        ((), 1, "expected one of"),
        (((1, -1),), 1, "an integer ≥ 0"),
    ],
)
def test_what_is_no_padding_is_refused(padding, axes, message):
    with pytest.raises(ValueError, match=message):
        read_padding(padding, (3,) * axes, (1,) * axes, (1,) * axes)


def test_a_padding_is_static_under_jit():
    images, kernel = jnp.ones((1, 5, 1)), jnp.ones((3, 1, 1))
    padding = read_padding([(0, 2)], (3,), (1,), (1,))
    run = jax.jit(conv, static_argnames="padding")
    assert_equal(run(images, kernel, padding=padding), conv(images, kernel, padding=[(0, 2)]))


@pytest.mark.quick(2)
@pytest.mark.parametrize("padding", [*NAMED_PADDINGS[:-1], 1, [(0, 2), (3, 0)]], ids=str)
def test_one_exported_convolution_serves_every_size(padding, unchecked):
    sizes = export.symbolic_shape("batch, height, width, 2", constraints=["height>=5", "width>=5"])
    kernel = np.arange(-7, 17, dtype=np.float32).reshape(4, 3, 1, 2)
    options = {"stride": (3, 2), "dilation": (1, 2), "groups": 2, "padding": padding}
    run = jax.jit(partial(conv, kernel=kernel, **options))
    program = export.export(run)(jax.ShapeDtypeStruct(sizes, jnp.float32))
    for shape in ((1, 5, 8, 2), (2, 7, 6, 2)):
        images = np.arange(math.prod(shape), dtype=np.float32).reshape(shape) % 5
        expected = convolution(images, kernel, **options)
        # The sum of a mean may be taken in another order.
        assert_within(program.call(images), expected, 1e-3 if padding == "MEAN" else 0)


@pytest.mark.parametrize("width", [(0, 2), (5, 7)])
@pytest.mark.parametrize("fill", ["CIRCULAR", "REFLECT"])
@pytest.mark.quick(2)
def test_the_places_of_fills_are_those_of_numpy(fill, width):
    """Which are taken where sizes are symbols."""
    for size in (1, 2, 3, 5):
        expected = np.pad(np.arange(size), width, mode=MODES[fill])
        assert outside_places(size, width, fill).tolist() == expected.tolist()


def test_sizes_that_a_kernel_may_not_fit_ask_for_a_constraint(unchecked):
    images = jax.ShapeDtypeStruct(export.symbolic_shape("batch, height, 5, 1"), jnp.float32)
    run = partial(conv, kernel=jnp.ones((3, 3, 1, 1)), padding="VALID")
    with pytest.raises(ValueError, match=r"size=height - 2 .* at least 1.* constraints=\["):
        export.export(jax.jit(run))(images)
