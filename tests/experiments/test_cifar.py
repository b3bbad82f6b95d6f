"""`experiments/cifar.py` as one uses it: what it prints, what it refuses, and with which code."""

import functools
import json
import os
import resource
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest
from lab.data.cifar_files import cifar10_binary, write_folder, write_tar
from lab.runs.tiny_runs import write_pictures

from convattn_lab.commands.cifar import main
from convattn_lab.runs.directory import RunDirectory

ROOT = Path(__file__).parents[2]
SCRIPT = ROOT / "experiments" / "cifar.py"
TINY = "--model.heads 2 --model.width 4 --model.inner 4 --training.epochs 1 --training.batch-size 2"
WORDS = [*TINY.split(), "--no-figures"]
cifar = functools.partial(main, configs=ROOT / "experiments" / "configs")


@pytest.fixture(scope="module")
def pictures(tmp_path_factory) -> Path:
    return write_pictures(tmp_path_factory.mktemp("data") / "pictures")


def script(*words: str, **options) -> subprocess.CompletedProcess[str]:
    """A process of its own, as a user starts it."""
    return subprocess.run(
        [sys.executable, str(SCRIPT), *words],
        capture_output=True,
        text=True,
        timeout=120,
        **options,
    )


def processor_seconds() -> float:
    """What child processes have used; other work on the machine does not count."""
    used = resource.getrusage(resource.RUSAGE_CHILDREN)
    return used.ru_utime + used.ru_stime


@pytest.mark.slow
def test_help_is_fast_and_reads_well(tmp_path) -> None:
    """Without JAX: a module of that name which fails stands in its way."""
    (tmp_path / "jax.py").write_text("raise SystemExit('JAX was imported')\n")
    before = processor_seconds()
    done = script("--help", env={**os.environ, "PYTHONPATH": str(tmp_path), "COLUMNS": "100"})
    spent = processor_seconds() - before
    assert (done.returncode, done.stderr) == (0, "")
    for text in (
        "--config NAME",
        "--data PATH",
        "--resume RUN",
        "--model.heads",
        "--training.epochs",
    ):
        assert text in done.stdout
    assert "Isotropic Gaussians, general Gaussians" in done.stdout
    for text in ("Raises", ">>>", "**", "Traceback"):
        assert text not in done.stdout
    assert spent < 2


def test_the_list_names_every_config(capsys) -> None:
    assert cifar(["--list"]) == 0
    output = capsys.readouterr().out
    for name in ("quadratic", "gaussian", "learned", "content", "heads16", "resnet18", "slice"):
        assert name in output
    for name in ("resnet_slice", "sac", "msac", "cmhsa3_convolution", "vit_base", "deit_small"):
        assert name in output
    column = " ".join(line.split("│")[2].strip() for line in output.splitlines() if "│" in line)
    assert "bundled slice of CIFAR-10: the default." in column
    assert "C20, appendix F; Fig. 14" in output


@pytest.mark.slow
def test_a_run_ends_with_its_accuracy_and_can_be_resumed(pictures, tmp_path, capsys) -> None:
    run = tmp_path / "run"
    words = ["--data", str(pictures), *WORDS, "--output-dir", str(run)]
    assert cifar(words) == 0
    lines = capsys.readouterr().out.splitlines()
    accuracy = RunDirectory(run).read_result()["test_accuracy"]
    assert lines[-1] == f"test accuracy {100 * accuracy:.1f} %"
    assert lines[:2] == [f"run: {run}", "images: pictures, 4 + 2 images"]
    assert cifar(["--resume", str(run), "--no-figures"]) == 0
    assert capsys.readouterr().out.splitlines()[-1] == lines[-1]
    assert cifar(words) == 0  # the same words go on, too
    assert capsys.readouterr().out.splitlines()[-1] == lines[-1]
    assert len(RunDirectory(run).read_metadata()["sittings"]) == 3
    assert cifar([*words, "--training.seed", "1"]) == 2
    assert "differ in training.seed" in capsys.readouterr().err


@pytest.mark.slow
def test_a_binary_archive_will_do(tmp_path, capsys, monkeypatch) -> None:
    write_tar(tmp_path / "images.tar.gz", cifar10_binary(2), "cifar-10-batches-bin/")
    monkeypatch.chdir(tmp_path)
    words = ["--data", "images.tar.gz", *WORDS, "--training.batch-size", "5", "--config", "slice"]
    assert cifar(words) == 0
    assert "images: CIFAR-10, 10 + 2 images" in capsys.readouterr().out
    (run,) = (tmp_path / "runs").iterdir()
    assert run.name.startswith("slice-")
    stored = json.loads((run / "config.json").read_text())
    assert stored["images"]["source"] == str(tmp_path / "images.tar.gz")
    command = json.loads((run / "run.json").read_text())["command"]
    assert f"--data {tmp_path / 'images.tar.gz'}" in command


