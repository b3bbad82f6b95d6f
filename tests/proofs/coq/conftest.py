"""Where Coq is installed: the proofs compiled, and a Coq that evaluates terms over them."""

import fcntl
import shutil
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from proofs.coq.computed_values import Evaluator

from convattn_ledger.coq.build import Coq, NoCoq, build, find_coq
from convattn_ledger.coq.sources import Project, read_project
from convattn_ledger.environment import cores
from convattn_ledger.locations import coq_directory, prove_report

MODULES = [
    "foundation.image",
    "foundation.dilated",
    "foundation.pixels",
    "foundation.even",
    "foundation.quadratic",
    "foundation.quadratic_heads",
    "foundation.shifts",
    "foundation.filters",
    "sharpened.dp2",
    "sharpened.boundary_clamped",
    "sharpened.heads",
    "checker.absolute",
    "foundation.leaky",
    "bridge.values",
    "bridge.sums",
    "bridge.scalar",
    "bridge.scores",
    "bridge.dilated",
    "bridge.box",
    "bridge.rows",
    "bridge.structures",
    "bridge.even",
    "bridge.zero_token",
]


@pytest.hookimpl(tryfirst=True)
def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """What asks Coq for a value is slow: the proofs must be compiled first."""
    for item in items:
        if "coq_value" in getattr(item, "fixturenames", ()):
            item.add_marker("slow")


@pytest.fixture(scope="session")
def coq_value(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Callable[[str], Any]]:
    """The value of a term."""
    if not coq_directory().is_dir():
        pytest.skip("the sources of the proofs are not here; they come with a checkout only")
    project = read_project(coq_directory())
    files = [f"{module.replace('.', '/')}.v" for module in MODULES]
    try:
        coq = find_coq(project)
    except NoCoq as missing:
        pytest.skip(str(missing))
    compiled = compiled_proofs(coq, project, files, shared_folder(tmp_path_factory))
    evaluator = Evaluator(compiled, MODULES)
    yield evaluator.evaluate
    evaluator.close()


def shared_folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """One folder for this run of the tests, whichever of its workers asks."""
    own = tmp_path_factory.getbasetemp()
    return (own.parent if own.name.startswith("popen-") else own) / "compiled_proofs"


def compiled_proofs(coq: Coq, project: Project, files: list[str], folder: Path) -> Path:
    """These files and all that they require, compiled in the folder by one worker for all.

    What `convattn prove` has left is copied there first, and what is of other sources, or is not
    there, is compiled.
    """
    folder.mkdir(exist_ok=True)
    with (folder / "lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        tree = folder / "coq"
        report = prove_report()
        if not tree.exists() and report is not None and report.parent.is_dir():
            copy_compiled(report.parent, folder)
        outcome = build(coq, project, folder, cores(), files)
    assert not outcome.failures, [str(failure) for failure in outcome.failures]
    return tree


def copy_compiled(built: Path, folder: Path) -> None:
    """Copy the compiled files, if there is a record of what they are compiled from, with it."""
    if (built / "compiled.json").is_file():
        shutil.copy(built / "compiled.json", folder)
        shutil.copytree(built / "coq", folder / "coq")  # with their times, for make
