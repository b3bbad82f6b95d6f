import os
import shutil
import subprocess
import sys
from pathlib import Path

import jax
import pytest
from ledger.proof_files import claim, evidence, write

import convattn
from convattn.cli.__main__ import commands
from convattn.cli.running import guarded


def test_help_loads_no_jax():
    words = [sys.executable, "-X", "importtime", "-m", "convattn.cli", "--help"]
    done = subprocess.run(words, capture_output=True, text=True, check=True)
    imported = {line.rsplit("|", 1)[-1].strip() for line in done.stderr.splitlines()}
    assert "tyro" in imported
    assert not imported & {"jax", "jaxlib", "numpy"}
    assert all(name in done.stdout for name in commands())


@pytest.mark.parametrize("name", commands())
def test_every_command_has_help(convattn_command, name):
    done = convattn_command(*name.split(), "--help")
    assert done.code == 0
    assert f"usage: convattn {name}" in done.out
    assert ("--json" in done.out) == (name not in ("ledger", "explore", "accelerator"))
    assert "None" not in done.out


@pytest.mark.parametrize(("name", "columns"), [("convert kernel", 1), ("heads", 39)])
def test_help_is_laid_out_on_at_least_40_columns(convattn_command, monkeypatch, name, columns):
    """On fewer, the layout of tyro never ends."""
    monkeypatch.setenv("COLUMNS", str(columns))
    done = convattn_command(*name.split(), "--help")
    assert done.code == 0
    _, table = done.out.split("options", 1)
    assert {len(line) for line in table.splitlines()[1:] if line} == {40}


def test_every_program_has_at_least_40_columns(monkeypatch):
    monkeypatch.setenv("COLUMNS", "1")
    assert guarded("experiments/cifar.py", lambda: shutil.get_terminal_size().columns) == 40


def test_a_misspelt_command_is_answered_with_the_nearest(convattn_command):
    done = convattn_command("head")
    assert done.err.startswith("convattn head: there is no command 'head', did you mean 'heads'?")


def test_version(convattn_command):
    done = convattn_command("--version")
    assert (done.code, done.out) == (0, f"convattn {convattn.__version__}\n")


@pytest.mark.parametrize(
    "words",
    [
        [],
        ["nonsense"],
        ["--nonsense"],
        ["verify", "--nonsense"],
        ["verify", "--seed", "one"],
        ["convert"],
        ["convert", "k.npy"],
        ["convert", "kernel"],
        ["convert", "kernel", "k.npy", "--encoding", "nonsense"],
    ],
)
def test_wrong_words_exit_2(convattn_command, words):
    done = convattn_command(*words)
    assert done.code == 2
    assert done.err


def test_a_defect_is_reported_in_one_line(convattn_command, monkeypatch):
    monkeypatch.setattr("convattn_ledger.commands.verify.Verify.__call__", lambda self: 1 / 0)
    done = convattn_command("verify")
    assert done.code == 70
    assert done.err.splitlines() == [
        "convattn verify: a defect in convattn, please report it: "
        "ZeroDivisionError('division by zero') (set CONVATTN_TRACEBACK=1 to see where)"
    ]


@pytest.mark.parametrize(
    "error",
    [
        MemoryError(),
        RuntimeError("RESOURCE_EXHAUSTED: Out of memory allocating 8 bytes"),
        ImportError("libjax.so: failed to map segment from shared object"),
    ],
    ids=lambda error: type(error).__name__,
)
def test_out_of_memory_is_no_defect(convattn_command, monkeypatch, error):
    def fail(self):
        raise error

    monkeypatch.setattr("convattn_ledger.commands.verify.Verify.__call__", fail)
    done = convattn_command("verify")
    assert done.code == 2
    assert done.err.startswith("convattn verify: out of memory; ")


@pytest.mark.parametrize(
    ("words", "platform"),
    [
        (["audit"], "nonsense"),
        (["verify", "--quick", "--claim", "C20.theorem1"], "cuda"),
    ],
)
@pytest.mark.slow
def test_a_platform_that_is_not_there_exits_2(words, platform):
    if platform == "cuda" and jax.default_backend() == "gpu":
        pytest.skip("this machine has the platform")
    done = subprocess.run(
        [sys.executable, "-m", "convattn.cli", *words],
        env={**os.environ, "JAX_PLATFORMS": platform},
        capture_output=True,
        text=True,
        check=False,
    )
    assert (done.returncode, done.stdout) == (2, "")
    assert f"JAX_PLATFORMS='{platform}', but expected" in done.stderr


