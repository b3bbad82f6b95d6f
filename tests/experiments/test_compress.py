"""`experiments/compress.py` on a small network: what each layer becomes, and which keep more."""

from types import SimpleNamespace

import numpy as np
import pytest
from compress import (
    EVEN,
    EXACT,
    LayerChoices,
    accuracies,
    choices_of,
    compress,
    distribute,
    draw_compression,
)
from networks.small import MEAN, STD, small_attention, small_images, small_model

import convattn as ca
from convattn.data.cifar10_slice import Images
from convattn_lab.models.resnet_function import folded, normalized_convolutions

LAYER = ca.conv_to_attention([[[1.0]]])


@pytest.fixture(scope="module")
def kernels():
    layers = normalized_convolutions(folded(small_model()))
    return {name: np.asarray(layer.convolution.kernel[...]) for name, layer in layers}


@pytest.fixture(scope="module")
def choices(kernels):
    return choices_of(kernels, small_attention().layers)


@pytest.mark.slow
def test_errors_fall_to_rounding_at_nine_heads(choices, kernels) -> None:
    """And are those of S.approx: Σ over i ≥ N of σ² at most, Σ over i > N at least."""
    for name, choice in choices.items():
        flat = kernels[name].astype(np.float64).reshape(choice.max_heads, -1)
        energy = np.linalg.svd(flat, compute_uv=False) ** 2
        energy = np.pad(energy, (0, 9)) / energy.sum()
        for heads, error in enumerate(choice.errors, 1):
            assert energy[heads:].sum() - 1e-6 <= error <= energy[heads - 1 :].sum() + 1e-6
        assert choice.errors[-1] < 1e-6
        assert [layer.heads <= count for count, layer in enumerate(choice.layers, 1)]


def test_a_kernel_of_zeros_has_no_error() -> None:
    kernel = np.zeros((1, 2, 1, 1), np.float32)
    choice = choices_of({"zero": kernel}, {"zero": ca.conv_to_attention(kernel, stride=3)})["zero"]
    assert choice.max_heads == 2
    assert choice.errors == (0, 0)
    assert [layer.stride for layer in choice.layers] == [(3, 3), (3, 3)]


def test_heads_go_where_the_error_is() -> None:
    flat, late = (0.2, 0.1, 0.05), (0.9, 0.9, 0.0)
    actual = distribute(
        {name: LayerChoices((LAYER,) * 3, errors) for name, errors in (("a", flat), ("b", late))}, 4
    )
    assert actual == {"a": 1, "b": 3}  # two heads together take 0.45 each
    with pytest.raises(ValueError, match="heads=1, but there are 2 layers"):
        distribute({name: LayerChoices((LAYER,), (0.0,)) for name in "ab"}, 1)


@pytest.mark.slow
def test_a_network_has_so_many_heads_and_keeps_its_strides(choices) -> None:
    layers = compress(choices, dict.fromkeys(choices, 4))
    assert all(layer.heads <= 4 for layer in layers.values())
    exact = small_attention().layers
    assert {name: layer.stride for name, layer in layers.items()} == {
        name: layer.stride for name, layer in exact.items()
    }
    assert {layer.stride for layer in layers.values()} == {(1, 1), (2, 2)}


@pytest.mark.slow
def test_nine_heads_classify_as_trained_and_the_picture_says_so() -> None:
    test = Images(small_images(10), np.arange(10, dtype=np.uint8) % 3, ("a", "b", "c"))
    run = SimpleNamespace(images=SimpleNamespace(test=test, mean=MEAN, std=STD))
    networks = list(accuracies(run, small_model(), (9,)))
    by_rule = {network.rule: network for network in networks}
    assert by_rule[EVEN].correct == by_rule[EXACT].correct
    assert (by_rule[EVEN].heads, by_rule[EXACT].heads) == (46, 52)
    figure = draw_compression(networks, "a run", 0.5)
    assert len(figure.axes[0].lines) == 4
