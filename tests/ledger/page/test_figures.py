"""What the figures compute in the browser is what the library computes."""

import json
from itertools import product
from typing import Any

import jax.numpy as jnp
import numpy as np
import pytest
from browser import wait_until

import convattn as ca
from convattn.bounds.flattened_kernel import flattened_kernel
from convattn.data.cifar10_slice import load_cifar10_slice
from convattn_ledger.bounds.vision_transformers import heads_table
from convattn_ledger.page.compiled_figure import NAMES
from convattn_ledger.page.figure_data import IMAGES, KERNELS, figure_data

pytestmark = pytest.mark.browser
FORMS: dict[str, dict[str, Any]] = {
    "leak": {"encoding": "bias", "form": "exact"},
    "logit": {"encoding": "bias", "form": "limit"},
    "alpha": {"encoding": "quadratic", "form": "limit"},
}


def image(name: str) -> np.ndarray:
    """The image that the page calls by this name."""
    test = load_cifar10_slice("test")
    return test.images[test.labels == dict(IMAGES)[name]][:1].astype(np.float64)


def spread(kernel: list[list[float]]) -> np.ndarray:
    """The kernel for each of three channels by itself."""
    return np.asarray(kernel, np.float64)[:, :, None, None] * np.eye(3)


def near(result: Any, expected: Any) -> bool:
    """Both sum at most a few thousand float64 products of numbers up to 255 times the kernel."""
    expected = np.asarray(expected)
    return bool(np.allclose(np.reshape(result, expected.shape), expected, rtol=0, atol=1e-9))


@pytest.mark.parametrize(
    ("kind", "strength"),
    [
        ("leak", 0.5),
        ("leak", 1e-6),
        ("logit", 8.0),
        ("logit", 104.0),
        ("alpha", 0.7),
        ("alpha", 30.0),
    ],
)
def test_the_layers_are_those_of_the_library(page: Any, kind: str, strength: float) -> None:
    pixels = image("horse")
    for name in ("Sobel", "blur, 5 × 5"):
        layer = ca.conv_to_attention(
            spread(KERNELS[name]),
            **FORMS[kind],
            **{"uniform_weight" if kind == "leak" else "sharpness": strength},
        )
        result = page.evaluate(
            """([kernel, kind, strength]) => {
                const image = convattn.readImage("horse");
                const form = convattn.layerForm(kind, strength);
                const heads = convattn.heads(image, kernel, form, "zero");
                return [heads.length, Array.from(convattn.sumOfHeads(heads, image).pixels)];
            }""",
            [KERNELS[name], kind, strength],
        )
        assert result[0] == layer.heads
        expected = np.asarray(ca.apply_attention(layer, pixels))
        assert near(result[1], expected)
        assert not near(result[1], expected + 1e-6)


def test_the_paddings_are_those_of_the_library(page: Any) -> None:
    names = {"zero": "SAME", "edge": "EDGE", "mean": "MEAN", "circular": "CIRCULAR"}
    pixels = image("ship")
    for padding, name in names.items():
        result = page.evaluate(
            """([kernel, padding]) => Array.from(
                convattn.convolution(convattn.readImage("ship"), kernel, padding).pixels)""",
            [KERNELS["emboss"], padding],
        )
        assert near(result, ca.conv(pixels, spread(KERNELS["emboss"]), padding=name))


def test_each_layer_computes_one_padding(page: Any) -> None:
    errors = page.evaluate(
        """(kernel) => convattn.borderErrors(convattn.readImage("frog"), kernel)
            .map(({ errors }) => errors)""",
        KERNELS["emboss"],
    )
    assert [[error < 1e-9 for error in row] for row in errors] == [
        [False, True, False, False],
        [False, False, True, False],
        [True, False, False, False],
        [False, False, False, True],
    ]


def test_the_head_counts_are_those_of_the_library(page: Any) -> None:
    sizes = list(product(range(1, 16), (1, 2, 3, 7, 16), ((1, 1), (3, 3), (2, 5)), (None, 1, 32)))
    result = page.evaluate(
        "(all) => all.map(([k, p, [i, o], w]) => convattn.headCounts(k, p, i, o, w))", sizes
    )
    for (kernel, patch, (inputs, outputs), width), counts in zip(sizes, result, strict=True):
        expected = ca.count_heads(
            kernel, patch_size=patch, in_channels=inputs, out_channels=outputs, head_dim=width
        )
        bounded, enough = expected.limit.bounded, expected.limit.bounded_sufficient
        assert counts == {
            "offsets": expected.offsets,
            "rank": expected.rank,
            "limit": [int(expected.limit.necessary), int(expected.limit.sufficient)],
            "exact": [int(expected.exact.necessary), int(expected.exact.sufficient)],
            "bounded": None if bounded is None else int(bounded),
            "boundedSufficient": None if enough is None else int(enough),
        }


def test_the_models_are_judged_as_the_library_judges_them(page: Any) -> None:
    for size in (3, 5, 7):
        result = page.evaluate(
            """(size) => JSON.parse(document.getElementById("figure-data").textContent).models
                .map((model) => [model.model, convattn.enough(model,
                    convattn.headCounts(size, model.patch, 3, 3, model.width))])""",
            size,
        )
        assert result == [[row.size.model, row.enough] for row in heads_table((size,))]


