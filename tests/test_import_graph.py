"""Packages and their rooms import each other in one direction only: docs/architecture.md."""

import ast
import sys
from collections.abc import Iterator
from graphlib import TopologicalSorter
from pathlib import Path

import pytest

SOURCE = Path(__file__).parents[1] / "src"
# Every package with those that it may import.
PACKAGES = {
    "convattn": (),
    "convattn_check": (),
    "convattn_ledger": ("convattn", "convattn_check"),
    "convattn_lab": ("convattn", "convattn_check", "convattn_ledger"),
}
# Every room of a package with the rooms of it that it may import.
LIBRARY = ("operators", "encodings", "fast", "constructions", "bounds")  # each on those before it
ROOMS = {
    "convattn": {
        **{room: LIBRARY[:place] for place, room in enumerate(LIBRARY)},
        "sac": ("operators", "encodings", "constructions"),
        "data": (),
        "networks": LIBRARY,
        "initialization": ("operators", "encodings", "constructions", "bounds", "networks"),
        "diagnosis": (*LIBRARY, "networks", "initialization"),
        "nnx": (*LIBRARY, "networks"),
        "torch": (*LIBRARY, "networks"),
        "compile": ("operators", "encodings", "bounds", "networks", "nnx", "torch"),
        "known_answers": ("compile", "data", "networks"),
        "cli": (
            *LIBRARY,
            *("sac", "data", "networks", "diagnosis", "initialization", "nnx", "torch", "compile"),
            "known_answers",
        ),
    },
    "convattn_ledger": {
        "structures": (),
        "audit": (),
        "coq": (),
        "bounds": (),
        "certificates": ("structures", "bounds"),
        "evidence": ("bounds", "certificates", "coq"),
        "page": ("bounds", "coq"),
        "commands": ("audit", "bounds", "certificates", "coq", "page"),
    },
    "convattn_lab": {
        "data": (),
        "models": (),
        "training": ("data",),
        "runs": ("data", "models", "training"),
        "analysis": ("models", "training", "runs"),
        "two_phase": ("models", "training", "runs", "analysis"),
        "records": ("data", "models", "training", "runs", "analysis", "two_phase"),
        "explorer": ("models", "runs", "analysis", "two_phase"),
        "accelerator": ("training", "runs"),
    },
}
ROOMS["convattn_lab"]["commands"] = tuple(ROOMS["convattn_lab"])
# What stands in no room of a package, and may be imported by all of that package.
ALONE = {
    "convattn": {"__init__", "extras", "files", "settings", "temporary"},
    "convattn_ledger": {
        *("__init__", "claim", "discovery", "document", "environment", "journal", "json_report"),
        *("locations", "quotations", "rational_matrices", "report", "run", "runner", "selection"),
        "worker",
    },
    "convattn_lab": {"__init__", "settings"},
}
CHECKER = {"certificates", "evidence", "commands"}  # rooms of the ledger that may read the checker


def imported(path: Path) -> Iterator[str]:
    """The modules that a file imports, also inside functions and for type checkers."""
    for node in ast.walk(ast.parse(path.read_text("utf-8"), str(path))):
        if isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            assert not node.level, f"{path}:{node.lineno} is relative; write the whole name"
            yield from (f"{node.module}.{alias.name}" for alias in node.names)


def wrong_imports(source: Path) -> list[str]:
    """Every import against the direction, as `importer -> imported`."""
    problems = []
    for path in sorted(path for package in ROOMS for path in (source / package).rglob("*.py")):
        package, *parts = path.relative_to(source).with_suffix("").parts
        room = parts[0] if len(parts) > 1 else None
        if room is None and parts[0] not in ALONE[package]:
            problems.append(f"{package}.{parts[0]} stands in no room")
        if room is not None and room not in ROOMS[package]:
            problems.append(f"{package}.{room} is no room")
        for module in imported(path):
            top, _, rest = module.partition(".")
            target = rest.partition(".")[0]
            if top == package:
                allowed = ROOMS[package].get(room or "", (target,))
                right = target not in ROOMS[package] or target == room or target in allowed
            elif top == "convattn_check":
                right = room in CHECKER and package == "convattn_ledger"
            else:
                right = top not in PACKAGES or top in PACKAGES[package]
            if not right:
                problems.append(f"{'.'.join((package, *parts))} -> {module}")
    return problems


def wrong_imports_of_the_checker(source: Path) -> list[str]:
    """What the checker imports beyond itself and the standard library."""
    return [
        f"{path.relative_to(source)} -> {module}"
        for path in sorted((source / "convattn_check").rglob("*.py"))
        for module in imported(path)
        if module.partition(".")[0] not in {"convattn_check", *sys.stdlib_module_names}
    ]


@pytest.mark.slow
def test_the_rooms_import_in_one_direction() -> None:
    assert wrong_imports(SOURCE) == []


def test_the_directions_have_no_circle() -> None:
    for rooms in ROOMS.values():
        TopologicalSorter(rooms).prepare()
    TopologicalSorter(PACKAGES).prepare()


def test_the_checker_imports_nothing_of_the_library() -> None:
    assert wrong_imports_of_the_checker(SOURCE) == []


@pytest.mark.parametrize(
    ("place", "line", "expected"),
    [
        ("convattn/fast/a.py", "from convattn.bounds import b", "convattn.bounds.b"),
        ("convattn/cli/a.py", "def f():\n    import convattn_lab.b", "convattn_lab.b"),
        ("convattn/bounds/a.py", "import convattn_check.rank", "convattn_check.rank"),
        ("convattn/bounds/a.py", "from convattn_ledger import Claim", "convattn_ledger.Claim"),
        ("convattn_ledger/coq/a.py", "import convattn_ledger.page.b", "convattn_ledger.page.b"),
        ("convattn_ledger/coq/a.py", "import convattn_check.rank", "convattn_check.rank"),
        ("convattn_lab/data/a.py", "import convattn_lab.runs.b", "convattn_lab.runs.b"),
        ("convattn/loose.py", "", "stands in no room"),
        ("convattn/loose/a.py", "", "is no room"),
    ],
)
def test_an_import_against_the_direction_is_found(tmp_path, place, line, expected) -> None:
    file = tmp_path / place
    file.parent.mkdir(parents=True)
    file.write_text(line)
    (problem,) = wrong_imports(tmp_path)
    assert expected in problem


def test_an_import_of_the_checker_is_found(tmp_path) -> None:
    (tmp_path / "convattn_check").mkdir()
    (tmp_path / "convattn_check" / "a.py").write_text("import numpy as np\n")
    assert wrong_imports_of_the_checker(tmp_path) == ["convattn_check/a.py -> numpy"]
