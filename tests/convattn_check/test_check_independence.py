"""What the checker is made of: the standard library, integers and fractions, explicit raises."""

import ast
import os
import subprocess
import sys
from pathlib import Path

import certificate_builder as build
import pytest
from certificate_cases import CASES

import convattn_check

SOURCE = Path(convattn_check.__file__).parent
FILES = sorted(SOURCE.glob("*.py"))
ALLOWED = {
    "argparse", "collections", "convattn_check", "dataclasses", "fractions", "hashlib", "itertools",
    "json", "math", "pathlib", "re", "sys", "time", "typing",
}  # fmt: skip


@pytest.mark.parametrize("path", FILES, ids=lambda path: path.name)
def test_source(path):
    for node in ast.walk(ast.parse(path.read_text())):
        assert not isinstance(node, ast.Assert)
        if isinstance(node, ast.Import):
            assert {alias.name.split(".")[0] for alias in node.names} <= ALLOWED
        if isinstance(node, ast.ImportFrom):
            assert node.level == 0
            assert node.module.split(".")[0] in ALLOWED
        if isinstance(node, ast.BinOp):
            assert not isinstance(node.op, ast.Div) or path.name in DIVIDES
        if isinstance(node, ast.Constant) and isinstance(node.value, float):
            assert (path.name, node.value) == ("command.py", 0.0)  # seconds


DIVIDES = {"shared_map.py"}  # fractions by integers and fractions


@pytest.mark.parametrize("options", [["-S"], ["-S", "-O", "-B"]])
def test_a_bare_interpreter_suffices(tmp_path, options):
    """No site-packages, no assertions; planted faults are found all the same."""
    good, bad = tmp_path / "good.json", tmp_path / "bad.json"
    good.write_text(build.written(CASES["finite"]))
    changed = build.sealed(CASES["finite"])
    changed["body"]["values"]["entries"][0][2] = "2"
    bad.write_text(build.written(build.sealed(changed)))
    command = [sys.executable, *options, "-m", "convattn_check", str(good), str(bad)]
    environment = {"PYTHONPATH": str(SOURCE.parent), "PATH": os.environ["PATH"]}
    done = subprocess.run(
        command, env=environment, cwd=tmp_path, capture_output=True, text=True, timeout=30
    )
    assert done.returncode == 1, done.stderr
    assert done.stdout.startswith("ACCEPT  S.finite")
    assert "REJECT  identity" in done.stdout
    assert done.stderr == ""
