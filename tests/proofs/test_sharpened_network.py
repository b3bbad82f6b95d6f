"""S.network: checks fail on planted errors."""

from dataclasses import replace

import numpy as np
import pytest
from proofs.plants.changes import no_uniform_head
from proofs.plants.planting import load, require_failure

from convattn_ledger import Level


def one_head_dropped(original):
    def changed(*args):
        heads, blocks = original(*args)
        return heads, blocks.at[0].set(0)

    return changed


def wide_bound(original):
    return lambda *args: 1e6 * original(*args)


def uniform_weight_halved(original):
    """A layer with another uniform weight than its maps were made for."""

    def changed(self, convolution, kernel):
        layer = original(self, convolution, kernel)
        return replace(
            layer,
            encoding=replace(layer.encoding, uniform_weight=layer.encoding.uniform_weight / 2),
        )

    return changed


def leak_not_taken_back(original):
    """All that a layer gives is a little less."""

    def changed(uniform_weight):
        layer = original(uniform_weight)

        def apply(spec, image):
            return layer(spec, image) * (1 - uniform_weight / 2)

        return apply

    return changed


def between_the_strides(original):
    """Every stride-th pixel from the second on."""

    def changed(uniform_weight):
        layer = original(uniform_weight)

        def apply(spec, image):
            return layer(spec, np.roll(image, -1, axis=0) if spec.stride > 1 else image)

        return apply

    return changed


TRANSFORMATION = "networks.transformation"
OPTIONS = f"{TRANSFORMATION}.attention.ConversionOptions"
PLANTS = [
    ("fractions", "attended", leak_not_taken_back),
    ("fractions", "attended", between_the_strides),
    ("float32 logits", "constructions.table.finite_construction", no_uniform_head),
    ("float32 logits", "constructions.table.finite_construction", one_head_dropped),
    (
        "float32 logits",
        f"{TRANSFORMATION}.attention.ConversionOptions.layer",
        uniform_weight_halved,
    ),
    ("float32 logits", f"{TRANSFORMATION}.deviation.accumulated_error", wide_bound),
]


@pytest.mark.slow
@pytest.mark.parametrize("plant", PLANTS, ids=lambda plant: f"{plant[0]}: {plant[2].__name__}")
def test_a_planted_error_is_seen(plant, monkeypatch) -> None:
    require_failure(monkeypatch, "sharpened", "network", *plant)


def test_every_piece_has_a_planted_error() -> None:
    planted = {title for title, *_ in PLANTS}
    for piece in load("sharpened", "network").evidence:
        assert piece.level is Level.CERTIFIED or piece.name in planted
