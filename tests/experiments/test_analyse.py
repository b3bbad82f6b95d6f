import json
import os
import subprocess
import sys
from pathlib import Path

import pytest
from lab.analysis.synthetic_runs import write_run

from convattn_lab.analysis import figures as drawing
from convattn_lab.commands.analyse import main
from convattn_lab.models.settings import EncoderSettings, ResNetSettings

EXPERIMENTS = Path(__file__).parents[2] / "experiments"
PICTURES = {
    ("curves",): "curves",
    ("centers",): "centers",
    ("centers", "--epoch", "2"): "centers-epoch2",
    ("motion",): "motion-layer2",
    ("motion", "--layer", "1", "--epochs", "0", "4"): "motion-layer1-epochs0-4",
    ("attention",): "attention-position",
    ("attention", "--query", "0", "3", "--epoch", "2"): "attention-position-query0-3-epoch2",
    ("convolution", "--kernel-size", "2"): "convolution-kernel2",
    ("convolution",): "convolution",
}


@pytest.fixture
def run(tmp_path):
    return write_run(tmp_path / "run")


@pytest.fixture(scope="module")
def stored(tmp_path_factory):
    """Runs of three models, only to be read."""
    folder = tmp_path_factory.mktemp("stored")
    write_run(folder / "run")
    write_run(folder / "resnet", ResNetSettings())
    write_run(folder / "content", EncoderSettings("content", heads=(2,), width=8))
    return folder


@pytest.fixture
def saved(monkeypatch):
    """The paths of the pictures that a command writes, which are not drawn."""

    def save_picture(figure, folder, name):
        return [folder / f"{name}.{suffix}" for suffix in ("png", "svg")]

    for module in ("convattn.diagnosis.picture", "convattn_lab.analysis.figures"):
        monkeypatch.setattr(f"{module}.save_picture", save_picture)


@pytest.mark.parametrize("words", PICTURES)
def test_a_command_writes_its_picture_beside_the_run(stored, saved, capsys, words) -> None:
    run = stored / "run"
    assert main([words[0], str(run), *words[1:]]) == 0
    captured = capsys.readouterr()
    expected = [run / "figures" / f"{PICTURES[words]}.{suffix}" for suffix in ("png", "svg")]
    assert captured.err == ""
    assert captured.out.splitlines()[-2:] == [str(path) for path in expected]


@pytest.mark.parametrize(
    ("command", "name", "link"),
    [
        ("table", "config.json", ""),
        ("curves", "metrics.jsonl", "symlink_to"),
        ("convolution", "snapshots", "hardlink_to"),
        ("prune", "run.json", ""),
        ("prune", "new/config.json", ""),
    ],
)
def test_the_numbers_do_not_overwrite_a_run(run, tmp_path, capsys, command, name, link) -> None:
    (run / "new").mkdir()
    (run / "new" / "config.json").write_text("{}")
    path = next((run / name).iterdir()) if name == "snapshots" else run / name
    before, target = path.read_bytes(), tmp_path / "numbers.json" if link else path
    if link:
        getattr(target, link)(path)
    folder = ["--output-dir", str(run / "new")] if command == "prune" else []
    assert main([command, str(run), *folder, "--json", str(target)]) == 2
    assert "--json and RUN are both" in capsys.readouterr().err
    assert path.read_bytes() == before
    assert not (run / "figures").exists()


@pytest.mark.slow
def test_pictures_go_where_they_are_asked_to(run, tmp_path) -> None:
    assert main(["centers", str(run), "--output-dir", str(tmp_path / "here")]) == 0
    assert not (run / "figures").exists()
    assert (tmp_path / "here" / "centers.svg").exists()


def test_a_folder_that_may_not_be_written_into_is_refused(run, monkeypatch, capsys) -> None:
    monkeypatch.setattr(os, "access", lambda path, mode: False)
    assert main(["centers", str(run), "--output-dir", str(run / "new")]) == 2
    assert "may not be written into" in capsys.readouterr().err
    assert not (run / "new").exists()


def test_figures_draws_all(run, saved, capsys) -> None:
    assert main(["figures", str(run)]) == 0
    written = capsys.readouterr().out.splitlines()
    # The names are those that the commands give.
    names = {*PICTURES.values()} - {PICTURES[words] for words in PICTURES if words[1:]}
    assert sorted(written) == sorted(
        str(run / "figures" / f"{name}.{suffix}") for name in names for suffix in ("png", "svg")
    )


def test_curves_of_several_runs_and_their_numbers(run, saved, tmp_path, capsys) -> None:
    other = write_run(tmp_path / "other", note="JPEG-recompressed")
    numbers = tmp_path / "curves.json"
    assert main(["curves", str(run), str(other), "--json", str(numbers)]) == 0
    out = capsys.readouterr().out
    assert (
        "run other: test accuracy 25.0 % (125 of 500), CIFAR-10, slice of 2,000 + 500 (JPEG" in out
    )
    assert out.splitlines()[-1].endswith("curves-with-other.svg")
    stored = json.loads(numbers.read_text())["runs"]
    assert [curve["run"] for curve in stored] == [str(run), str(other)]
    assert stored[1]["test"] == [[1, 0.1], [3, 0.3], [4, 0.25]]


