"""jax.export with symbolic sizes: one program for every number of images, or every size of them."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from comparison import assert_within
from flax import nnx
from jax import export

from convattn.constructions.conversion import conv_to_attention
from convattn.fast.application import apply_attention, attention_maps
from convattn.fast.selection import BACK_ENDS
from convattn.nnx import AttentionConv

pytestmark = pytest.mark.usefixtures("unchecked")  # jaxtyping knows no symbols
KERNEL = np.arange(9.0, dtype=np.float32).reshape(3, 3, 1, 1) - 4
(BATCH,) = export.symbolic_shape("batch")
ENCODINGS = {
    "auto": "bias", "dense": "bias", "shift": "bias", "windowed": "bias", "chunked": "bias",
    "separable": "quadratic",
}  # fmt: skip


def of_every_batch(function, *sides):
    """The exported function on one and on three images, against the function itself."""
    exported = export.export(jax.jit(function))(jax.ShapeDtypeStruct((BATCH, *sides), jnp.float32))
    for count in (1, 3):
        images = jnp.arange(count * np.prod(sides), dtype=jnp.float32).reshape(count, *sides) % 5
        expected = function(images)
        assert_within(exported.call(images), expected, np.full(expected.shape, 1e-4))
        assert float(jnp.abs(expected).max()) > 1


@pytest.mark.parametrize("backend", ENCODINGS)
def test_back_ends(backend):
    layer = conv_to_attention(KERNEL, encoding=ENCODINGS[backend])
    of_every_batch(lambda images: apply_attention(layer, images, backend=backend), 4, 5, 1)


def test_every_back_end_that_serves_layers_of_convolutions_is_in_the_table():
    assert {*BACK_ENDS} - {*ENCODINGS} == {"dot_product"}  # it needs content scores


@pytest.mark.slow
def test_rotary_layers_are_separable():
    layer = conv_to_attention(KERNEL, encoding="rotary")
    of_every_batch(lambda images: apply_attention(layer, images, backend="separable"), 4, 5, 1)


def test_modules_with_strides_groups_and_a_filled_ring():
    options = {"feature_group_count": 2, "padding": "REFLECT", "rngs": nnx.Rngs(0)}
    strided = AttentionConv(1, 2, (3, 3), strides=2, rngs=nnx.Rngs(0))
    net = nnx.Sequential(strided, AttentionConv(2, 2, (3, 3), **options))
    of_every_batch(net, 6, 7, 1)


SIZES = "batch, height, width, 2"
OPTIONS = [
    {"stride": 2}, {"stride": (1, 3), "dilation": 2}, {"padding": "REFLECT"}, {"padding": "MEAN"},
    {"padding": "CIRCULAR", "stride": 2}, {"padding": "SAME", "stride": 3},
    {"padding": [(1, 1), (0, 2)]}, {"patch_size": 2}, {"padding": "EDGE", "patch_size": 3},
    {"encoding": "enumerated"}, {"encoding": "polygon"}, {"padding": "VALID"},
]  # fmt: skip


def of_every_size(function, sizes, shapes, constraints=()):
    """The exported function on images of each shape, and the function itself on them."""
    program = export.export(jax.jit(function))(
        jax.ShapeDtypeStruct(export.symbolic_shape(sizes, constraints=constraints), jnp.float32)
    )
    for shape in shapes:
        images = jnp.arange(np.prod(shape), dtype=jnp.float32).reshape(shape) % 5
        yield program.call(images), function(images)


@pytest.mark.parametrize("backend", ["auto", "shift"])
@pytest.mark.parametrize("options", OPTIONS, ids=str)
def test_heads_at_few_offsets_serve_every_size(backend, options):
    kernel = jnp.arange(54, dtype=jnp.float32).reshape(3, 3, 2, 3) % 7 - 3
    layer = conv_to_attention(kernel, kernel[0, 0, 0], form="limit", **options)
    step = layer.patch_size[0] if layer.padding is None else 1
    shapes = [(1, 6, 8, 2), (3, 10, 4, 2)]
    run = lambda images: apply_attention(layer, images, backend=backend)  # noqa: E731
    sizes = f"batch, {step}*height, {step}*width, 2"
    sides = ["height >= 3", "width >= 3"] if options.get("padding") == "VALID" else []
    for result, expected in of_every_size(run, sizes, shapes, sides):
        if options.get("padding") == "MEAN" or options.get("encoding") == "polygon":
            assert_within(result, expected, np.full(expected.shape, 1e-3))
        else:
            assert result.tolist() == expected.tolist()
        assert float(jnp.abs(expected).max()) > 1


@pytest.mark.parametrize("padding", ["SAME", "VALID"])
def test_the_exact_form_serves_every_size(padding):
    """Its weights depend on the number of keys, which is then a number of the program.

    Without padding the number of queries is a product of differences, which has no known sign.
    """
    layer = conv_to_attention(KERNEL, padding=padding)
    sizes, shapes = "batch, height, width, 1", [(1, 4, 5, 1), (2, 7, 3, 1)]
    run = lambda images: apply_attention(layer, images)  # noqa: E731
    sides = ["height >= 3", "width >= 3"]
    for result, expected in of_every_size(run, sizes, shapes, sides):
        assert_within(result, expected, np.full(expected.shape, 1e-4))
        assert float(jnp.abs(expected).max()) > 1


@pytest.mark.parametrize(("form", "stride"), [("exact", 1), ("limit", 2)])
def test_causal_layers_serve_every_length(form, stride):
    kernel = jnp.arange(24, dtype=jnp.float32).reshape(4, 2, 3) % 7 - 3
    options = {"padding": "CAUSAL", "causal": True, "stride": stride, "form": form}
    layer = conv_to_attention(kernel, kernel[0, 0], dilation=2, **options)
    run = lambda tokens: apply_attention(layer, tokens)  # noqa: E731
    shapes = [(1, 8, 2), (3, 13, 2)]
    for result, expected in of_every_size(run, "batch, length, 2", shapes, ["length >= 8"]):
        assert_within(result, expected, np.full(expected.shape, 1e-4))
        assert float(jnp.abs(expected).max()) > 1


def test_modules_serve_every_size():
    options = {
        "feature_group_count": 2,
        "padding": "CIRCULAR",
        "form": "limit",
        "rngs": nnx.Rngs(0),
    }
    strided = AttentionConv(2, 2, (3, 3), strides=2, form="limit", rngs=nnx.Rngs(0))
    net = nnx.Sequential(strided, AttentionConv(2, 2, (3, 3), **options))
    for result, expected in of_every_size(net, SIZES, [(1, 6, 7, 2), (2, 9, 4, 2)]):
        assert_within(result, expected, np.full(expected.shape, 1e-4))
        assert float(jnp.abs(expected).max()) > 1


@pytest.mark.parametrize("backend", ["auto", *BACK_ENDS])
def test_other_back_ends_ask_for_concrete_sizes(backend):
    encoding = "quadratic" if backend in ("auto", "shift") else "bias"
    layer = conv_to_attention(jnp.ones((3, 3, 2, 1)), encoding=encoding)
    with pytest.raises(ValueError) as error:
        list(of_every_size(lambda i: apply_attention(layer, i, backend=backend), SIZES, []))
    message = str(error.value)
    assert message.startswith(
        f"images of symbolic sizes, tokens (height, width), but backend={backend!r} expected "
    )
    assert ("take backend='shift'" in message) == (encoding == "bias")
    module = AttentionConv(2, 1, (3, 3), padding="CIRCULAR", backend=backend, rngs=nnx.Rngs(0))
    if encoding == "bias":
        with pytest.raises(ValueError, match=r"symbolic sizes, tokens \(height \+ 2, width"):
            list(of_every_size(module, SIZES, []))


def test_maps_and_narrow_rings_ask_for_concrete_sizes():
    layer = conv_to_attention(jnp.ones((3, 3, 2, 1)))
    for run, expected in (
        (lambda images: attention_maps(layer, images).weights, "weights of every query and key"),
        (lambda images: apply_attention(layer, images, border="none"), "do not see every offset"),
        (lambda i: apply_attention(layer, i, backend="windowed", windows=[((0, 0),) * 2] * 10),
         "windowed"),
    ):  # fmt: skip
        with pytest.raises(ValueError, match=f"symbolic sizes.*{expected}"):
            list(of_every_size(run, SIZES, []))


def test_patches_must_divide_symbolic_sides():
    layer = conv_to_attention(jnp.ones((3, 3, 2, 1)), patch_size=2)
    with pytest.raises(ValueError, match=r"patch_size=\(2, 2\) divides.*'2\*height'"):
        list(of_every_size(lambda images: apply_attention(layer, images), SIZES, []))
