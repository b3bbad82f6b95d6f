"""What is accepted is true: the whole layer equals the convolution, on random integers."""

import random

import certificate_builder as build
import pytest
from certificate_cases import EQUALITIES
from hypothesis import given, settings
from hypothesis import strategies as st
from layer_by_definition import convolution, grid, layer

from convattn_check import check


def compare(certificate, tokens, channels, seed):
    """The layer's output and the convolution's, on one random image with one random kernel."""
    draw, body = random.Random(seed), certificate["body"]
    sides = [n * p for n, p in zip(tokens, body["patch_size"], strict=True)]
    inputs, outputs = channels
    image = {x: [draw.randint(-9, 9) for _ in range(inputs)] for x in grid(sides)}
    kernel = {
        index: [[draw.randint(-9, 9) for _ in range(outputs)] for _ in range(inputs)]
        for index in grid(body["kernel_size"])
    }
    arguments = body, image, sides, kernel, channels
    return layer(*arguments), convolution(*arguments)


@pytest.mark.parametrize("name", EQUALITIES)
def test_every_accepted_layer_is_the_convolution(name):
    certificate = EQUALITIES[name]
    assert check(build.written(certificate)).accepted
    axes = len(certificate["body"]["kernel_size"])
    outputs, expected = compare(certificate, [2, 1][:axes], (1, 2), name)
    assert outputs == expected


@st.composite
def certificates(draw):
    axes = draw(st.integers(1, 2))
    side = st.integers(1, 3 if axes == 2 else 5)
    kernel = draw(st.lists(side, min_size=axes, max_size=axes))
    patch = draw(st.lists(st.integers(1, 3), min_size=axes, max_size=axes))
    dilation = draw(st.lists(st.integers(1, 3), min_size=axes, max_size=axes))
    route = draw(st.sampled_from(["tokens", "subsample"]))
    strides = [[s for s in range(1, 4) if route == "subsample" or p % s == 0] for p in patch]
    stride = [draw(st.sampled_from(options)) for options in strides]
    sizes = {
        "kernel": kernel,
        "patch": patch,
        "dilation": dilation,
        "stride": stride,
        "route": route,
        "extra_ring": draw(st.integers(0, 1)),
    }
    match draw(st.sampled_from(["leaky", "powers", "lagrange", "enumerated"])):
        case "leaky":
            return build.leaky_equality(leak=draw(st.sampled_from(["1/2", "3/7", "9/10"])), **sizes)
        case "enumerated":
            return build.limit_equality("S.dp2", "enumerated", **sizes)
        case family:
            return build.power_equality(lagrange=family == "lagrange", **sizes)


@settings(deadline=None, max_examples=40)
@given(certificates(), st.integers(1, 2), st.integers(0, 2**32))
def test_every_geometry_is_accepted_and_true(certificate, tokens, seed):
    verdict = check(build.written(certificate))
    assert verdict.accepted, verdict
    axes = len(certificate["body"]["kernel_size"])
    outputs, expected = compare(certificate, [tokens, 1][:axes], (2, 1), seed)
    assert outputs == expected
    assert outputs


@pytest.mark.parametrize("name", ["finite_sequence", "powers", "sequence"])
def test_the_comparison_can_fail(name):
    """A ring too short for the offsets is rejected, and the layer really differs."""
    certificate = build.sealed(EQUALITIES[name])
    certificate["body"]["ring"] = [[0, 0]]
    assert check(build.written(build.sealed(certificate))).code == "ring"
    outputs, expected = compare(certificate, [3], (1, 1), 5)
    assert outputs.keys() == expected.keys()
    assert outputs != expected
