import jax
import jax.numpy as jnp
import numpy as np
import pytest
from comparison import assert_dtype, assert_equal
from structures.basis_cases import case, slow_convolution

from convattn.structures import (
    controlled_convolution,
    controlled_theta,
    grouped_convolution,
    grouped_theta,
    parameter_count,
    saves,
    separable_convolution,
    separable_theta,
)

CHANNELS = [(2, 6), (6, 2)]  # both ways of applying


def parameters(form: str, size: int, channels: tuple[int, int]) -> tuple[np.ndarray, ...]:
    rng = np.random.default_rng(3)
    p, q = channels
    shapes = {
        "grouped": [(size, 2, p // 2, q // 2)],
        "separable": [(size, p), (p, q)],
        "controlled": [(5, size), (5, p, q)],
    }
    return tuple(rng.integers(-5, 6, shape) for shape in shapes[form])


FORMS = {
    "grouped": (grouped_theta, grouped_convolution),
    "separable": (separable_theta, separable_convolution),
    "controlled": (controlled_theta, controlled_convolution),
}


@pytest.mark.slow
@pytest.mark.parametrize("channels", CHANNELS)
@pytest.mark.parametrize("form", FORMS)
@pytest.mark.parametrize("name", ["dense", "grid"])
def test_applying_is_convolving_with_theta(name, form, channels) -> None:
    basis, matrices = case(name)
    build, apply = FORMS[form]
    given = parameters(form, basis.size, channels)
    theta = np.asarray(build(*given))
    assert theta.shape == (basis.size, *channels)
    x = np.random.default_rng(4).integers(-5, 6, (3, basis.inputs, channels[0]))
    typed = [jnp.asarray(part, jnp.float32) for part in (x, *given)]
    result = jax.jit(apply)(typed[0], basis, *typed[1:])
    assert_equal(result, slow_convolution(matrices, x, theta))


@pytest.mark.parametrize("form", FORMS)
def test_half_types_are_summed_in_float32(form) -> None:
    basis, _ = case("sequence")
    given = [jnp.ones(part.shape, jnp.bfloat16) for part in parameters(form, 4, (512, 2))]
    result = FORMS[form][1](jnp.ones((1, 6, 512), jnp.bfloat16), basis, *given)
    assert_dtype(result, jnp.bfloat16)
    assert_equal(result, FORMS[form][1](np.ones((1, 6, 512)), basis, *map(np.asarray, given)))


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda b: grouped_theta(np.ones((2, 3))), r"blocks\.shape=\(2, 3\), but expected"),
        (lambda b: separable_theta(np.ones((3, 2)), np.ones((3, 2))), "has 2 input channels"),
        (lambda b: controlled_theta(np.ones((2, 3)), np.ones((3, 1, 1))), "should begin with H"),
        (
            lambda b: separable_convolution(
                np.ones((1, 7, 2)), b, np.ones((4, 2)), np.ones((2, 1))
            ),
            "of size 4, but the basis has size 3",
        ),
        (
            lambda b: separable_convolution(
                np.ones((1, 7, 3)), b, np.ones((3, 2)), np.ones((2, 1))
            ),
            r"x\.shape=\(1, 7, 3\), but expected \(batch, 7, 2\)",
        ),
        (
            lambda b: grouped_convolution(np.ones((1, 7, 2)), b, np.ones((3, 2, 0, 1))),
            "all at least 1",
        ),
        (
            lambda b: controlled_convolution(
                np.ones((7, 2)), b, np.ones((1, 3)), np.ones((1, 2, 1))
            ),
            r"expected \(batch, 7, 2\)",
        ),
    ],
)
def test_what_does_not_fit_is_refused(call, message) -> None:
    with pytest.raises(ValueError, match=message):
        call(case("dense")[0])


@pytest.mark.parametrize("channels", CHANNELS)
@pytest.mark.parametrize("form", FORMS)
def test_an_empty_batch_is_an_empty_batch(form, channels) -> None:
    basis, _ = case("grid")
    given = parameters(form, basis.size, channels)
    x = jax.ShapeDtypeStruct((0, basis.inputs, channels[0]), "float32")
    out = jax.eval_shape(lambda x: FORMS[form][1](x, basis, *given), x)
    assert out.shape == (0, basis.outputs, channels[1])


def test_counts() -> None:
    assert parameter_count(9, 4, 6) == 216
    assert parameter_count(9, 4, 6, groups=2) == 108
    assert parameter_count(9, 4, 6, separable=True) == 60
    assert parameter_count(9, 4, 6, controls=3) == 99


def test_when_they_save() -> None:
    assert [saves(9, 3, 3, controls=h) for h in (1, 4, 5, 9)] == [True, True, False, False]
    assert [saves(4, 1, q, controls=3) for q in (12, 13)] == [False, True]  # PQ > K(K - 1)
    assert [saves(2, 7, q, separable=True) for q in (2, 3)] == [False, True]
    assert [saves(1, 6, 6, groups=n) for n in (1, 2)] == [False, True]


@pytest.mark.parametrize(
    ("arguments", "options", "message"),
    [
        ((0, 1, 1), {}, "integer ≥ 1"),
        ((9.5, 6, 4), {}, "size=9.5"),
        ((9, True, 4), {}, "in_channels=True"),
        ((9, 6, 4), {"groups": 2.0}, "groups=2.0"),
        ((1, 1, 1), {"controls": 0}, "integer ≥ 1"),
        ((1, 4, 6), {"groups": 4}, "divide both 4 input and 6 output"),
        ((1, 4, 6), {"groups": 2, "separable": True}, "Θ has one form"),
        ((1, 4, 6), {"groups": 2, "controls": 2}, "Θ has one form"),
    ],
)
def test_what_is_no_form_is_refused(arguments, options, message, unchecked) -> None:
    with pytest.raises(ValueError, match=message):
        parameter_count(*arguments, **options)
