"""What a run has used of Coq: libraries, plugins and programs, by package, version and digest.

A theorem is worth what its libraries are. Whatever was loaded must be a file of an installed
package; where the lock knows the package in this version, each file must be the one of the lock.
"""

import shutil
from collections.abc import Collection, Iterable, Mapping
from pathlib import Path
from typing import Any

from convattn_ledger.coq.build import ask
from convattn_ledger.coq.sources import LOCK, Failure, digest

PROGRAMS = ("coqc", "coqdep", "coq_makefile")
Libraries = dict[str, dict[str, Any]]


def used(loaded: Iterable[Path]) -> tuple[Libraries, list[Failure]]:
    """What was used, by package, and what belongs to none.

    Args:
        loaded: The compiled files of libraries that Coq has loaded.

    Returns:
        For each package its version, with the architecture, and the SHA-256 of each file: what was
        loaded, the programs, and all plugins of these packages.
    """
    programs = [Path(program).resolve() for name in PROGRAMS if (program := shutil.which(name))]
    core = Path(ask("coqc", "-config").partition("COQCORELIB=")[2].partition("\n")[0]).resolve()
    files = {*loaded, *programs, *core.glob("plugins/*/*.cmxs")}
    owners = _owners(files)
    packages = sorted(set(owners.values()))
    installed = ask("dpkg-query", "-L", *packages).splitlines() if packages else []
    plugins = {Path(line).resolve() for line in installed if line.endswith(".cmxs")}
    owners |= _owners(plugins - files)
    versions = dict(
        line.split("\t")
        for line in ask(
            "dpkg-query", "-W", "-f", "${Package}\t${Version} ${Architecture}\n", *packages
        ).splitlines()
    )
    libraries: Libraries = {name: {"version": versions[name], "files": {}} for name in packages}
    for file in sorted(files | plugins):
        if file in owners:
            libraries[owners[file]]["files"][str(file)] = digest(file.read_bytes())
    remedy = "remove it, or take Coq and its libraries from the packages in docs/proofs.md"
    return libraries, [
        Failure(LOCK, 0, f"{file} was loaded, which belongs to no installed package", remedy)
        for file in sorted(files - owners.keys())
    ]


def differences(
    loaded: Mapping[str, Any], locked: Mapping[str, Any]
) -> tuple[list[Failure], list[str]]:
    """How the libraries differ from those of the lock.

    Returns:
        What is wrong, and in words which packages have another version than the lock's.

    Example:
        >>> here = {"coq": {"version": "8.17 amd64", "files": {}}}
        >>> differences(here, {"coq": {"version": "8.16 amd64", "files": {}}})[1]
        ['coq is 8.17 amd64, the lock was made with 8.16 amd64']
    """
    failures, notes = [], []
    for package, entry in loaded.items():
        if package not in locked:
            remedy = "if the proofs now need it, run convattn prove --lock and read the diff"
            failures.append(Failure(LOCK, 0, f"{package} was loaded, not in the lock", remedy))
            continue
        known = locked[package]
        if known["version"] != entry["version"]:
            notes.append(
                f"{package} is {entry['version']}, the lock was made with {known['version']}"
            )
            continue
        other = [
            file for file, value in entry["files"].items() if known["files"].get(file) != value
        ]
        if other:
            said = f"{_some(other)} of {package} {entry['version']}, not as in the lock"
            remedy = "install the package again, or find out who changed it"
            failures.append(Failure(LOCK, 0, said, remedy))
    return failures, notes


def _some(files: Collection[str]) -> str:
    first = min(files)
    return first if len(files) == 1 else f"{first} and {len(files) - 1} more files"


def _owners(files: Collection[Path]) -> dict[Path, str]:
    """The package of each file that has one."""
    if not files:
        return {}
    owners = {}
    for line in ask("dpkg-query", "-S", *map(str, sorted(files))).splitlines():
        package, _, file = line.partition(": ")
        owners[Path(file)] = package.partition(":")[0]
    return {file: owners[file] for file in files if file in owners}
