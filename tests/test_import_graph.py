"""The rooms of the package import each other in one direction only: docs/architecture.md."""

import ast
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

SOURCE = Path(__file__).parents[1] / "src"
# Every room with the rooms that it may import; `extras`, `files`, `temporary` and the package stand
# apart.
BELOW = {
    "operators": (),
    "encodings": ("operators",),
    "fast": ("operators", "encodings"),
    "structures": ("operators", "encodings"),
    "constructions": ("operators", "encodings", "fast"),
    "sac": ("operators", "encodings", "constructions"),
    "bounds": ("operators", "encodings", "fast", "constructions"),
    "networks": ("operators", "encodings", "fast", "constructions", "bounds"),
    "initialization": ("operators", "encodings", "constructions", "bounds", "networks"),
    "nnx": ("operators", "encodings", "fast", "constructions", "bounds", "networks"),
    "torch": ("operators", "encodings", "fast", "constructions", "bounds", "networks"),
    "ledger": ("operators", "encodings", "fast", "constructions", "bounds", "structures", "sac"),
}
BELOW["lab"] = tuple(BELOW)
BELOW["page"] = tuple(BELOW)
BELOW["cli"] = tuple(BELOW)
CHECKER = {"ledger.certificates", "ledger.evidence", "cli"}  # who may read the checker


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
    found = []
    for path in sorted((source / "convattn").rglob("*.py")):
        parts = path.relative_to(source).with_suffix("").parts
        if len(parts) == 2:
            if parts[1] not in ("__init__", "extras", "files", "temporary"):
                found.append(f"{parts[1]} stands in no room")
            continue
        name, room = ".".join(parts), parts[1]
        for module in imported(path):
            top, _, rest = module.partition(".")
            target = rest.partition(".")[0]
            if top == "convattn_check":
                right = any(".".join(parts[1:]).startswith(allowed) for allowed in CHECKER)
            elif top == "convattn" and target in BELOW:
                right = target == room or target in BELOW[room]
            else:
                continue
            if not right:
                found.append(f"{name} -> {module}")
    return found


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


def test_the_checker_imports_nothing_of_the_library() -> None:
    assert wrong_imports_of_the_checker(SOURCE) == []


@pytest.mark.parametrize(
    ("place", "line", "expected"),
    [
        ("convattn/fast/a.py", "from convattn.bounds import b", "convattn.bounds.b"),
        ("convattn/lab/a.py", "def f():\n    import convattn.cli.b", "convattn.cli.b"),
        ("convattn/bounds/a.py", "import convattn_check.rank", "convattn_check.rank"),
        ("convattn/loose.py", "", "stands in no room"),
    ],
)
def test_an_import_against_the_direction_is_found(tmp_path, place, line, expected) -> None:
    file = tmp_path / place
    file.parent.mkdir(parents=True)
    file.write_text(line)
    (found,) = wrong_imports(tmp_path)
    assert expected in found


def test_an_import_of_the_checker_is_found(tmp_path) -> None:
    (tmp_path / "convattn_check").mkdir()
    (tmp_path / "convattn_check" / "a.py").write_text("import numpy as np\n")
    assert wrong_imports_of_the_checker(tmp_path) == ["convattn_check/a.py -> numpy"]
