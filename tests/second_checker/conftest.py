"""The second checker, built from its sources."""

import fcntl
import shutil
import subprocess

import pytest
from second_checker.second_checker_runs import ROOT

PROGRAM = "build/second_checker/second-checker"
TOOLS = ("make", "coqc", "coq_makefile", "ocamlfind", "ocamlopt")


@pytest.fixture(scope="session")
def program():
    """The second checker, built by one worker for all."""
    if not (ROOT / "second_checker").is_dir():
        pytest.skip("the sources of the second checker come with a checkout only")
    if missing := [tool for tool in TOOLS if shutil.which(tool) is None]:
        pytest.skip(f"{', '.join(missing)} not installed: docs/certificates.md names the packages")
    if subprocess.run(
        ["ocamlfind", "query", "zarith"], capture_output=True, check=False
    ).returncode:
        pytest.skip("zarith is not installed: docs/certificates.md names the packages")
    (ROOT / "build").mkdir(exist_ok=True)
    with (ROOT / "build/second_checker.lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        done = subprocess.run(
            ["make", "--no-print-directory", PROGRAM],
            cwd=ROOT,
            capture_output=True,
            text=True,
            check=False,
            timeout=1800,
        )
    assert done.returncode == 0, done.stdout[-2000:] + done.stderr[-2000:]
    return ROOT / PROGRAM
