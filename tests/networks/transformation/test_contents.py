"""What a function holds that is not looked into is named, and its convolutions are counted."""

import jax
import pytest
from jax import lax
from jax.extend import core
from networks.transformation.convolutions import convolve, integers

from convattn.networks.transformation.attention_of import attention_of
from convattn.networks.transformation.contents import convolutions_in

IMAGES, KERNEL = integers(2, 6, 5, 3) / 4, integers(3, 3, 3, 3, seed=1) / 16
ORDER = ("NHWC", "HWIO", "NHWC")


def blur(images):
    return convolve(convolve(images, KERNEL), KERNEL)


def exported(images):
    return jax.export.export(jax.jit(blur))(images).call(images)


def symbolic(images):
    """SAME at a stride pads by the size, so that the convolution is a dynamic one."""
    sizes = jax.export.symbolic_shape("b, h, w, 3")

    def strided(x):
        return lax.conv_general_dilated(x, KERNEL, (2, 2), "SAME", dimension_numbers=ORDER)

    shape = jax.ShapeDtypeStruct(sizes, images.dtype)
    return jax.export.export(jax.jit(strided))(shape).call(images)


def shared(images):
    """One function of StableHLO that is called three times."""
    helper = jax.jit(lambda x: convolve(x, KERNEL))
    return jax.export.export(jax.jit(lambda x: helper(helper(helper(x)))))(images).call(images)


def foreign(images):
    """A program of someone else in an exported function."""
    call = jax.ffi.ffi_call("own_program", jax.ShapeDtypeStruct(images.shape, images.dtype))
    allowed = [jax.export.DisabledSafetyCheck.custom_call("own_program")]
    return jax.export.export(jax.jit(call), disabled_checks=allowed)(images).call(images)


def composite(images):
    return lax.composite(blur, "blur")(images)


def called(images):
    return jax.pure_callback(lambda x: x, jax.ShapeDtypeStruct(images.shape, images.dtype), images)


opaque = core.Primitive("opaque")
opaque.def_impl(lambda images: images)
opaque.def_abstract_eval(lambda images: images)


@pytest.mark.parametrize(
    ("part", "lines"),
    [
        (exported, ["a convolution inside call_exported"] * 2),
        (symbolic, ["a convolution inside call_exported"]),
        (shared, ["a convolution inside call_exported"] * 3),
        (composite, ["kernel (3, 3, 3, 3) inside composite"] * 2),
        (called, ["inside pure_callback, which is not seen into"]),
        (opaque.bind, ["inside opaque, which is not seen into"]),
        (lambda images: jax.jit(called)(images), ["inside pure_callback, which is not seen into"]),
        (lambda images: jax.debug.print("{}", images[0, 0, 0, 0]) or images, []),
    ],
)
def test_what_is_not_looked_into_is_named(part, lines):
    def function(images):
        with jax.named_scope("part"):
            images = part(images)
        return convolve(images, KERNEL)

    report = attention_of(function, IMAGES).report
    assert report.left == tuple(f"part: {line}" for line in lines)
    count = sum("convolution" in line or "kernel" in line for line in lines)
    words = "convolutions are left" if count > 1 else "convolution is left"
    assert (f"{count} {words}" in str(report)) == (count > 0)
    if count:
        with pytest.raises(ValueError, match="strict=True, but the convolution part"):
            attention_of(function, IMAGES, strict=True)


def test_a_foreign_program_in_an_exported_function_is_named():
    jaxpr = jax.make_jaxpr(foreign)(IMAGES).jaxpr
    lines = [*convolutions_in(jaxpr)]
    assert lines == ["inside own_program of call_exported, which is not seen into"]
