"""The plan of the comparison, and what is made of its results."""

import sys
from dataclasses import replace
from types import SimpleNamespace

import numpy as np
import pytest
from initialization_comparison import digits, trials
from initialization_comparison.command import main
from initialization_comparison.results import (
    Epoch,
    Result,
    Snapshot,
    read_results,
    write_result,
)
from initialization_comparison.run import (
    compute_metrics,
    initial_parameters,
    some_images,
    trial_images,
)
from initialization_comparison.table import (
    chosen_rates,
    draw_results,
    interval,
    results_table,
    rows,
)
from initialization_comparison.trials import (
    INITIALIZERS,
    LEARNING_RATES,
    Trial,
    comparison,
    require_sizes,
    tuning,
)

from convattn.data.datasets import read_dataset
from convattn.nnx.vision_transformer.state_dict import load_state_dict
from convattn_lab.models.sizes import parameter_count
from convattn_lab.runs.images import make_model

SNAPSHOT = Snapshot(
    epoch=0,
    distance=(0.5, 0.7),
    attention_distance=((1.0,), (3.0,)),
    one_shift=((1.0,), (0.0,)),
    score_gradient=0.25,
    validation_loss=2.3,
    validation_accuracy=0.1,
)


def result(accuracy, loss=1.0, *, sha256="a"):
    """Of a run on ten classes; it diverged if there is no accuracy."""
    return Result(
        schema=2,
        initializer="mimetic",
        images=1000,
        learning_rate=1e-3,
        seed=0,
        dataset="CIFAR-10",
        sha256=sha256,
        classes=10,
        settings={},
        diverged=accuracy is None,
        validation_loss=None if accuracy is None else loss,
        test_loss=None if accuracy is None else 1.0,
        test_accuracy=accuracy,
        seconds=None if accuracy is None else 12.0,
        curve=(Epoch(epoch=1, train_loss=2.0, train_accuracy=0.2),)[: accuracy is not None],
        snapshots=(SNAPSHOT, replace(SNAPSHOT, epoch=1))[: 1 + (accuracy is not None)],
    )


