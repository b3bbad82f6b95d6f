"""Which file requires which, as ``coqdep`` finds it in the sources."""

import subprocess
from collections.abc import Mapping
from pathlib import Path

from convattn.ledger.coq.project import Project
from convattn.ledger.coq.toolchain import Coq


def dependencies(coq: Coq, project: Project, tree: Path) -> tuple[dict[str, set[str]], str]:
    """What each file requires of the others, and what coqdep says against the sources.

    Args:
        coq: Where coqdep is.
        project: The sources.
        tree: The folder with their copies.
    """
    direct: dict[str, set[str]] = {file: set() for file in project.files}
    words = [coq.coqdep, "-Q", ".", project.prefix, *project.files]
    done = subprocess.run(
        words, cwd=tree, capture_output=True, encoding="utf-8", errors="replace", check=False
    )
    for line in done.stdout.splitlines():
        targets, _, needed = line.partition(":")
        file = next((t[:-1] for t in targets.split() if t.endswith(".vo")), None)
        if file in direct:
            others = {word.removeprefix("./")[:-1] for word in needed.split() if word[-3:] == ".vo"}
            direct[file] = others & direct.keys()
    if done.returncode:
        return direct, done.stderr or f"coqdep ended with exit code {done.returncode}"
    return direct, ""


def closure(direct: Mapping[str, set[str]]) -> tuple[dict[str, frozenset[str]], list[str]]:
    """All that each file requires, and the files that require themselves.

    Args:
        direct: What each requires itself.

    Example:
        >>> closure({"a": {"b"}, "b": {"b"}})
        ({'a': frozenset({'b'}), 'b': frozenset({'b'})}, ['b'])
    """
    requires = {file: set(others) for file, others in direct.items()}
    while True:
        grown = {f: others.union(*(requires[o] for o in others)) for f, others in requires.items()}
        if grown == requires:
            break
        requires = grown
    circular = sorted(file for file, others in requires.items() if file in others)
    return {file: frozenset(others) for file, others in requires.items()}, circular


def ordered(requires: Mapping[str, frozenset[str]]) -> list[str]:
    """Every file after those that it requires.

    Args:
        requires: What `closure` returned.
    """
    return sorted(requires, key=lambda file: (len(requires[file]), file))
