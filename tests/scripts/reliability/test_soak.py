"""soak.py: a planted failure comes out as an example to paste; what holds is quiet."""

import importlib.util
import subprocess
import sys
import time
from pathlib import Path

import pytest

SCRIPT = Path(__file__).parents[3] / "scripts" / "reliability" / "soak.py"
PROPERTY = """
@given(st.integers(), st.lists(st.integers()))
def test_{name}(number, more):
    assert number {condition}
"""
HEAD = """
from hypothesis import example, given, reproduce_failure, settings, strategies as st

settings.register_profile("soak", max_examples=50, print_blob=True)
settings.load_profile("soak")
"""


@pytest.fixture
def soak(tmp_path, monkeypatch, capsys):
    """Runs the tests that it is given, once; what it printed, and how many ran and failed."""
    spec = importlib.util.spec_from_file_location("soak", SCRIPT)
    module = importlib.util.module_from_spec(spec)
    monkeypatch.setitem(sys.modules, "soak", module)
    spec.loader.exec_module(module)
    monkeypatch.chdir(tmp_path)

    def run(*tests, seconds=300.0):
        file = tmp_path / "test_planted.py"
        file.write_text(HEAD + "".join(tests))
        assert module.property_tests(tmp_path) == [file]
        made = module.Soak(time.monotonic() + seconds)
        made.run(Path("test_planted.py"))
        return capsys.readouterr().out, made.runs, len(made.seen)

    return run


@pytest.mark.slow
def test_a_failure_is_printed_as_an_example_that_fails_again(soak):
    small = PROPERTY.format(name="small", condition="< 1000")
    printed, runs, failed = soak(PROPERTY.format(name="true", condition="== number"), small)
    assert (runs, failed) == (1, 1)
    assert printed.startswith("FAILED test_planted.py::test_small\npytest ")
    example, encoded = printed[printed.index("@example(") :].split("@reproduce_failure(")
    assert "    number=1000,\n" in example
    assert soak(settings_of("explicit") + example + small.lstrip())[2] == 1
    assert soak(f"\n@reproduce_failure({encoded.strip()}{small}")[2] == 1
    assert soak(settings_of("explicit") + small.lstrip())[2] == 0  # the example is what fails


def settings_of(phase: str) -> str:
    return f"\nfrom hypothesis import Phase\n\n@settings(phases=[Phase.{phase}])\n"


@pytest.mark.slow
def test_what_fails_before_any_example_is_printed_whole(soak):
    printed, runs, failed = soak("\nassert False, 'planted'\n", PROPERTY)
    assert (runs, failed) == (1, 1)
    assert "planted" in printed


def test_nothing_runs_beyond_the_time(soak):
    assert soak(PROPERTY.format(name="false", condition="!= number"), seconds=0.0) == ("", 0, 0)
    assert soak(PROPERTY.format(name="false", condition="!= number"), seconds=0.1) == ("", 0, 0)


@pytest.mark.parametrize(
    "words", [["--minutes=0"], ["--minutes=1", "--workers=0"], ["--minutes=1"]], ids=" ".join
)
def test_wrong_use_is_refused(tmp_path, words):
    done = subprocess.run([sys.executable, SCRIPT, *words, tmp_path], capture_output=True)
    assert done.returncode == 2
    assert b"expected minutes above 0" in done.stderr
