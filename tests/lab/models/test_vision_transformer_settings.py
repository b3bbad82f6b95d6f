"""Vision transformers of the papers: parameters and FLOPs."""

from dataclasses import replace

import jax
import pytest
from flax import nnx
from lab.models.test_sizes import counted_by_xla
from nnx.vision_transformer.tiny_transformer import SETTINGS, SIZE

from convattn_lab.models.presets import cmhsa, deit_base, deit_small, vit_base
from convattn_lab.models.sizes import FlopCount, abstract_model, flop_count, parameter_count

IMAGENET = {"classes": 1000, "image_size": (224, 224)}


@pytest.mark.slow
@pytest.mark.parametrize(
    ("settings", "count"),
    [(vit_base(), 86_567_656), (deit_base(), 86_567_656), (deit_small(), 22_050_664)],
    ids=["ViT-B", "DeiT-B", "DeiT-S"],
)
def test_the_parameters_are_the_published_ones(settings, count):
    """From abstract shapes: nothing is allocated."""
    model = abstract_model(settings, **IMAGENET)
    assert all(isinstance(leaf, jax.ShapeDtypeStruct) for leaf in jax.tree.leaves(nnx.state(model)))
    assert parameter_count(model) == count
    other = replace(settings, pooling="mean")  # planted: a class token and its position less
    assert parameter_count(abstract_model(other, **IMAGENET)) == count - 2 * settings.width


@pytest.mark.slow
def test_the_parameters_of_cmhsa():
    """155 713 536 weights in its layers (L21.table1); biases, tables, norms and classifier beside
    them, for ten classes; and three-to-three kernels in place of attention in the first phase."""
    side = {"classes": 10, "image_size": (224, 224)}
    weights = 6 * (4 * 9 * 768 * 768 + 2 * 768 * 3072)
    assert weights == 155_713_536
    shared = 6 * (3072 + 768 + 4 * 768) + 2 * 768 + 7690
    attention = 6 * (3 * 9 * 768 + 768 + 9 * 29**2)
    settings = cmhsa()
    ringed = replace(settings, ring=1)
    assert parameter_count(abstract_model(ringed, **side)) == weights + shared + attention
    bare = weights + shared + attention - 6 * 9 * (29**2 - 27**2)
    assert parameter_count(abstract_model(settings, **side)) == bare
    for size in (3, 5):
        count = parameter_count(abstract_model(cmhsa(size, "convolution"), **side))
        assert count == 6 * 2 * 768 * 3072 + shared + 6 * (9 * size**2 + 3)


# ---------------------------------------------------------------------- FLOPs against XLA's count
def done_by_element(settings, tokens, keys):
    """At most so many FLOPs are no products, as for the encoder: 13 for each pair of tokens and
    head, and ten for each pair, whose shift is a row of the table on two axes (a difference, a
    product and sums on each); 30 for each feature of a token in three norms, sums and biases, three
    for each feature of queries, keys and values; 80 for each gelu."""
    pairs = (13 * settings.heads + 10) * tokens * keys if settings.mixing == "attention" else 0
    biases = 3 * settings.heads * settings.key_width * keys
    layer = pairs + biases + tokens * (80 * settings.inner + 30 * settings.width)
    return settings.depth * layer + 20 * tokens * settings.width


@pytest.mark.slow
@pytest.mark.parametrize("kind", ["convolution", "absolute", "class"])
def test_xla_counts_the_same_products(kind):
    """The dense back end, lowered and not compiled. XLA leaves the zeros around an image out."""
    large = {"width": 48, "patch_size": 4, "inner": 64}
    if SETTINGS[kind].mixing == "attention":
        large |= {"width": 96, "head_width": 80}
    settings, size = replace(SETTINGS[kind], **large), (16, 12)
    by_xla = counted_by_xla(settings, size, backend="dense")
    count = flop_count(settings, image_size=size, zeros=False)
    tokens = 12 + (settings.pooling == "class")
    margin = done_by_element(settings, tokens, tokens)
    assert 0 <= by_xla - count.total <= margin
    maps = 2 * settings.depth * 2 * settings.width * settings.inner * tokens
    for wrong in (count.total - maps, count.total + maps):  # planted: no feed-forward part, or two
        assert not 0 <= by_xla - wrong <= margin


def test_a_ring_has_keys_to_match_and_mix():
    settings = SETTINGS["ring"]
    padded, unpadded = (
        flop_count(settings, image_size=SIZE, zeros=zeros) for zeros in (True, False)
    )
    assert padded.maps == unpadded.maps
    pairs = 2 * 2 * 3 * 12 * 6  # two layers, three heads of 12 features, six queries
    assert (padded.mixing, unpadded.mixing) == (pairs * 20, pairs * 6)
    assert isinstance(padded, FlopCount)
    assert padded.matching == padded.mixing
