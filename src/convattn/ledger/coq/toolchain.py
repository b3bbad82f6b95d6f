"""Coq and the libraries that the proofs stand on: where they are, and how to install them."""

import os
import re
import shutil
import subprocess
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path

from convattn.ledger.coq.lexing import sentences

PACKAGES = (
    "coq",
    "libcoq-mathcomp-algebra",
    "libcoq-mathcomp-algebra-tactics",
    "libcoq-mathcomp-zify",
    "libcoq-interval",
)
INSTALL = f"apt-get install --no-install-recommends {' '.join(PACKAGES)}"
# A file of each library, under Coq's user-contrib/.
_LIBRARIES = {
    "libcoq-mathcomp-algebra": "mathcomp/algebra/ssralg.vo",
    "libcoq-mathcomp-algebra-tactics": "mathcomp/algebra_tactics/ring.vo",
    "libcoq-mathcomp-zify": "mathcomp/zify/zify.vo",
    "libcoq-interval": "Interval/Tactic.vo",
}
_REQUIRE = re.compile(r"(?:From\s+(\S+)\s+)?Require\s+(?:Import\s+|Export\s+)?(.*)\.", re.DOTALL)


class NoCoq(Exception):
    """Coq, or a library that the proofs need, is not here; the message says how to install it."""


@dataclass(frozen=True)
class Coq:
    """An installed Coq.

    Attributes:
        coqc: The compiler.
        coqdep: The program that finds out what depends on what.
        version: Its version.
        packages: The versions of the libraries' packages, as far as the system knows them.
    """

    coqc: str
    coqdep: str
    version: str
    packages: dict[str, str]


def find_coq(sources: Iterable[str]) -> Coq:
    """Find Coq and whatever libraries these sources require.

    Args:
        sources: Coq sources.

    Raises:
        NoCoq: If something is missing.
    """
    coqc, coqdep = shutil.which("coqc"), shutil.which("coqdep")
    if coqc is None or coqdep is None:
        missing = "coqc" if coqc is None else "coqdep"
        raise NoCoq(f"Coq is not installed ({missing} is not on PATH); install it: {INSTALL}")
    said, where = _ask(coqc, "--version"), _ask(coqc, "-where")
    version = re.search(r"version\s+(\S+)", said)
    if version is None or not where:
        raise NoCoq(f"{coqc} does not say its version and place; install Coq anew: {INSTALL}")
    places = [Path(where, "user-contrib")]
    places += [Path(place) for place in os.environ.get("COQPATH", "").split(":") if place]
    absent = [
        package
        for package in _needed(sources)
        if not any((place / _LIBRARIES[package]).is_file() for place in places)
    ]
    if absent:
        raise NoCoq(
            f"Coq {version[1]} is here, but the proofs require {', '.join(absent)}; install what "
            f"is missing: {INSTALL}"
        )
    return Coq(coqc, coqdep, version[1], _package_versions())


def _needed(sources: Iterable[str]) -> list[str]:
    """The packages that hold what the sources require, in the order of the table."""
    needed = {package for source in sources for package in _required(source)}
    return [package for package in _LIBRARIES if package in needed]


def _required(source: str) -> Iterator[str]:
    for sentence in sentences(source):
        required = _REQUIRE.match(sentence.command)
        if required is None:
            continue
        for module in required[2].split():
            parts = f"{required[1] or ''}.{module}".strip(".").split(".")
            if parts[0] in ("Interval", "Coquelicot", "Flocq"):
                yield "libcoq-interval"
            elif parts[0] == "mathcomp":
                yield "libcoq-mathcomp-algebra"
                if parts[-1] == "ring":
                    yield "libcoq-mathcomp-algebra-tactics"
                elif parts[-1].startswith("zify") or parts[-1] == "ssrZ":
                    yield "libcoq-mathcomp-zify"


def _ask(*command: str) -> str:
    try:
        return subprocess.run(command, capture_output=True, text=True, check=False).stdout.strip()
    except OSError:
        return ""


def _package_versions() -> dict[str, str]:
    if shutil.which("dpkg-query") is None:
        return {}
    said = _ask("dpkg-query", "-W", "-f", "${Package} ${Version}\n", *PACKAGES)
    return dict(line.split(" ") for line in said.splitlines() if line.count(" ") == 1)
