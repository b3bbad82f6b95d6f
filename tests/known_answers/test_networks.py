"""The networks of the suite are exact in float64, and no ReLU stands at its bend."""

import numpy as np
import pytest
from known_answers.planning import KNOWN, every, planned

from convattn.compile.evaluation import affine_values, node_values, one_values
from convattn.compile.network import Network
from convattn.known_answers import NETWORKS, KnownNetwork
from convattn.known_answers.networks import drawn_images
from convattn.known_answers.truth import points_read

SLOW = every(("corner", "strided", "trained-residual"))


def lowest_bit(numbers: np.ndarray) -> float:
    """The largest power of two of which all numbers are multiples."""
    numbers = np.asarray(numbers, np.float64)
    numbers = numbers[numbers != 0]
    if not numbers.size:
        return np.inf
    mantissas, exponents = np.frexp(numbers)
    whole = np.rint(mantissas * 2.0**53).astype(np.int64)
    return float((2.0 ** (exponents - 53) * (whole & -whole)).min())


def assert_exact(network: Network, images: np.ndarray) -> None:
    """No sum of absolute values, counted in the lowest bit of its terms, reaches 2^53."""
    values = node_values(network, images)
    bits = {network.image: lowest_bit(images)}
    for node in network.nodes:
        bit, size = np.inf, 0.0
        for (value, _), taps in node.affine.terms.items():
            own = bits.get(value, 1.0)
            for where, matrix in taps.items():
                points = np.prod(value.lattice.count) if where == "mean" else 1
                assert lowest_bit(np.array([points])) == points  # a mean is of a power of two
                bit = min(bit, own * lowest_bit(matrix) / points)
                held = values.get(value, one_values(value, 1))
                size += float(np.abs(held).max()) * float(np.abs(matrix).sum(0).max())
        for bend, _, _ in node.units.bends:
            bit, size = min(bit, lowest_bit(np.array([bend]))), size + abs(bend)
        assert size / bit < 2**53, node.value.name
        bits[node.value] = bit


@pytest.mark.parametrize("network", SLOW)
def test_all_sums_are_exact_in_float64(network: KnownNetwork) -> None:
    assert_exact(planned(network).network, np.asarray(network.example(), np.float64))


def test_pixels_of_many_bits_are_not_exact() -> None:
    network = KNOWN["corner"]
    images = np.asarray(network.example(), np.float64)
    with pytest.raises(AssertionError, match="value 1"):
        assert_exact(planned(network).network, images + 1e-15)


@pytest.mark.parametrize("network", SLOW)
def test_no_unit_that_is_read_stands_at_its_bend(network: KnownNetwork) -> None:
    own = planned(network).network
    needed, images = points_read(own), np.asarray(network.example(), np.float64)
    values = {own.image: images}
    for node in own.nodes:
        before = affine_values(node.affine, values)
        values[node.value] = node.units.call(before)
        for bend, _, _ in node.units.bends:
            apart = np.abs(before - bend)[:, needed[node.value]]
            assert apart.min() >= 2.0**-27, node.value.name


@pytest.mark.parametrize("network", SLOW)
def test_images_are_as_documented(network: KnownNetwork) -> None:
    images = network.example()
    assert images.shape == (4, network.size, network.size, network.channels)
    assert images.dtype == np.float32
    assert 0 <= images.min() < images.max() <= 1
    assert lowest_bit(images) >= 2.0**-12


def test_the_shortcut_decides_where_it_and_the_spots_disagree() -> None:
    """Images 0 and 1 are as in the training set; 2 has spots alone, 3 the tag alone."""
    network = KNOWN["shortcut"]
    logits = np.asarray(network.function(network.example()))
    assert logits.argmax(-1).tolist() == [0, 1, 0, 0]
    tag = logits[3, 0] - logits[1, 0]
    spots = logits[2, 0] - logits[1, 0]
    assert tag > 4 * spots > 0


def test_drawn_images_are_the_same_in_every_version() -> None:
    assert (drawn_images(8, 1)[0, 0, :3, 0] * 4096).tolist() == [382, 348, 638]


def test_names_are_different() -> None:
    assert len(KNOWN) == len(NETWORKS) == 24
