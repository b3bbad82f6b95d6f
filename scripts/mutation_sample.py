"""Which small errors `mutation_score.py` puts into the program, and which tests judge each.

Errors are another operator, number or truth value, or a loop that does not run: cosmic-ray makes
them. Left out are docstrings, annotations, decorators, `raise` statements, f-strings, and `is` in
place of `==` or the reverse, which seldom changes anything. At most one is drawn from each place.
Which ones depends on the seed, the function and the place's number within it: an unchanged function
gives the same mutants in both versions, and a smaller sample is part of a larger one.

A mutant is judged by the test file of its package that is named after its module and by those that
name its function (for a private one: the functions that use it); where there are none, by those
elsewhere that name it, but for tests/proofs; where there are none, by those of the functions that
use it.
"""

import ast
import hashlib
import re
from collections import defaultdict
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from functools import cache
from pathlib import Path
from typing import Any

from cosmic_ray.ast import ast_nodes, get_ast  # type: ignore[import-not-found]
from cosmic_ray.mutating import mutate_code  # type: ignore[import-not-found]
from cosmic_ray.plugins import get_operator, operator_names  # type: ignore[import-not-found]

# Folders of sources, without their subfolders, and their tests, in either version.
FOLDERS = {
    "convattn_check": {
        "src/convattn_check": "tests/convattn_check",
        "src/convattn_check/formulas": "tests/convattn_check",
    },
    "constructions": {"src/convattn/constructions": "tests/constructions"},
    "bounds": {
        "src/convattn/bounds": "tests/bounds",
        "src/convattn/bounds/back_ends": "tests/fast/test_rounding.py",
        "src/convattn/fast/rounding": "tests/fast/test_rounding.py",
    },
}


@dataclass(frozen=True)
class Mutant:
    """One error: where it stands, which operator of cosmic-ray makes it, and who judges it."""

    package: str
    module: str
    function: str
    place: int
    operator: str
    occurrence: int
    judges: Sequence[str] = ()

    @property
    def key(self) -> str:
        """Its name in the results, the same in both versions where the function is."""
        return f"{self.package}:{self.function}:{self.place}:{self.operator}"

    def mutated(self, code: str) -> str | None:
        """The module with the error, or `None` where this is the same program or none at all."""
        text: str | None = mutate_code(code, get_operator(self.operator)(), self.occurrence)
        try:
            return text if text and ast.dump(ast.parse(text)) != ast.dump(ast.parse(code)) else None
        except SyntaxError:
            return None


def modules(tree: Path, package: str) -> Iterator[tuple[Path, Path]]:
    """The modules of a package, each with the folder or the file of its tests."""
    for folder, tests in FOLDERS[package].items():
        yield from ((path, tree / tests) for path in sorted((tree / folder).glob("*.py")))


def functions(path: Path) -> dict[str, ast.FunctionDef]:
    """The functions of a module by name, and its methods as `Class.method`."""
    body = ast.parse(path.read_text()).body
    pairs = [("", node) for node in body]
    for node in body:
        pairs += (
            [(f"{node.name}.", part) for part in node.body]
            if isinstance(node, ast.ClassDef)
            else []
        )
    return {prefix + node.name: node for prefix, node in pairs if isinstance(node, ast.FunctionDef)}


def left_out(tree: ast.AST) -> Iterator[ast.AST]:
    """What no error is put into: annotations, decorators, `raise` statements and f-strings."""
    for node in ast.walk(tree):
        if isinstance(node, ast.Raise | ast.JoinedStr):
            yield node
        parts = [getattr(node, name, None) for name in ("annotation", "returns")]
        yield from filter(None, [*parts, *getattr(node, "decorator_list", [])])


def useful(operator: str) -> bool:
    """Whether an operator is used: none with arguments, and from `is` only to `is not` and back."""
    swap = re.search("Is_IsNot|IsNot_Is", operator)
    return not get_operator(operator).arguments() and (bool(swap) or "Is" not in operator)