def test_table_in_three_forms(run, tmp_path, capsys) -> None:
    numbers = tmp_path / "table.json"
    assert main(["table", str(run), "--markdown", "--json", str(numbers)]) == 0
    assert capsys.readouterr().out.startswith("| run | accuracy | paper |")
    (row,) = json.loads(numbers.read_text())["rows"]
    assert (row["name"], row["correct"], row["test_images"]) == ("run", 125, 500)
    assert main(["table", str(run)]) == 0
    assert "accuracy" in capsys.readouterr().out


def test_convolution_prints_and_writes_its_numbers(run, saved, tmp_path, capsys) -> None:
    numbers = tmp_path / "distances.json"
    assert main(["convolution", str(run), "--json", str(numbers)]) == 0
    stored = json.loads(numbers.read_text())
    assert stored["epochs"] == [0, 2, 4]
    assert f"{stored['layers'][-1][1]['relative']:.3f}" in capsys.readouterr().out


def test_attention_without_content_says_that_all_maps_are_the_same(run, saved, capsys) -> None:
    assert main(["attention", str(run)]) == 0
    assert "does not know the content" in capsys.readouterr().out


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (["curves"], "no RUN was given"),
        (["table"], "no RUN was given"),
        (["centers", "{tmp}"], "not the folder of a run"),
        (["figures", "{tmp}"], "not the folder of a run"),
        (["centers", "{run}", "--epoch", "3"], "no snapshot of epoch 3; there are [0, 2, 4]"),
        (["motion", "{run}", "--layer", "4"], "layer 4, but"),
        (["motion", "{run}", "--epochs"], "--epochs has no numbers"),
        (["motion", "{resnet}"], "is of kind='resnet', but expected 'encoder'"),
        (["centers", "{resnet}"], "is of kind='resnet', but expected 'encoder'"),
        (["centers", "{content}"], "draw their maps instead: python experiments/analyse.py"),
        (["attention", "{run}", "--query", "9", "0"], "rows are 0 to 3"),
        (
            ["attention", "{run}", "--position-only", "--image", "1"],
            "--position-only has no images",
        ),
        (["attention", "{content}", "--epoch", "2"], "--epoch is of a snapshot"),
        (["attention", "{run}", "--image", "0", "--epoch", "2"], "--epoch is of a snapshot"),
        (["attention", "{content}", "--image", "0", "--average", "9"], "--image or --average"),
        (["attention", "{content}", "--position-only", "--average", "9"], "leave out --average"),
        (["attention", "{run}", "--average", "9"], "the same for all images; leave out --average"),
        (["centers", "{run}", "--output-dir", "{run}/run.json"], "run.json is a file; give a"),
        (["prune", "{run}", "--output-dir", "{run}/run.json/x"], "run.json is a file; give a"),
        (["convolution", "{run}", "--kernel-size", "99"], "take a smaller kernel"),
        (["convolution", "{run}", "--kernel-size", "0"], "kernel_size=0"),
        (["convolution", "{run}", "--json", "{tmp}/none/x.json"], "does not exist"),
        (["prune", "{content}", "--output-dir", "{tmp}/new"], "no centres"),
        (["prune", "{run}", "--output-dir", "{tmp}/new", "--epochs", "0"], "at least 1"),
        (
            ["prune", "{run}", "--output-dir", "{tmp}/new", "--threshold-condition", "0"],
            "condition=0",
        ),
    ],
)
def test_wrong_use_is_one_message_and_exit_2(stored, tmp_path, capsys, words, message) -> None:
    folders = {name: stored / name for name in ("run", "resnet", "content")} | {"tmp": tmp_path}
    assert main([word.format(**folders) for word in words]) == 2
    error = capsys.readouterr().err
    assert message in error
    assert error.startswith(f"experiments/analyse.py {words[0]}: ")
    assert error.count("\n") == 1
    assert not (tmp_path / "new").exists()


def test_a_run_before_its_first_epoch_has_no_figures(tmp_path, capsys) -> None:
    run = write_run(tmp_path / "run", train=(), test=(), finished=False, snapshots={})
    assert main(["figures", str(run)]) == 2
    message = f"{run} has no finished epoch yet, so nothing can be drawn"
    assert capsys.readouterr().err == f"experiments/analyse.py figures: {message}\n"
    assert not (run / "figures").exists()


def test_a_run_of_which_nothing_can_be_drawn_fails(run, monkeypatch) -> None:
    monkeypatch.setattr(drawing, "fitting_pictures", lambda path: {"centers": None})
    assert main(["figures", str(run)]) == 1


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (["attention", "{run}", "--query", "3"], "did not match expected argument count 2"),
        (["attention", "{run}", "--query", "3", "x"], "['3', 'x']"),
        (["attention", "{run}", "--epoch", "1.5"], "invalid literal for int() with base 10: '1.5'"),
        (["attention", "{run}", "--epoch", "None"], "'None'"),
        (["attention", "{run}", "--image", "a"], "--image"),
    ],
)
def test_what_is_no_whole_number_is_refused(run, capsys, words, message) -> None:
    assert main([word.format(run=run) for word in words]) == 2
    error = " ".join(capsys.readouterr().err.replace("│", " ").split())
    assert message in error
    assert "NoneType" not in error
    assert not (run / "figures").exists()


@pytest.mark.slow
def test_the_file_is_a_program(run) -> None:
    done = subprocess.run(
        [sys.executable, EXPERIMENTS / "analyse.py", "centers", str(run)],
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0
    assert (run / "figures" / "centers.png").exists()
