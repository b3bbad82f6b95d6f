"""jax.export with symbolic sizes: one program for every number of images, or every size of them."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from comparison import assert_within
from convolution_in_numpy import convolution
from flax import nnx
from jax import export

from convattn.constructions.conversion import conv_to_attention
from convattn.fast.application import apply_attention, attention_maps
from convattn.fast.selection import BACK_ENDS
from convattn.nnx import AttentionConv

pytestmark = pytest.mark.usefixtures("unchecked")  # jaxtyping knows no symbols
KERNEL = np.arange(9.0, dtype=np.float32).reshape(3, 3, 1, 1) - 4
SIZES = "batch, height, width, 2"
ENCODINGS = {
    "auto": "bias", "dense": "bias", "shift": "bias", "windowed": "bias", "chunked": "bias",
    "separable": "quadratic",
}  # fmt: skip


def program_of(function, sizes, constraints=()):
    """The exported function for images of symbolic sizes."""
    shape = export.symbolic_shape(sizes, constraints=constraints)
    return export.export(jax.jit(function))(jax.ShapeDtypeStruct(shape, jnp.float32))


def images_of(*shape):
    return np.arange(np.prod(shape), dtype=np.float32).reshape(shape) % 5


def assert_exported(function, sizes, shapes, expected, bound=1e-3, constraints=()):
    """The exported function gives on images of each shape what is expected of them."""
    program = program_of(function, sizes, constraints)
    for shape in shapes:
        right = np.asarray(expected(images_of(*shape)))
        assert np.abs(right).max() > 1
        assert_within(program.call(images_of(*shape)), right, bound)


@pytest.mark.parametrize("backend", ENCODINGS)
@pytest.mark.quick(2)
def test_back_ends(backend):
    layer = conv_to_attention(KERNEL, encoding=ENCODINGS[backend])
    run = lambda images: apply_attention(layer, images, backend=backend)  # noqa: E731
    assert_exported(run, "batch, 4, 5, 1", [(3, 4, 5, 1)], lambda x: convolution(x, KERNEL))


def test_every_back_end_that_serves_layers_of_convolutions_is_in_the_table():
    assert {*BACK_ENDS} - {*ENCODINGS} == {"dot_product"}  # it needs content scores


@pytest.mark.slow
def test_rotary_layers_are_separable():
    layer = conv_to_attention(KERNEL, encoding="rotary")
    run = lambda images: apply_attention(layer, images, backend="separable")  # noqa: E731
    assert_exported(run, "batch, 4, 5, 1", [(3, 4, 5, 1)], lambda x: convolution(x, KERNEL))


OPTIONS = [
    {"stride": 2}, {"stride": (1, 3), "dilation": 2}, {"padding": "REFLECT"}, {"padding": "MEAN"},
    {"padding": "CIRCULAR", "stride": 2}, {"padding": "SAME", "stride": 3},
    {"padding": [(1, 1), (0, 2)]}, {"patch_size": 2}, {"padding": "EDGE", "patch_size": 3},
    {"encoding": "enumerated"}, {"encoding": "polygon"}, {"padding": "VALID"},
]  # fmt: skip


@pytest.mark.quick(2)
@pytest.mark.parametrize("options", OPTIONS, ids=str)
def test_heads_at_few_offsets_serve_every_size(options):
    """Of integers, but for means and the weights of a polygon."""
    kernel = np.arange(54, dtype=np.float32).reshape(3, 3, 2, 3) % 7 - 3
    layer = conv_to_attention(kernel, kernel[0, 0, 0], form="limit", **options)
    backend = "shift" if options == {"stride": 2} else "auto"
    step = layer.patch_size[0] if layer.padding is None else 1
    plain = {n: part for n, part in options.items() if n in ("padding", "stride", "dilation")}
    assert_exported(
        lambda images: apply_attention(layer, images, backend=backend),
        f"batch, {step}*height, {step}*width, 2",
        [(1, 6, 8, 2), (3, 10, 4, 2)],
        lambda images: convolution(images, kernel, kernel[0, 0, 0], **plain),
        1e-3 if {"MEAN", "polygon"} & {*map(str, options.values())} else 0,
        ["height >= 3", "width >= 3"] if options.get("padding") == "VALID" else (),
    )


@pytest.mark.parametrize("padding", ["SAME", "VALID"])
def test_the_exact_form_serves_every_size(padding):
    """Its weights depend on the number of keys, which is then a number of the program.

    Without padding the number of queries is a product of differences, which has no known sign.
    """
    layer = conv_to_attention(KERNEL, padding=padding)
    assert_exported(
        lambda images: apply_attention(layer, images),
        "batch, height, width, 1",
        [(1, 4, 5, 1), (2, 7, 3, 1)],
        lambda images: convolution(images, KERNEL, padding=padding),
        constraints=["height >= 3", "width >= 3"],
    )


@pytest.mark.parametrize(("form", "stride"), [("exact", 1), ("limit", 2)])
@pytest.mark.quick(1)
def test_causal_layers_serve_every_length(form, stride):
    kernel = np.arange(24, dtype=np.float32).reshape(4, 2, 3) % 7 - 3
    options = {"padding": "CAUSAL", "stride": stride, "dilation": 2}
    layer = conv_to_attention(kernel, kernel[0, 0], causal=True, form=form, **options)
    assert_exported(
        lambda tokens: apply_attention(layer, tokens),
        "batch, length, 2",
        [(1, 8, 2), (3, 13, 2)],
        lambda tokens: convolution(tokens, kernel, kernel[0, 0], **options),
        constraints=["length >= 8"],
    )


@pytest.mark.parametrize(
    ("options", "sizes"),
    [
        ({"strides": 2, "feature_group_count": 2, "padding": "REFLECT"}, "batch, 6, 7, 2"),
        ({"strides": 2, "form": "limit"}, SIZES),
        ({"feature_group_count": 2, "padding": "CIRCULAR", "form": "limit"}, SIZES),
    ],
)
@pytest.mark.quick(1)
def test_modules(options, sizes):
    groups = options.get("feature_group_count", 1)
    kernel = np.arange(36 // groups, dtype=np.float32).reshape(3, 3, 2 // groups, 2) % 7 - 3
    plain = {"stride": options.get("strides", 1), "padding": options.get("padding", "SAME")}
    assert_exported(
        AttentionConv.from_kernel(kernel, **options),
        sizes,
        [(2, 6, 7, 2)],
        lambda images: convolution(images, kernel, groups=groups, **plain),
    )


@pytest.mark.parametrize("backend", ["auto", *BACK_ENDS])
def test_other_back_ends_ask_for_concrete_sizes(backend):
    encoding = "quadratic" if backend in ("auto", "shift") else "bias"
    layer = conv_to_attention(jnp.ones((3, 3, 2, 1)), encoding=encoding)
    with pytest.raises(ValueError, match="symbolic sizes") as error:
        program_of(lambda images: apply_attention(layer, images, backend=backend), SIZES)
    message = str(error.value)
    assert message.startswith(
        f"images of symbolic sizes, tokens (height, width), but backend={backend!r} expected "
    )
    assert ("take backend='shift'" in message) == (encoding == "bias")


def test_refusals_of_symbolic_sizes():
    layer = conv_to_attention(jnp.ones((3, 3, 2, 1)))
    patches = conv_to_attention(jnp.ones((3, 3, 2, 1)), patch_size=2)
    module = AttentionConv(2, 1, (3, 3), padding="CIRCULAR", backend="dense", rngs=nnx.Rngs(0))
    windows = [((0, 0),) * 2] * 10
    for run, message in (
        (module, r"symbolic sizes, tokens \(height \+ 2, width"),
        (lambda images: attention_maps(layer, images).weights, "symbolic sizes.*weights of every"),
        (lambda images: apply_attention(layer, images, border="none"), "symbolic.*every offset"),
        (lambda i: apply_attention(layer, i, backend="windowed", windows=windows), "windowed"),
        (lambda images: apply_attention(patches, images), r"patch_size=\(2, 2\).*'2\*height'"),
    ):
        with pytest.raises(ValueError, match=message):
            program_of(run, SIZES)