@pytest.mark.parametrize(
    ("words", "message"),
    [
        ("--config quadratc", "no config 'quadratc': did you mean quadratic or quadratic_reduced?"),
        ("--config", "--config"),
        ("--training.epoch 3", "--training.epochs"),
        ("--model.blocks 2", "--model.blocks"),
        ("--training.epochs 0", "epochs=0, but expected at least 1"),
        ("--training.epochs three", "three"),
        ("--images.classes coarse", "only CIFAR-100 has superclasses"),
        ("--training.batch-size 4000", "there are only 2000 training images"),
        ("--training.select best", "none are split off"),
        ("--data {tmp}/nothing", "no such file or folder"),
        ("--data {tmp}/other", "no known format; found readme.txt"),
        ("--data {tmp}/other/readme.txt", "readme.txt: cannot be read"),
        ("--data {tmp} --download cifar10-binary", "exclude each other: give one of them"),
        ("--download cifar11", "cifar10-binary"),
        (
            "--download cifar10-binary --download-dir {tmp}/other/readme.txt",
            "cannot be fetched into",
        ),
        ("--resume {tmp}/other --no_figures", "has no config.json"),
        ("--resume {tmp}/other --output_dir {tmp}", "but --output_dir was given too"),
        ("--output-dir {tmp}/other/readme.txt", "is a file, but the folder of a run was expected"),
        ("--output-dir {tmp}/other", "that a script of experiments/ has written, or a new folder"),
        ("--resume {tmp}/other --training.epochs 3", "but --training.epochs was given too"),
        ("--resume {tmp}/other --data {tmp}", "but --data was given too"),
        ("--resume={tmp}/other --config=slice", "but --config=slice was given too"),
    ],
)
@pytest.mark.quick(8)
def test_wrong_use_is_refused(words, message, tmp_path, capsys, monkeypatch) -> None:
    write_folder(tmp_path / "other", {"readme.txt": b"no pictures"})
    monkeypatch.chdir(tmp_path)
    assert cifar([word.format(tmp=tmp_path) for word in words.split()]) == 2
    output = capsys.readouterr().err
    assert message in " ".join(output.replace("│", " ").split())
    assert "Traceback" not in output


def test_a_crop_beyond_the_images_leaves_no_folder_behind(tmp_path, capsys) -> None:
    assert cifar(["--images.crop", "1000", "--output-dir", str(tmp_path / "new")]) == 2
    assert "expected less than the 32×32 pixels" in capsys.readouterr().err
    assert not (tmp_path / "new").exists()


@pytest.mark.slow
def test_a_loss_that_is_not_finite_is_a_failure(pictures, tmp_path, capsys) -> None:
    words = ["--data", str(pictures), *WORDS, "--output-dir", str(tmp_path / "run")]
    words += ["--training.optimizer", "sgd", "--training.learning-rate", "1e38"]
    assert cifar([*words, "--training.epochs", "3"]) == 1
    assert "the loss of step" in capsys.readouterr().err


@pytest.mark.slow
def test_ctrl_c_saves_and_says_how_to_go_on(pictures, tmp_path) -> None:
    """In a process of its own, as soon as metrics appear."""
    run = tmp_path / "run"
    words = ["--data", str(pictures), *WORDS, "--training.epochs", "100000"]
    words += ["--training.evaluate-every", "100000", "--output-dir", str(run)]
    process = subprocess.Popen(
        [sys.executable, str(SCRIPT), *words],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        env={**os.environ, "JAX_DISABLE_MOST_OPTIMIZATIONS": "1"},
    )
    try:
        deadline = time.monotonic() + 120
        metrics = run / "metrics.jsonl"
        while not (metrics.exists() and metrics.stat().st_size) and process.poll() is None:
            assert time.monotonic() < deadline
            time.sleep(0.05)
        process.send_signal(signal.SIGINT)
        out, errors = process.communicate(timeout=120)
    finally:
        process.kill()
    output = " ".join(out.decode().split())
    assert process.returncode == 0, errors.decode()
    assert "stopped by SIGINT at step" in output
    assert "go on with: python experiments/cifar.py --resume" in output
    assert json.loads((run / "result.json").read_text())["status"] == "stopped"
    assert any(path.name.isdigit() for path in (run / "checkpoints").iterdir())