@pytest.mark.parametrize(("patch", "channels"), [(1, 1), (2, 1), (1, 3), (3, 3)])
def test_the_errors_are_the_singular_values(page: Any, patch: int, channels: int) -> None:
    kernel = np.asarray(KERNELS["emboss"], np.float64)
    turns = np.arange(channels**2).reshape(channels, channels)
    turned = np.stack([np.rot90(kernel, int(turn)) for turn in turns.ravel()], -1)
    pairs = turned.reshape(3, 3, channels, channels)
    flat = np.asarray(flattened_kernel(jnp.asarray(pairs), patch))
    result = page.evaluate(
        "([kernel, patch, channels]) => convattn.approximation(kernel, patch, channels)",
        [KERNELS["emboss"], patch, channels],
    )
    values = np.linalg.svd(flat, compute_uv=False) ** 2
    assert result["rank"] == np.linalg.matrix_rank(flat)
    assert result["rows"][-1]["heads"] == result["rank"] + 1
    assert result["rows"][-1]["reached"] == 0
    scale = values.sum()
    for row in result["rows"]:
        below, reached = values[row["heads"] :].sum(), values[row["heads"] - 1 :].sum()
        expected = [below / scale, reached / scale]
        assert np.allclose([row["bound"], row["reached"]], expected, atol=1e-9)
    approximation = ca.approximate_conv(pairs, 2, patch_size=patch)
    if len(result["rows"]) > 2:
        assert approximation.lower_bound <= result["rows"][1]["bound"] * scale * (1 + 1e-9)
        assert approximation.error.lower <= result["rows"][1]["reached"] * scale * (1 + 1e-6)


@pytest.mark.parametrize("patch", [1, 2])
@pytest.mark.parametrize(
    "kernel",
    [
        [[1, 2, 3], [4, 5.5, -6], [7, 8, 9e-8]],  # singular values far apart
        [[0, 0, 0], [0, 0, 0], [0, 0, 0]],
        [[1e-80, 0, 2e-80], [0, 0, 0], [3e-80, 0, 0]],
        [[0.1, 0.2, 0.3], [0.4, 0.5, 0.6], [0.7, 0.8, 0.9]],
        [[1e100, 0, 1], [1, 0, 1], [0, 0, 1e-100]],
        [[2.5]],
    ],
)
def test_the_rank_is_exact(page: Any, kernel: list[list[float]], patch: int) -> None:
    result = page.evaluate("([k, p]) => convattn.approximation(k, p, 1)", [kernel, patch])
    array = np.asarray(kernel, np.float64)[:, :, None, None]
    assert result["rank"] == ca.count_heads_of_kernel(array, patch_size=patch).rank
    assert len(result["rows"]) == result["rank"] + 1


@pytest.mark.parametrize("field", ["size-2", "patch-2", "in-2", "width-2"])
def test_a_size_that_cannot_be_is_refused(page: Any, field: str) -> None:
    for wrong in ("0", "2.5", "99999", *(() if field == "width-2" else ("",))):
        page.fill(f"#{field}", wrong)
        assert "is a whole number from 1 to" in page.inner_text("#text-2")
        assert page.locator("#chart-2 svg").count() == 0
    page.fill(f"#{field}", "" if field == "width-2" else "3")
    assert "heads in the limit" in page.inner_text("#text-2").lower()


def test_the_controls_drive_the_figures(page: Any) -> None:
    page.select_option("#preset", "Laplace")
    page.select_option("#form", "alpha")
    page.locator("#strength").fill("400")
    wait_until(page, "document.getElementById('error-1').dataset.strength == '1'")
    blurred = float(page.locator("#error-1").get_attribute("data-value"))
    layer = ca.conv_to_attention(spread(KERNELS["Laplace"]), **FORMS["alpha"], sharpness=1.0)
    pixels = image("horse")
    expected = ca.conv(pixels, spread(KERNELS["Laplace"]))
    error = np.abs(np.asarray(ca.apply_attention(layer, pixels)) - np.asarray(expected)).max()
    assert blurred == pytest.approx(float(error), abs=1e-9)
    assert page.locator("#heads-1 canvas").count() == 9
    page.select_option("#kernel-size", "5")
    wait_until(page, "document.querySelectorAll('#heads-1 canvas').length === 25")
    assert page.locator("#preset").input_value() == "drawn"
    page.select_option("#model", "ViT-B/16")
    counts = json.loads(page.locator("#text-2").get_attribute("data-value"))
    assert counts["limit"] == [12, 16]
    page.locator("#kernel input").first.fill("")  # an entry that is no number counts as zero
    page.wait_for_timeout(50)
    assert page.locator("#table-3 td.equal").count() == 4


def test_a_compiled_network_is_shown_within_its_bound(page: Any) -> None:
    large, moderate = figure_data()["compiled"]
    for setting in (large, moderate):
        assert setting["difference"] <= setting["bound"]
        page.select_option("#constants-6", setting["name"])
        data = json.loads(page.get_attribute("#text-6", "data-value"))
        assert data == {key: setting[key] for key in ("difference", "bound")}
        assert page.locator("#maps-6 canvas").count() == 3 * len(NAMES)
    assert large["difference"] < 1e-6 * large["largest"] < 1e-4 * moderate["difference"]
