"""A pair of each kind: written, run by onnxruntime and timm, and read by a parser of VNN-LIB."""

import json
from dataclasses import replace
from fractions import Fraction

import jax.numpy as jnp
import numpy as np
import pytest
from compiled_networks import logits_in
from torch_packages import torch_package

from convattn.compile import to_vision_transformer

pytest.importorskip("onnxruntime")
pytest.importorskip("jax2onnx")
torch, timm = torch_package("timm")

from verifier_twins import writing  # noqa: E402
from verifier_twins.catalogue import PAIRS  # noqa: E402
from verifier_twins.exact import logits, network_rows  # noqa: E402
from verifier_twins.onnx_files import run_network  # noqa: E402
from verifier_twins.properties import Condition, conditions, require_parsed, vnnlib  # noqa: E402

CHOSEN = {"04-blob": "transformer", "17-blob-attention": "attention"}


@pytest.fixture(scope="module", params=CHOSEN)
def written(request, tmp_path_factory):
    pair = next(pair for pair in PAIRS if pair.name == request.param)
    folder = tmp_path_factory.mktemp(pair.name)
    return pair, folder, writing.write_pair(pair, folder)


def images_of(pair):
    return writing.images_in(*writing.box_of(pair), seed=99)


def test_both_files_are_within_the_bound_and_the_property_is_decided(written):
    pair, folder, content = written
    images = images_of(pair)
    cnn, twin = (np.float64(run_network(folder / f"{n}.onnx", images)) for n in ("cnn", "twin"))
    total = np.array(content["bound"]["total"])
    assert (np.abs(cnn - twin) <= total).all()
    assert content["room"] >= writing.LEAST_ROOM
    least = min(abs(cnn[:, 0] - cnn[:, 1])) if pair.asks == "class" else 1.0
    assert least > 0 or pair.expected == "violated"
    assert writing.is_written(folder)
    (folder / "twin.onnx").write_bytes(b"other")
    assert not writing.is_written(folder)
    writing.write_pair(pair, folder)
    assert writing.read_pair(folder) == json.loads(json.dumps(content))  # the same bytes


def test_a_counterexample_is_one_in_both_files(written):
    pair, folder, content = written
    if pair.expected == "holds":
        assert not (folder / "counterexample.json").exists()
        return
    counterexample = json.loads((folder / "counterexample.json").read_text())
    image = np.array(counterexample["image"], np.float32).reshape(1, *pair.network.image)
    for name in ("cnn", "twin"):
        first, second = run_network(folder / f"{name}.onnx", image)[0]
        assert first < second - content["bound"]["total"][0]


def test_timm_is_within_the_bound():
    pair = next(pair for pair in PAIRS if pair.name == "04-blob")
    lower, upper = writing.box_of(pair)
    compiled = to_vision_transformer(
        pair.network, jnp.asarray(lower[None], "float32"), channels_first=True
    )
    bound, images = compiled.bound_on_box(lower, upper), images_of(pair)
    actual = logits_in("timm", compiled, np.moveaxis(images, 1, -1))
    layers = network_rows(pair.network)
    exact = [[float(x) for x in logits(layers, list(map(_fraction, i.ravel())))] for i in images]
    assert (np.abs(actual - np.array(exact)) <= bound.transformer).all()
    broken = {name: array.copy() for name, array in compiled.arrays.items()}
    broken["blocks.0.attn.proj.weight"] *= np.float32(1.01)
    wrong = logits_in("timm", replace(compiled, arrays=broken), np.moveaxis(images, 1, -1))
    assert not (np.abs(wrong - np.array(exact)) <= bound.transformer).all()


def _fraction(number):
    return Fraction(float(number))


def test_a_public_parser_reads_what_was_meant(written):
    vnnlib = pytest.importorskip("vnnlib")
    pair, folder, content = written
    lower, upper = (side.ravel().tolist() for side in writing.box_of(pair))
    query = vnnlib.parse_query_file(str(folder / "property-2.vnnlib"))
    (network,) = query.networks
    assert [tensor.shape for tensor in network.inputs] == [[1, *pair.network.image]]
    assert [tensor.shape for tensor in network.outputs] == [[1, content["classes"]]]
    *box, condition = [str(assertion.expr).split() for assertion in query.assertions]
    assert [float(words[-1].rstrip(")")) for words in box[::2]] == lower
    assert [float(words[-1].rstrip(")")) for words in box[1::2]] == upper
    assert "(<=" in " ".join(condition)
    assert "Y" in " ".join(condition)


@pytest.mark.parametrize("pair", PAIRS, ids=lambda pair: pair.name)
def test_a_public_parser_reads_the_properties_of_all_pairs(pair):
    """With any threshold, as the one of a file depends on what is certified."""
    pytest.importorskip("vnnlib")
    classes = len(pair.network.bias)
    threshold = (Condition(0, Fraction(-355, 2**20)),)
    output_property = conditions("class", classes) if pair.asks == "class" else threshold
    _, text = vnnlib(*writing.box_of(pair), classes, output_property)
    require_parsed(text)
    with pytest.raises(ValueError, match="the package vnnlib cannot read a property"):
        require_parsed(text.removesuffix(")\n"))
    with pytest.raises(
        ValueError, match=r"reads \(assert\(<=Y\[0,0\]1.0\)\), but expected \(assert"
    ):
        require_parsed(f"{text}(assert\n(<= Y[0,0] 1.0))")
