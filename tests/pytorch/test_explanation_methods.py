"""Methods of explanation against closed forms, and their command."""

import json
import sys
from math import comb, log, sqrt

import numpy as np
import pytest
from scipy.stats import spearmanr
from torch_packages import torch_package

torch, timm = torch_package("timm")
pytest.importorskip("captum")

from explanation_methods import command, methods, scores, table  # noqa: E402
from explanation_methods.subjects import Target, by_token, recorded_attention  # noqa: E402

from convattn import known_answers  # noqa: E402

WEIGHTS = torch.tensor([[1.0, -2.0, 0.5], [3.0, 1.0, -1.0]], dtype=torch.float64)


def shift(tokens: int, by: int) -> torch.Tensor:
    """Query q attends to key q + by, around a circle."""
    return torch.eye(tokens, dtype=torch.float64).roll(by, dims=1)[None]


@pytest.mark.parametrize("blocks", [1, 4])
def test_rollout_of_a_shift_has_binomial_weights(blocks):
    expected = sum(comb(blocks, k) / 2**blocks * shift(7, k) for k in range(blocks + 1))
    assert torch.equal(methods.rollout([shift(7, 1)] * blocks), expected)


def test_rollout_puts_the_first_block_on_the_right():
    first = torch.tensor([[[0.0, 1.0], [0.0, 1.0]]])  # all look at token 1
    second = torch.tensor([[[1.0, 0.0], [1.0, 0.0]]])  # all look at token 0
    assert torch.equal(methods.rollout([first, second], identity=0.0), first)
    assert not torch.equal(methods.rollout([second, first], identity=0.0), first)


def test_relevance_by_hand():
    attention = torch.tensor([[[[0.5, 0.5], [0.0, 1.0]], [[1.0, 0.0], [1.0, 0.0]]]])
    gradients = torch.tensor([[[[4.0, -4.0], [9.0, 2.0]], [[-6.0, 5.0], [3.0, 1.0]]]])
    step = torch.tensor([[[1.0, 0.0], [1.5, 1.0]]])  # mean of (2, 0; 0, 2) and (0, 0; 3, 0)
    one = torch.eye(2) + step
    assert torch.equal(methods.relevance([attention], [gradients]), one)
    both = methods.relevance([attention] * 2, [gradients] * 2)
    assert torch.equal(both, one + step @ one)
    assert not torch.equal(methods.relevance([attention], [-gradients]), one)


def cubes(images):
    """(w · x)³ for two w, over the three pixels of an image."""
    return (images.flatten(1) @ WEIGHTS.T) ** 3


@pytest.mark.parametrize("baseline", [0.0, 0.5])
def test_integrated_gradients_of_a_cube(baseline):
    images = torch.tensor([[1.0, 0.25, 2.0], [0.5, 1.5, -1.0], [1.0, 1.0, 0.0]]).double()
    target = Target(cubes, torch.tensor([1, 0, 1]), torch.zeros(3, dtype=torch.long))
    inputs = images[:, None, None]
    gradients = methods.integrated_gradients(target, inputs, baseline)[:, 0, 0]
    chosen = WEIGHTS[target.index]
    ends, starts = (chosen * images).sum(1), (chosen * baseline).sum(1)
    factor = ends**2 + ends * starts + starts**2  # the integral of 3 (start + α (end - start))²
    expected = chosen * (images - baseline) * factor[:, None]
    close = {"rtol": 16 * 2.0**-24, "atol": 16 * 2.0**-24}  # captum's steps are float32
    torch.testing.assert_close(gradients, expected, **close)
    complete = target.numbers(inputs) - target.numbers(torch.full_like(inputs, baseline))
    torch.testing.assert_close(gradients.sum(1), complete, **close)
    product = methods.gradient_times_input(target, inputs)[:, 0, 0]
    torch.testing.assert_close(product, 3 * chosen * images * ends[:, None] ** 2)
    assert not torch.allclose(product.sum(1), complete)


def test_gradients_by_attention_are_those_of_the_forward_pass():
    model = timm.models.VisionTransformer(
        img_size=4, patch_size=2, in_chans=1, num_classes=3, embed_dim=8, depth=2, num_heads=2
    )
    model = model.double().eval()
    for block in model.blocks:
        block.attn.fused_attn = False
    images = torch.rand(1, 1, 4, 4, dtype=torch.float64)
    target = Target(model, torch.tensor([2]), torch.tensor([0]))
    attention, gradients = methods.attention_and_gradients(model, target, images)
    assert [each.shape for each in attention] == [(1, 2, 5, 5)] * 2
    step = 1e-5
    for block, entry in ((0, (0, 1, 3, 2)), (1, (0, 0, 0, 4))):
        ends = []
        for sign in (1, -1):

            def moved(module, inputs, result, entry=entry, sign=sign):
                result = result.clone()
                result[entry] += sign * step
                return result

            handle = model.blocks[block].attn.attn_drop.register_forward_hook(moved)
            with torch.no_grad():
                ends.append(float(target.numbers(images)[0]))
            handle.remove()
        slope = (ends[0] - ends[1]) / (2 * step)
        assert abs(slope - float(gradients[block][entry])) < 1e-8  # step² of a smooth function
    with recorded_attention(model) as after:
        model(images)
    assert len(after) == 2
    assert torch.equal(after[0], attention[0])


