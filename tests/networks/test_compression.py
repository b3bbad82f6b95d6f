"""Fewer heads: what each layer becomes, and which layers keep more."""

import jax.numpy as jnp
import numpy as np
import pytest
from networks.small import small_images, small_network

import convattn as ca
from convattn.cli.experiments.compress import EVEN, EXACT, accuracies, draw_compression
from convattn.ledger.images.cifar10_slice import Images
from convattn.networks import Convolution, mixing_steps
from convattn.networks.compression import LayerChoices, choices_of, compress, distribute

LAYER = ca.conv_to_attention([[[1.0]]])


@pytest.fixture(scope="module")
def choices():
    return choices_of(small_network().folded)


@pytest.mark.slow
def test_errors_fall_to_rounding_at_nine_heads(choices) -> None:
    """And are those of S.approx: Σ over i ≥ N of σ² at most, Σ over i > N at least."""
    kernels = {step.name: np.asarray(step.kernel) for step in mixing_steps(small_network().folded)}
    for name, choice in choices.items():
        flat = kernels[name].astype(np.float64).reshape(choice.most, -1)
        energy = np.linalg.svd(flat, compute_uv=False) ** 2
        energy = np.pad(energy, (0, 9)) / energy.sum()
        for heads, error in enumerate(choice.errors, 1):
            assert energy[heads:].sum() - 1e-6 <= error <= energy[heads - 1 :].sum() + 1e-6
        assert choice.errors[-1] < 1e-6
        assert [layer.heads <= count for count, layer in enumerate(choice.layers, 1)]


def test_a_kernel_of_zeros_has_no_error() -> None:
    network = (Convolution(jnp.zeros((1, 2, 1, 1)), jnp.ones(1), 3, "zero"),)
    choice = choices_of(network)["zero"]
    assert choice.most == 2
    assert choice.errors == (0, 0)
    assert [layer.stride for layer in choice.layers] == [(3, 3), (3, 3)]
    with pytest.raises(ValueError, match="two layers are named 'zero'"):
        choices_of(network * 2)


def test_heads_go_where_the_error_is() -> None:
    flat, late = (0.2, 0.1, 0.05), (0.9, 0.9, 0.0)
    found = distribute(
        {name: LayerChoices((LAYER,) * 3, errors) for name, errors in (("a", flat), ("b", late))}, 4
    )
    assert found == {"a": 1, "b": 3}  # two heads together take 0.45 each
    with pytest.raises(ValueError, match="heads=1, but there are 2 layers"):
        distribute({name: LayerChoices((LAYER,), (0.0,)) for name in "ab"}, 1)


@pytest.mark.slow
def test_a_network_has_so_many_heads_and_keeps_its_strides(choices) -> None:
    folded = small_network().folded
    network = compress(folded, choices, dict.fromkeys(choices, 4))
    steps = mixing_steps(network)
    assert all(step.layer.heads <= 4 for step in steps)
    assert [step.layer.stride[0] for step in steps] == [s.stride for s in mixing_steps(folded)]


@pytest.mark.slow
def test_nine_heads_classify_as_trained_and_the_picture_says_so(choices) -> None:
    images = small_images(10)
    test = Images(images, np.arange(10, dtype=np.uint8) % 3, ("a", "b", "c"))
    found = list(accuracies(small_network(), test, (9,)))
    by_rule = {each.rule: each for each in found}
    assert by_rule[EVEN].correct == by_rule[EXACT].correct
    assert (by_rule[EVEN].heads, by_rule[EXACT].heads) == (46, 52)
    figure = draw_compression(found, "a run", 0.5)
    assert len(figure.axes[0].lines) == 4
    with pytest.raises(ValueError, match="is attention already"):
        choices_of(small_network().attention)
