"""The committed certificates: one file for each, and all of them accepted by a bare interpreter.

That they are what the makers write, byte for byte, is tested in test_main.py; which sizes a claim
needs is demanded by its own evidence.
"""

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from convattn_ledger.locations import certificates_directory

COMMITTED = sorted(certificates_directory().glob("*.json"))


def test_names_start_with_the_claim_and_no_two_say_the_same():
    certificates = [json.loads(path.read_text("ascii")) for path in COMMITTED]
    for path, certificate in zip(COMMITTED, certificates, strict=True):
        assert path.stem.startswith(f"{certificate['claim']}-")
    assert len({(one["claim"], one["digests"]["body"]) for one in certificates}) == len(
        certificates
    )


def test_all_of_it_is_less_than_a_megabyte():
    assert sum(path.stat().st_size for path in COMMITTED) < 10**6


@pytest.mark.slow
def test_a_bare_interpreter_accepts_them_all(tmp_path):
    """Without site-packages, and with nothing on the path but a copy of the checker."""
    import convattn_check

    source = Path(convattn_check.__file__).parent
    (tmp_path / "convattn_check").symlink_to(source, target_is_directory=True)
    words = [sys.executable, "-S", "-m", "convattn_check", *map(str, COMMITTED)]
    environment = {**os.environ, "PYTHONPATH": str(tmp_path), "PYTHONDONTWRITEBYTECODE": "1"}
    done = subprocess.run(words, capture_output=True, text=True, env=environment, cwd=tmp_path)
    assert done.returncode == 0, done.stdout + done.stderr
    assert f"{len(COMMITTED)} accepted, 0 rejected" in done.stdout.splitlines()[-1]
    spoiled = tmp_path / COMMITTED[0].name
    spoiled.write_bytes(COMMITTED[0].read_bytes().replace(b'"kind":"', b'"kind":"un'))
    words = [*words, str(spoiled)]
    done = subprocess.run(words, capture_output=True, text=True, env=environment, cwd=tmp_path)
    assert done.returncode == 1