@pytest.mark.slow
@pytest.mark.parametrize("script", ["contraction_orders", "bench", "cifar", "transformation_time"])
def test_a_script_on_a_platform_that_is_not_there_exits_2(script, tmp_path):
    done = subprocess.run(
        [sys.executable, str(Path(__file__).parents[2] / "experiments" / f"{script}.py")],
        env={**os.environ, "JAX_PLATFORMS": "nonsense"},
        capture_output=True,
        cwd=tmp_path,
        text=True,
        check=False,
    )
    assert (done.returncode, done.stderr.count("\n")) == (2, 1)
    assert "JAX_PLATFORMS='nonsense', but expected" in done.stderr


def test_a_reader_that_goes_away_is_no_failure(tmp_path):
    read, written = os.pipe()
    os.close(read)
    done = subprocess.run(
        ledger_of_one(tmp_path), stdout=written, stderr=subprocess.PIPE, text=True, check=False
    )
    os.close(written)
    assert (done.returncode, done.stderr) == (0, "")


def ledger_of_one(tmp_path):
    directory = write(tmp_path, p__a=claim("S.a"))
    return [sys.executable, "-m", "convattn.cli", "ledger", "--proofs", str(directory)]


def test_a_full_disk_is_wrong_use_and_no_defect(tmp_path):
    with Path("/dev/full").open("w") as full:
        done = subprocess.run(
            ledger_of_one(tmp_path), stdout=full, stderr=subprocess.PIPE, text=True, check=False
        )
    assert (done.returncode, done.stderr.count("\n")) == (2, 1)
    assert done.stderr.startswith("convattn ledger: ")


@pytest.mark.parametrize("closed", ["1>&-", "1>&- 2>&-"])
@pytest.mark.quick(1)
def test_closed_outputs_are_no_failure(tmp_path, closed):
    words = ["sh", "-c", f'"$@" {closed}', "sh", *ledger_of_one(tmp_path)]
    done = subprocess.run(words, capture_output=True, text=True, check=False)
    assert (done.returncode, done.stderr) == (0, "")


LOADING = """
import sys
from convattn.cli.interruption import loading_can_be_interrupted

sys.path.insert(0, sys.argv[1])
with loading_can_be_interrupted("program"):
    try:
        import module_that_loads
    except KeyboardInterrupt:
        print("loading was interrupted")
    try:
        module_that_loads.interrupt()
    except KeyboardInterrupt:
        print("running was interrupted")
"""


@pytest.mark.usefixtures("no_signal_is_ignored")
@pytest.mark.parametrize(
    ("last", "code", "out", "err"),
    [
        ("interrupt()", 130, "", "program: interrupted\n"),
        ("", 0, "running was interrupted\n", ""),
    ],
    ids=["loading", "running"],
)
def test_an_interrupt_amid_loading_ends_the_process(tmp_path, last, code, out, err):
    module = f"import os, signal\ndef interrupt():\n    os.kill(os.getpid(), signal.SIGINT)\n{last}"
    (tmp_path / "module_that_loads.py").write_text(module)
    done = subprocess.run(
        [sys.executable, "-c", LOADING, str(tmp_path)], capture_output=True, text=True, check=False
    )
    assert (done.returncode, done.stdout, done.stderr) == (code, out, err)


def test_names_do_not_command_the_terminal(convattn_command):
    done = convattn_command("check", "a\nACCEPT  b\x1b[31m\u202e")
    assert done.code == 2
    assert done.err == (
        "convattn check: cannot read a\\nACCEPT  b\\x1b[31m\\u202e: No such file or directory\n"
    )


@pytest.mark.slow
def test_an_ascii_terminal_ends_nothing(tmp_path):
    directory = write(tmp_path, p__a=claim("S.a", evidence("'δ = 1'", assumes="ε > 0")))
    words = [sys.executable, "-m", "convattn.cli", "verify", "--proofs", str(directory)]
    environment = {**os.environ, "PYTHONIOENCODING": "ascii"}
    done = subprocess.run(words, capture_output=True, env=environment, check=False)
    assert done.returncode == 0
    assert b"\\u03b4 = 1" in done.stdout


def test_the_help_leaves_out_commands_whose_packages_are_missing(convattn_command, monkeypatch):
    for name in [name for name in sys.modules if name.startswith("convattn_ledger")]:
        monkeypatch.delitem(sys.modules, name)
    monkeypatch.setitem(sys.modules, "pebble", None)
    done = convattn_command("--help")
    text = " ".join(done.out.split())
    assert done.code == 0
    assert "'verify'" in text.partition(": pebble is not installed")[0].rpartition("Without")[2]
    assert text.count("pebble is not installed") == 1
    assert "pip install 'convattn[verify]'" in text
    assert "diagnose" in text