def mutants_of(package: str, module: str, path: Path) -> Iterator[Mutant]:
    """Every error in the functions of a module."""

    def span(node: Any) -> tuple[tuple[int, int], tuple[int, int]]:
        return (node.lineno, node.col_offset), (node.end_lineno, node.end_col_offset)

    code = path.read_text()
    inside = [(name, *span(node)) for name, node in functions(path).items()]
    outside = [span(node) for node in left_out(ast.parse(code))]
    nodes, found = list(ast_nodes(get_ast(code))), defaultdict(list)
    for operator in filter(useful, operator_names()):
        acts = get_operator(operator)()
        places = (place for node in nodes for place in acts.mutation_positions(node))
        for occurrence, (start, end) in enumerate(places):
            names = [name for name, first, last in inside if first <= start and end <= last]
            if names and not any(first <= start and end <= last for first, last in outside):
                found[names[0]].append(((start, end), operator, occurrence))
    for name, errors in found.items():
        numbers = {place: number for number, place in enumerate(sorted({e[0] for e in errors}))}
        for place, operator, occurrence in errors:
            yield Mutant(package, module, name, numbers[place], operator, occurrence)


def judges(tree: Path, mutant: Mutant, tests: Path) -> Sequence[str]:
    """The test files that judge a mutant."""
    used = uses(tree, mutant.package)

    def users(names: set[str]) -> set[str]:
        return {user for user in used if used[user] & names} - names

    near = sorted(tests.rglob("test_*.py")) if tests.is_dir() else [tests]
    others = sorted({*(tree / "tests").rglob("test_*.py")} - {*(tree / "tests/proofs").rglob("*")})
    stem, names = Path(mutant.module).stem, {mutant.function.split(".")[0]}
    mirrors = [file for file in near if file.stem in (f"test_{stem}", f"test_check_{stem}")]
    while True:
        while more := users({name for name in names if name[0] == "_"}) - names:
            names |= more
        public = {name for name in names if name[0] != "_"}
        for files in (near, others):
            chosen = [file for file in files if words(file) & public]
            if chosen := [*mirrors, *(file for file in chosen if file not in mirrors)]:
                return [str(file.relative_to(tree)) for file in chosen]
        if not (more := users(names)):
            return [str(file.relative_to(tree)) for file in near]
        names |= more


@cache
def words(path: Path) -> frozenset[str]:
    """The words of a file."""
    return frozenset(re.findall(r"\w+", path.read_text()))


@cache
def uses(tree: Path, package: str) -> dict[str, set[str]]:
    """The names that each function or class of a package uses."""
    found: dict[str, set[str]] = defaultdict(set)
    for path, _ in modules(tree, package):
        for name, node in functions(path).items():
            found[name.split(".")[0]] |= {n.id for n in ast.walk(node) if isinstance(n, ast.Name)}
    return found


def sample(tree: Path, package: str, other: Path, seed: int, size: int) -> Iterator[Mutant]:
    """The mutants of a package, in functions that the other version has too, drawn by digests."""

    def digest(*parts: object) -> str:
        return hashlib.sha256("|".join(map(str, (seed, *parts))).encode()).hexdigest()

    shared = {name for path, _ in modules(other, package) for name in functions(path)}
    places: dict[tuple[str, str, int], list[tuple[Mutant, Path]]] = defaultdict(list)
    for path, tests in modules(tree, package):
        for mutant in mutants_of(package, str(path.relative_to(tree)), path):
            if mutant.function in shared:
                places[mutant.function, mutant.module, mutant.place].append((mutant, tests))
    for at in sorted(places, key=lambda at: digest(package, at[0], at[2])):
        for mutant, tests in sorted(places[at], key=lambda pair: digest(pair[0].key)):
            if size > 0 and mutant.mutated((tree / mutant.module).read_text()):
                yield replace(mutant, judges=judges(tree, mutant, tests))
                size -= 1
                break
