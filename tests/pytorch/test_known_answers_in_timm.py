"""Models of the suite in timm: logits, values, derivatives and attention are what is said of them.

`experiments/explanations.py` checks all 24 in the same way.
"""

from dataclasses import replace

import numpy as np
import pytest
from torch_packages import torch_package

from convattn.known_answers import NETWORKS, write_suite

torch, timm = torch_package("timm")
pytest.importorskip("captum")

from explanation_methods import methods  # noqa: E402
from explanation_methods.checks import problems  # noqa: E402
from explanation_methods.distances import block_distances, head_distances  # noqa: E402
from explanation_methods.figure import draw  # noqa: E402
from explanation_methods.methods import METHODS, VARIANTS, explain  # noqa: E402
from explanation_methods.results import SHORTCUT, explained  # noqa: E402
from explanation_methods.subjects import all_cases, load_subject  # noqa: E402
from explanation_methods.table import tables  # noqa: E402

CHOSEN = ("circular", "strided-twice", "opposite-paths", "depthwise", "shortcut", "trained-plain")


@pytest.fixture(scope="module")
def subjects(tmp_path_factory):
    folder = tmp_path_factory.mktemp("suite")
    known = {network.name: network for network in NETWORKS}
    write_suite(folder, [known[name] for name in CHOSEN])
    return {name: load_subject(folder, f"{n:02}-{name}") for n, name in enumerate(CHOSEN, 1)}


@pytest.mark.parametrize("name", CHOSEN)
def test_all_is_as_the_truth_says(name, subjects):
    assert problems(subjects[name]) == []


def test_a_wrong_weight_is_noticed(subjects):
    subject = subjects["opposite-paths"]
    weight = subject.model.blocks[0].attn.proj.weight
    before = weight.clone()
    weight.mul_(1.001)
    lines = problems(subject)
    weight.copy_(before)
    assert "a logit is off by" in lines[0]
    assert [line.partition(": ")[2] for line in lines[1:]] == [
        "value1 differs after block 1",
        "the derivatives of logit 0 differ",
        "the derivatives of logit 1 differ",
        "the derivatives of tokens after block 1 differ",
    ]


@pytest.mark.parametrize(
    ("block", "head", "changed"),
    [
        (0, 0, {"where": [-2, -1]}),
        (0, 2, {"kind": "offset", "where": [0, 1]}),
        (1, 0, {"kind": "unused"}),
        (1, 2, {"kind": "mean"}),
        (0, 1, {"kind": "unused"}),
    ],
)
def test_a_wrong_head_is_noticed(block, head, changed, subjects):
    subject = subjects["opposite-paths"]
    heads = [list(each) for each in subject.facts["heads"]]
    heads[block][head] = heads[block][head] | changed
    lines = problems(replace(subject, facts=subject.facts | {"heads": heads}))
    assert len(lines) == 1
    assert f"block {block + 1}, head {head} is not" in lines[0]


def test_a_wrong_border_is_noticed(subjects):
    subject = subjects["circular"]
    heads = [[head | {"border": "zeros"} for head in block] for block in subject.facts["heads"]]
    lines = problems(replace(subject, facts=subject.facts | {"heads": heads}))
    assert len(lines) == 7  # offsets, all in the first block


def test_unused_heads_have_a_distance_that_means_nothing(subjects):
    first, last = head_distances(subjects["opposite-paths"])
    assert [head.measured for head in first] == pytest.approx([8**0.5, 8**0.5, 0])
    assert block_distances(first) == pytest.approx((2 * 8**0.5 / 3,) * 2)
    assert block_distances(last) is None
    (strided, *_) = head_distances(subjects["shortcut"])[1:]
    measured, true = block_distances(strided)
    assert true == 0
    assert measured > 3


def test_cases_without_derivatives_are_left_out(subjects):
    logits, spots, tag = all_cases(subjects["shortcut"])
    assert (len(logits.images), logits.left_out) == (3, 1)  # one image has neither spots nor tag
    assert (len(spots.images) + spots.left_out, len(tag.images)) == (64, 1)
    assert spots.jacobian.any(axis=1).all()
    assert not (spots.jacobian.astype(bool) & ~spots.field).any()
    assert tag.field.nonzero() == (0, 0)


def test_methods_are_told_apart_by_the_shortcut(subjects, monkeypatch):
    monkeypatch.setattr(methods, "STEPS", 4)
    result = explained(replace(subjects["shortcut"], name=SHORTCUT))
    assert result["counts"]["logits"] == {"cases": 4, "zero derivative": 1, "whole field": 3}
    lines = tables([result | {"name": SHORTCUT}]).splitlines()
    row_of = {line.split(" | ")[0]: line for line in lines if " of 64" in line}
    assert "| 1.00; 1 of 64 | 0.99; 1 of 64 | 0.00; " in row_of["| derivative × input"]
    assert "| 1.00; 1 of 64 | 0.99; 1 of 64 | 0.00; " in row_of["| gradient × input"]
    alone, _, without = row_of["| rollout"].split(" | ")[1:4]
    assert alone == without.removesuffix(" |")  # whatever the image shows
    assert len(draw([result | {"name": SHORTCUT}]).subfigs[1].axes) == 8


def test_maps_are_of_their_methods(subjects, monkeypatch):
    monkeypatch.setattr(methods, "STEPS", 4)
    subject = subjects["opposite-paths"]
    _, values = all_cases(subject)
    maps = explain(subject, values)
    assert set(maps) == {*METHODS, *VARIANTS}
    inner = values.field.sum(axis=1) == 2  # of tokens with both pixels, 2 of 3 heads look at them
    places = values.target.rows[torch.from_numpy(inner)].numpy() - 1
    tokens = np.arange(len(places))
    expected = np.where(values.field[inner], 1 / 3, 0)
    expected[tokens, places] = 1 / 3
    np.testing.assert_allclose(maps["raw attention"][inner], expected, rtol=2**-22)
    expected /= 2
    expected[tokens, places] += 1 / 2
    np.testing.assert_allclose(maps["rollout"][inner], expected, rtol=2**-22)
    product = maps["gradient × input"]
    np.testing.assert_allclose(product, values.product, atol=48 * 2**-24 * values.product.max())
