"""Figure 5: what two layers compute in the browser is what `conv_to_two_layers` computes."""

from dataclasses import replace
from typing import Any

import jax.numpy as jnp
import numpy as np
import pytest
from browser import wait_until
from ledger.page.test_figures import image, near, spread

import convattn as ca
from convattn.constructions.two_layers import conv_to_two_layers
from convattn_ledger.page.figure_data import KERNELS

pytestmark = pytest.mark.browser
LAYERS = """([kernel, form, last]) => {
    const network = convattn.twoLayers(convattn.readImage("horse"), kernel, form, last);
    const pixels = (all) => all.map(({ output }) => Array.from(output.pixels));
    return {
        blocks: pixels(network.blocks), heads: pixels(network.heads),
        sum: Array.from(network.sum.pixels),
        left: Array.from(network.leaked, (value) => value * network.left),
    };
}"""
# Without the frame of zeros, layer 2 sees blocks that lack rows of the image.
UNFRAMED = f"""(given) => {{
    const kept = convattn.framed;
    convattn.framed = (image) => image;
    try {{ return ({LAYERS})(given); }} finally {{ convattn.framed = kept; }}
}}"""
FORMS: list[dict[str, float]] = [
    {"leak": 0.5},
    {"leak": 0.03},
    {"logit": 8.0},
    {"logit": 104.0},
]


def horse() -> jnp.ndarray:
    """The image of all tests."""
    return jnp.asarray(image("horse"))


def layers_of(kernel: list[list[float]], form: dict[str, float]) -> Any:
    """The library's two layers."""
    if "leak" in form:
        return conv_to_two_layers(spread(kernel), uniform_weight=form["leak"])
    return conv_to_two_layers(spread(kernel), form="limit", sharpness=form["logit"])


def each_head(layer: Any, inputs: Any) -> list[Any]:
    """What each head of a layer adds to its output."""
    heads = range(layer.heads)
    alone = [jnp.zeros_like(layer.output).at[head].set(layer.output[head]) for head in heads]
    return [ca.apply_attention(replace(layer, output=output), inputs) for output in alone]


@pytest.mark.parametrize("form", FORMS, ids=str)
def test_each_step_is_that_of_the_library(page: Any, form: dict[str, float]) -> None:
    for name in ("Sobel", "blur, 5 × 5"):
        layers = layers_of(KERNELS[name], form)
        figure = page.evaluate(LAYERS, [KERNELS[name], form, "both"])
        assert (len(figure["blocks"]), len(figure["heads"])) == layers.heads
        padded = layers.padded(horse())
        blocks = each_head(layers.first, padded)
        for a, (block, expected) in enumerate(zip(figure["blocks"], blocks, strict=True)):
            assert near(block, expected[..., 3 * a : 3 * a + 3])
        second = layers.second_at(padded.shape[1:3])
        heads = each_head(second, sum(blocks))
        for head, expected in zip(figure["heads"], heads, strict=True):
            assert near(head, layers.cropped(expected))
        expected = np.asarray(layers(horse()))
        assert near(figure["sum"], expected)
        assert not near(figure["sum"], expected + 1e-6)


def test_a_wrong_layer_is_another(page: Any) -> None:
    expected = layers_of(KERNELS["Sobel"], FORMS[0])(horse())
    turned = np.transpose(KERNELS["Sobel"]).tolist()
    assert near(page.evaluate(LAYERS, [KERNELS["Sobel"], FORMS[0], "both"])["sum"], expected)
    assert not near(page.evaluate(LAYERS, [turned, FORMS[0], "both"])["sum"], expected)
    blur = layers_of(KERNELS["blur"], FORMS[0])(horse())
    assert near(page.evaluate(LAYERS, [KERNELS["blur"], FORMS[0], "both"])["sum"], blur)
    assert not near(page.evaluate(UNFRAMED, [KERNELS["blur"], FORMS[0], "both"])["sum"], blur)


@pytest.mark.parametrize("form", FORMS[:2], ids=str)
def test_another_last_head_leaves_what_the_page_says(page: Any, form: dict[str, float]) -> None:
    kernel = KERNELS["blur"]
    layers, pixels = layers_of(kernel, form), horse()
    between = ca.apply_attention(layers.first, layers.padded(pixels))
    without = replace(layers.second, output=layers.second.output.at[-1].set(0))
    expected = np.asarray(ca.conv(pixels, spread(kernel)))
    # The library keeps layer 2 with the gain of a layer that stands alone.
    for last, second in (("alone", layers.second), ("none", without)):
        figure = page.evaluate(LAYERS, [kernel, form, last])
        sums = np.asarray(layers.cropped(ca.apply_attention(second, between)))
        assert near(figure["sum"], sums)
        assert near(sums, expected + 16 * np.asarray(figure["left"]))
        assert not near(sums, expected)
    assert np.max(np.abs(page.evaluate(LAYERS, [kernel, form, "both"])["left"])) < 1e-12


def test_the_controls_drive_the_figure(page: Any) -> None:
    error = page.locator("#error-5")
    includes = "document.getElementById('text-5').textContent.includes"

    def canvases() -> list[int]:
        return [page.locator(f"#{name}-5 canvas").count() for name in ("blocks", "heads", "sums")]

    page.select_option("#preset", "blur")
    wait_until(page, f"{includes}('of both layers')")
    assert float(error.get_attribute("data-value")) < 1e-9
    assert canvases() == [4, 16, 4]
    assert "10" in page.inner_text("#counts-5")
    assert "3 + 4 = 7" in page.inner_text("#counts-5")
    page.select_option("#last-5", "alone")
    wait_until(page, f"{includes}('of layer 2 alone')")
    pixels = horse()
    # c = 1 for ε = 1/2; m/N_1 over the 36 · 34 keys of layer 1.
    largest = 16 * float(pixels.sum((0, 1, 2)).max()) / (36 * 34)
    assert float(error.get_attribute("data-value")) == pytest.approx(largest, abs=1e-9)
    page.select_option("#last-5", "none")
    wait_until(page, f"{includes}('Without the last head')")
    assert canvases() == [4, 12, 4]
    page.select_option("#form-5", "logit")
    page.locator("#strength-5").fill("300")  # M = 10 ** 0.9, in two digits
    wait_until(page, "document.getElementById('error-5').dataset.strength == '7.9'")
    layers = layers_of(KERNELS["blur"], {"logit": 7.9})
    gap = np.asarray(layers(pixels)) - np.asarray(ca.conv(pixels, spread(KERNELS["blur"])))
    figure = float(error.get_attribute("data-value"))
    assert figure == pytest.approx(float(np.abs(gap).max()), abs=1e-9)
    assert canvases() == [3, 12, 4]
    assert page.locator("#last-5").is_disabled()
    page.select_option("#kernel-size", "5")
    wait_until(page, "document.querySelectorAll('#heads-5 canvas').length === 30")
    assert "5 + 6 = 11" in page.inner_text("#counts-5")
