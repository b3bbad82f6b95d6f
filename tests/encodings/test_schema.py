"""What the schema of an encoding refuses: ranks, heads and parts that do not fit together."""

import jax.numpy as jnp
import numpy as np
import pytest

import convattn as ca
from convattn.encodings import AxialEncoding, QuadraticGridEncoding, ScalarEncoding
from convattn.networks.weights.consistency import check_layer

TWO = jnp.ones(2), jnp.ones(3)
PAIRS = ((0, 0), (1, 2))
MAPS = jnp.ones((3, 4, 2)), jnp.ones((3, 5, 1))
TABLES = jnp.ones((9, 4)), jnp.ones((8, 5))


def test_what_fits_passes():
    QuadraticGridEncoding(TWO, TWO, PAIRS).check()
    QuadraticGridEncoding(TWO[:1], TWO[:1], ((1,),)).check()
    AxialEncoding(MAPS, MAPS).check()
    AxialEncoding(MAPS, MAPS, TABLES).check()
    ScalarEncoding(jnp.ones(1), jnp.ones(1), None, ((0,),)).check()


@pytest.mark.parametrize(
    ("encoding", "message"),
    [
        (QuadraticGridEncoding(TWO, TWO[::-1], PAIRS), "expected those of encoding.centers"),
        (QuadraticGridEncoding(TWO[:1], TWO, PAIRS), "expected those of encoding.centers"),
        (QuadraticGridEncoding((*TWO, TWO[0]), TWO, PAIRS), "one or two spatial axes"),
        (QuadraticGridEncoding((), (), ((),)), "one or two spatial axes"),
        (QuadraticGridEncoding((jnp.ones((2, 1)),), TWO[:1], ((0,),)), "expected 1 axes"),
        (QuadraticGridEncoding((jnp.ones(0),), (jnp.ones(0),), ((0,),)), "none of them empty"),
        (QuadraticGridEncoding(TWO, TWO, ((0, 3),)), r"an index below \(2, 3\)"),
        (QuadraticGridEncoding(TWO, TWO, ((-1, 0),)), r"an index below \(2, 3\)"),
        (QuadraticGridEncoding(TWO, TWO, ((0,),)), r"an index below \(2, 3\)"),
        (QuadraticGridEncoding(TWO, TWO, ()), r"an index below \(2, 3\)"),
        (AxialEncoding(MAPS, MAPS[::-1]), "expected those of query"),
        (AxialEncoding((MAPS[0], MAPS[1][:2]), (MAPS[0], MAPS[1][:2])), "one number of heads"),
        (AxialEncoding(TWO, MAPS), "expected 3 axes"),
        (AxialEncoding(MAPS, MAPS, TABLES[::-1]), r"\[5, 4\] features, but expected \[4, 5\]"),
        (AxialEncoding(MAPS, MAPS, TABLES[:1]), r"\[4\] features, but expected \[4, 5\]"),
        (AxialEncoding(MAPS, MAPS, (jnp.ones(4), jnp.ones(5))), "expected 2 axes"),
    ],
)
@pytest.mark.usefixtures("unchecked")
def test_what_does_not_fit_is_refused(encoding, message):
    with pytest.raises(ValueError, match=message):
        encoding.check()


@pytest.mark.usefixtures("unchecked")
def test_pairs_that_are_no_tuples_of_integers_are_refused():
    for pairs in (3, (0, 1), ((0.0, 1.0),)):
        with pytest.raises(ValueError, match="an index below"):
            QuadraticGridEncoding(TWO, TWO, pairs).check()


def test_layers_are_checked():
    layer = ca.conv_to_attention(np.ones((3, 3, 1, 1)), encoding="quadratic")
    check_layer(layer)
    wrong = QuadraticGridEncoding(layer.encoding.alpha, layer.encoding.centers, ((3, 0),) * 9)
    with pytest.raises(ValueError, match="an index below"):
        check_layer(ca.AttentionLayer(wrong, None, layer.output, ring=layer.ring))