def test_used_heads_of_grid_and_class_token():
    attention = torch.stack([torch.full((3, 3), 1 / 3), shift(3, 1)[0].float()])[None]
    rows = methods.used_attention(attention, ["unused", "offset"])
    assert torch.equal(rows[0, 1:], shift(3, 1)[0, 1:].float())
    assert torch.equal(rows[0, 0], torch.tensor([1.0, 0.0, 0.0]))  # nothing serves it
    rows = methods.used_attention(attention, ["mean", "unused"])
    assert torch.equal(rows[0, 0], attention[0, 0, 0])
    assert torch.equal(rows[0, 1:], torch.eye(3)[1:])


def test_a_random_map_has_the_field_s_fraction_of_tokens_inside():
    random = np.random.default_rng(0)
    count, tokens, inside = 4000, 20, 6
    field = np.zeros((count, tokens), bool)
    field[:, :inside] = True
    inside_share = scores.fraction_inside(random.random((count, tokens)), field)
    limit = sqrt(log(2e6) / (2 * count))  # Hoeffding: exceeded once in a million runs
    assert abs(inside_share.mean() - inside / tokens) < limit
    assert abs(inside_share.mean() - (1 - inside / tokens)) > limit


def test_rank_correlation_is_spearman_s():
    random = np.random.default_rng(1)
    maps, truth = random.integers(0, 5, (2, 10, 16)).astype(float)
    expected = [spearmanr(a, b).statistic for a, b in zip(maps, truth, strict=True)]
    correlations = scores.rank_correlation(maps, truth)
    np.testing.assert_allclose(correlations, expected, atol=1e-12)
    noise = 1e-7 * random.random(maps.shape)
    np.testing.assert_array_equal(scores.rank_correlation(maps + noise, truth), correlations)
    assert scores.rank_correlation(1 + noise[:1], truth[:1]).tolist() == [0.0]
    assert np.isnan(scores.rank_correlation(maps[:1], np.ones((1, 16)))).all()


def test_what_is_not_defined_is_left_out():
    maps = np.array([[0.0, 0.0], [1.0, 3.0], [1.0, 3.0]])
    field = np.array([[True, False], [True, True], [True, False]])
    jacobian = np.array([[1.0, 0.0], [1.0, 2.0], [2.0, 1.0]])
    result = scores.score(maps, field, jacobian, jacobian)
    np.testing.assert_array_equal(result.inside, [np.nan, np.nan, 0.25])
    np.testing.assert_allclose(result.jacobian, [0, 1, -1])
    assert result.blank.tolist() == [True, False, False]
    with pytest.raises(ValueError, match="negative"):
        scores.score(-maps, field, jacobian, jacobian)
    with pytest.raises(ValueError, match="NaN"):
        scores.score(maps * np.nan, field, jacobian, jacobian)


def test_pixels_of_a_patch_are_added_up():
    pixels = torch.zeros(1, 2, 4, 6)
    pixels[0, 0, 1, 5], pixels[0, 1, 0, 4], pixels[0, 0, 3, 0] = 1, -2, 5
    assert by_token(pixels, 2).tolist() == [[0, 0, 3, 5, 0, 0]]


def test_the_interval_is_that_of_the_bootstrap():
    numbers = np.random.default_rng(2).normal(size=400)
    interval = table.mean_over_models(numbers)
    normal = 1.96 * numbers.std() / 20
    assert abs((interval.high - interval.low) / (2 * normal) - 1) < 0.05
    assert interval.low < interval.mean < interval.high


def test_results_are_not_written_among_the_files_of_the_suite(tmp_path, capsys):
    for output in (tmp_path / "suite", tmp_path / "suite" / "results"):
        assert command.main(["--suite", str(tmp_path / "suite"), "--output-dir", str(output)]) == 2
        assert f"--output-dir got {output}/results.json, but" in capsys.readouterr().err
    assert not list(tmp_path.iterdir())


def test_the_command_keeps_what_it_has(tmp_path, monkeypatch, capsys):
    monkeypatch.setattr(known_answers, "NETWORKS", known_answers.NETWORKS[:1])
    monkeypatch.setattr(methods, "STEPS", 4)
    words = ["--suite", str(tmp_path / "suite"), "--output-dir", str(tmp_path / "out")]
    assert command.main(words) == 0
    assert "01-shift: as its truth says; explained" in capsys.readouterr().out
    results = (tmp_path / "out/results.json").read_bytes()
    shift_result = json.loads(results)[0]
    gradient, random = (
        shift_result["scores"]["tokens"][name]["inside"] for name in ("gradient × input", "random")
    )
    assert gradient == 1
    assert random < 0.05  # 1 of 64 tokens
    assert shift_result["distances"][0][0]["measured"] == pytest.approx(sqrt(2))
    assert command.main(words) == 0
    assert "kept" in capsys.readouterr().out
    assert (tmp_path / "out/results.json").read_bytes() == results
    picture = (tmp_path / "out/explanations.svg").read_text()
    assert 'id="mean-tokens-inside-0"' in picture

    (tmp_path / "out/models/01-shift.json").write_text("{")
    assert command.main(words) == 2
    assert "remove it, and it is made" in capsys.readouterr().err
    assert command.main([*words, "--models", "spot"]) == 2
    assert "--models spot, but expected names among shift" in capsys.readouterr().err
    with monkeypatch.context() as patch:
        patch.setattr(known_answers, "recorded_digests", dict)
        assert command.main(words) == 2
        message = capsys.readouterr().err
        assert "2 of 2 files of " in message
        assert "such as 01-shift.safetensors, have other digests than" in message
    monkeypatch.setitem(sys.modules, "captum", None)
    monkeypatch.setattr("convattn.extras.find_spec", lambda name: name != "captum" or None)
    assert command.main(words) == 2
    assert "pip install 'convattn[explanations]'" in capsys.readouterr().err