def test_the_plan():
    tried = tuning()
    assert len(tuning(first_grid=True)) == len(INITIALIZERS) * len(LEARNING_RATES)
    assert len(tried) == len(INITIALIZERS) * len(LEARNING_RATES) + 7
    assert set(tuning(first_grid=True)) < set(tried)
    assert {trial.seed for trial in tried}.isdisjoint(trials.SEEDS)
    compared = comparison(dict.fromkeys(INITIALIZERS, 1e-3), (1000, 4000))
    assert len(compared) == 50
    assert len({trial.name for trial in (*tried, *compared)}) == len(tried) + len(compared)
    for trial in (*tried, *compared):
        chosen = trial.settings(50_000)
        assert round(chosen.images.validation * 50_000) == 2_000
        assert round(chosen.images.share * 48_000) == trial.images
        assert trial.tunes == (trial in tried)
        assert chosen.training.evaluate_every == chosen.training.epochs
        assert -(-chosen.training.epochs // chosen.training.snapshot_every) == 4


def test_the_plan_of_the_digits():
    tried = tuning(trials.DIGITS)
    assert len(tried) == 3 * len(INITIALIZERS)
    compared = comparison(dict.fromkeys(INITIALIZERS, 1e-3), (trials.DIGITS_IMAGES,), trials.DIGITS)
    assert len(compared) == 25
    for trial in (*tried, *compared):
        chosen = trial.settings(1293)
        assert round(chosen.images.share * 1093) == trial.images == 100
        assert (chosen.images.crop, chosen.images.flip) == (1, False)
        assert (chosen.training.epochs, chosen.training.batch_size) == (100, 25)
        assert chosen.model.patch_size == 2


def test_the_digits_are_split_once_by_class(monkeypatch):
    pixels = np.arange(1797 * 64).reshape(1797, 8, 8) % 17
    stored = SimpleNamespace(
        images=pixels.astype(float), target=np.arange(1797) % 10, target_names=np.arange(10)
    )
    module = SimpleNamespace(load_digits=lambda: stored)
    monkeypatch.setitem(sys.modules, "sklearn", SimpleNamespace(datasets=module))
    monkeypatch.setitem(sys.modules, "sklearn.datasets", module)
    monkeypatch.setattr(digits, "require", lambda name: None)
    dataset = digits.read_digits()
    assert len(dataset.train) + len(dataset.test) == 1797
    assert np.ptp(np.bincount(dataset.test.labels)) <= 1
    assert dataset.train.images.dtype == np.uint8
    assert dataset.train.images.max() == 255
    assert (dataset.train.images == dataset.train.images[..., :1]).all()


def test_without_scikit_learn_its_extra_is_named(monkeypatch, tmp_path, capsys):
    monkeypatch.setattr("convattn.extras.find_spec", lambda name: None)
    assert main(["--dataset", "digits", "--output-dir", str(tmp_path)]) == 2
    assert "pip install 'convattn[sklearn]'" in capsys.readouterr().err


def test_runs_that_tune_see_no_test_image():
    dataset = read_dataset()
    images = trial_images(tuning()[0], dataset)
    assert images.test is images.validation
    compared = trial_images(Trial("mimetic", 400, 1e-3, 0), dataset)
    assert compared.test is dataset.test
    assert len(compared.validation) == 400


@pytest.mark.slow
def test_the_network_has_as_many_parameters_as_the_plan_says():
    model = make_model(tuning()[0].settings(2000), read_dataset())
    assert parameter_count(model) == 261_586


@pytest.mark.slow
def test_the_range_of_pixels_holds_every_training_image(monkeypatch):
    ranges = []
    monkeypatch.setitem(INITIALIZERS, "mimetic", lambda *args: ranges.append(args[2]) or {})
    trial, dataset = Trial("mimetic", 400, 1e-3, 3), read_dataset()
    images = trial_images(trial, dataset)
    initial_parameters(trial, make_model(trial.settings(2000), dataset), images)
    low, high = ranges[0]
    pixels, _ = some_images(images, images.train, 400)
    # both are reached: there are black and white pixels; 2⁻²² for rounding to float32
    assert np.allclose(pixels.min(axis=(0, 1, 2)), low, rtol=2**-22)
    assert np.allclose(pixels.max(axis=(0, 1, 2)), high, rtol=2**-22)


@pytest.mark.slow
def test_ours_starts_near_a_convolution_and_the_usual_one_does_not():
    trial, dataset = Trial("convolution, filters", 400, 1e-3, 0), read_dataset()
    images = trial_images(trial, dataset)
    batches = some_images(images, images.train, 8), some_images(images, images.validation, 8)
    model = make_model(trial.settings(2000), dataset)
    metrics = {}
    for name in ("convolution, filters", "truncated normal"):
        load_state_dict(model, initial_parameters(replace(trial, initializer=name), model, images))
        metrics[name] = compute_metrics(model, *batches, heads=trials.NETWORK.heads)
    ours, usual = metrics.values()
    assert max(ours["distance"]) < 0.2
    assert min(usual["distance"]) > 0.9
    assert ours["score_gradient"] > 0
    assert abs(usual["validation_loss"] - np.log(10)) < 0.2


def test_rates_are_chosen_by_validation_loss_of_whole_tuning_runs():
    tried = tuning(first_grid=True)
    results = {t.name: result(0.9, abs(t.learning_rate - 1e-3)) for t in tried}
    assert chosen_rates(results, tuning()).keys() == {"truncated normal"}  # of more, runs are left
    assert chosen_rates(results, tried) == dict.fromkeys(INITIALIZERS, 1e-3)
    del results[tried[0].name]
    assert tried[0].initializer not in chosen_rates(results, tried)


def test_a_rate_that_diverges_is_not_chosen():
    tried = tuning(first_grid=True)
    name = tried[0].initializer
    losses = [None, 0.9, 0.8]
    results = {
        trial.name: result(accuracy)
        for trial, accuracy in zip(tried[: len(LEARNING_RATES)], losses, strict=True)
    }
    assert chosen_rates(results, tried) == {name: LEARNING_RATES[1]}
    assert chosen_rates(dict.fromkeys(results, result(None)), tried) == {}
    assert comparison({}, (1000,)) == []


def test_differences_are_taken_seed_by_seed():
    compared = comparison(dict.fromkeys(INITIALIZERS, 1e-3), (1000,))
    gains = {"truncated normal": 0.0, "mimetic": 0.1}
    results = {
        trial.name: result(0.3 + 0.05 * trial.seed + gains[trial.initializer])
        for trial in compared
        if trial.initializer in gains
    }
    by_name = {row.initializer: row for row in rows(results, compared)}
    assert by_name.keys() == gains.keys()
    assert by_name["mimetic"].gain == pytest.approx(0.1)
    assert by_name["mimetic"].gain_half == pytest.approx(0, abs=1e-9)
    assert by_name["mimetic"].half > 0.05
    table = results_table([*by_name.values()])
    cells = [list(column.cells) for column in table.columns]
    assert cells[3] == ["40.0 ± 9.8", "50.0 ± 9.8"]
    assert cells[4] == ["–", "+10.0 ± 0.0"]
    assert cells[5:] == [["0.60 → 0.60"] * 2, ["2.0 → 2.0"] * 2, ["0.25"] * 2, ["12"] * 2]
    draw_results([*by_name.values()], 1000)


def test_a_run_that_diverged_counts_as_chance():
    compared = comparison({"truncated normal": 1e-3}, (1000,))[:2]
    results = dict(
        zip([trial.name for trial in compared], [result(0.5), result(None)], strict=True)
    )
    table_rows = rows(results, compared)
    assert table_rows[0].mean == pytest.approx(0.3)
    assert list(results_table(table_rows).columns[2].cells) == ["2\n1 diverged"]
    draw_results(table_rows, 1000)


def test_intervals():
    assert interval([]) == (pytest.approx(float("nan"), nan_ok=True),) * 2
    mean, half = interval([1.0, 2.0, 3.0])  # t = 4.3027 for two degrees of freedom
    assert (mean, round(half, 4)) == (2.0, round(4.30265 / 3**0.5, 4))


def test_results_are_read_as_they_were_written(tmp_path):
    written = {"a": result(0.5), "b": result(None)}
    for name, content in written.items():
        write_result(tmp_path / f"{name}.json", content)
    assert read_results(tmp_path) == written
    assert '"validation_loss":null' in (tmp_path / "b.json").read_text()


def test_damaged_results_and_those_of_other_images_are_named(tmp_path):
    (tmp_path / "a.json").write_text('{"schema": 2}')
    with pytest.raises(ValueError, match=r"a\.json is no result .*initializer"):
        read_results(tmp_path)
    write_result(tmp_path / "a.json", result(0.5))
    with pytest.raises(ValueError, match=r"a\.json is a result of other images"):
        read_results(tmp_path, "b")
    write_result(tmp_path / "b.json", result(0.5, sha256="b"))
    with pytest.raises(ValueError, match=r"b\.json is a result of other images"):
        read_results(tmp_path)


@pytest.mark.parametrize(
    ("sizes", "available", "message"),
    [
        ((), 50_000, "at least one"),
        ((1000, 99), 50_000, "--sizes 99"),
        ((48_001,), 50_000, "48,001 training images, but there are 50,000, of which 2,000"),
        ((100,), 1_240, "the tuning of learning rates takes 1,000"),
    ],
)
def test_sizes_that_no_run_can_have(sizes, available, message):
    with pytest.raises(ValueError, match=message):
        require_sizes(sizes, available)


def test_the_least_and_the_largest_size():
    require_sizes((100, 48_000), 50_000)
    require_sizes((48_001,), None)


@pytest.mark.parametrize(
    ("words", "message"),
    [
        ([], "no --data"),
        (["--table"], "holds no results"),
        (["--table", "--sizes", "99"], "--sizes 99"),
        (["--data", "nowhere"], "nowhere"),
        (["--quick", "--data", "cifar"], "--quick and --data"),
        (["--quick", "--sizes", "100"], "--quick and --sizes"),
        (["--dataset", "digits", "--quick", "--data", "x"], "digits and --quick, --data"),
        (["--dataset", "digits", "--first-grid"], "digits and --first-grid"),
    ],
)
def test_wrong_use(words, message, tmp_path, capsys):
    assert main([*words, "--output-dir", str(tmp_path)]) == 2
    assert message in capsys.readouterr().err
    assert not list(tmp_path.iterdir())
