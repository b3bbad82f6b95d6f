"""The products of a network of SAC, against those of the program that it becomes."""

import math
from dataclasses import replace

import jax
import jax.numpy as jnp
import pytest
from flax import nnx

from convattn.lab.models.settings import SelfAttentiveResNetSettings
from convattn.lab.models.sizes import abstract_model, flop_count

TINY = SelfAttentiveResNetSettings(channels=(2, 4), blocks=(2, 1), key_features=3)
KINDS = {
    "convolution": replace(TINY, operator="convolution"),
    "sac": replace(TINY, ordinary=True),
    "msac": replace(TINY, operator="msac", fine_keys=True),
}
IMAGE = (16, 12)


def products(equation) -> int:
    """The multiplications of one operation of a program."""
    if equation.primitive.name == "dot_general":
        (contracted, _), _ = equation.params["dimension_numbers"]
        shape = equation.invars[0].aval.shape
        return math.prod(equation.outvars[0].aval.shape) * math.prod(shape[a] for a in contracted)
    if equation.primitive.name == "conv_general_dilated":
        kernel = equation.invars[1].aval.shape
        return math.prod(equation.outvars[0].aval.shape) * math.prod(kernel[:-1])
    inner = [part for part in equation.params.values() if hasattr(part, "eqns")]
    inner += [part.jaxpr for part in equation.params.values() if hasattr(part, "jaxpr")]
    return sum(products(each) for part in inner for each in part.eqns)


def counted(settings: SelfAttentiveResNetSettings) -> int:
    """The multiplications of the forward pass of one image."""
    graph, state = nnx.split(abstract_model(settings, classes=5, image_size=IMAGE))
    program = jax.make_jaxpr(lambda state, images: nnx.merge(graph, state)(images))(
        state, jax.ShapeDtypeStruct((1, *IMAGE, 3), jnp.float32)
    )
    return sum(products(equation) for equation in program.jaxpr.eqns)


@pytest.mark.parametrize("kind", KINDS)
def test_the_flops_are_twice_the_products_of_the_program(kind):
    found = flop_count(KINDS[kind], classes=5, image_size=IMAGE)
    assert found.total == 2 * counted(KINDS[kind])
    assert (found.mixing > 0) == (found.matching > 0) == (kind != "convolution")
    assert found.total != 2 * counted(replace(KINDS[kind], channels=(2, 5)))


def test_products_with_zeros_may_be_left_out():
    whole = flop_count(KINDS["sac"], classes=5, image_size=IMAGE)
    inside = flop_count(KINDS["sac"], classes=5, image_size=IMAGE, zeros=False)
    assert inside.maps < whole.maps
    assert inside[1:] == whole[1:]
