"""Which small errors in the program no test notices: mutants, judged by certificates and tests.

    make mutants-of FILE=src/convattn_check/rank.py  # every mutant
    python scripts/reliability/mutation.py src/convattn/networks --sample 400 --seed 1

`mutants.py` says what a mutant is. Each is written into a copy of the sources. One of the checker
is tried first on the certificates of tests/incorrect, tests/correct and certificates/, which takes
milliseconds: a certificate with another verdict notices it. Then tests run: the file that is named
after the module, and those of its package that import it, or all of its folder if none does; of the
checker all. The slow ones run where the others notice nothing.

Mutants that no test could notice stand in docs/reliability/equivalent_mutants.toml, each with the
reason. All others that nothing notices are printed. Exit status: 0 if everything was noticed, 1 if
not, 2 for wrong use.
"""

import argparse
import hashlib
import json
import multiprocessing
import os
import re
import shutil
import signal
import subprocess
import sys
import tempfile
import time
import tomllib
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from functools import cached_property, partial
from multiprocessing.connection import Connection
from pathlib import Path
from typing import Any, NamedTuple

from mutants import Mutant, mutants_of, parameters

ROOT = Path(__file__).resolve().parents[2]
EQUIVALENT = ROOT / "docs" / "reliability" / "equivalent_mutants.toml"
CHECKER = "src/convattn_check"
FOLDERS = {"convattn": "", "convattn_ledger": "ledger", "convattn_lab": "lab"}  # of their tests
SLOW = 5.0  # seconds of the processor after which a certificate counts as refused by the mutant
MARGIN = 60.0  # seconds beyond four times the usual time of the tests
OPTIONS = ("-x", "-q", "--hypothesis-profile=ci", "-pno:cacheprovider")
STAGES = ("not slow and not browser", "slow and not browser")  # the second where the first passes
FAILED = re.compile(r"^(?:FAILED|ERROR) (\S+)", re.MULTILINE)
NO_TESTS = 5  # pytest's exit status
FORK = multiprocessing.get_context("fork")
Key = tuple[str, str, str, str, int]


class Certificate(NamedTuple):
    """A certificate of the corpora, and what its manifest says of it."""

    name: str
    content: bytes
    expected: dict[str, str]


def find_mutants(tree: Path, files: Iterable[Path]) -> list[Mutant]:
    """All mutants of some files, in their order."""
    known = parameters(sorted((tree / CHECKER).rglob("*.py")))
    mutants = []
    for file in files:
        messages = known if file.is_relative_to(tree / CHECKER) else {}
        mutants += mutants_of(str(file.relative_to(tree)), file.read_bytes(), messages)
    return mutants


def sample(mutants: Iterable[Mutant], size: int, seed: int) -> list[Mutant]:
    """Those whose digests with the seed are the least: a change elsewhere leaves the others in."""

    def digest(mutant: Mutant) -> bytes:
        return hashlib.sha256(repr((seed, *mutant.key)).encode()).digest()

    return sorted(mutants, key=digest)[:size]


def equivalents(file: Path) -> dict[Key, str]:
    """The reasons for the mutants that change nothing that can be observed."""
    return {
        (entry["module"], entry["function"], entry["before"], after, entry.get("number", 0)): (
            entry["reason"]
        )
        for entry in tomllib.loads(file.read_text("utf-8")).get("equivalent", [])
        for after in entry["after"]
    }


def stale(listed: Iterable[Key], mutants: Iterable[Mutant]) -> list[Key]:
    """The listed ones in the modules of these mutants that are none of them."""
    known = {mutant.key for mutant in mutants}
    modules = {mutant.module for mutant in mutants}
    return [key for key in listed if key[0] in modules and key not in known]


def test_files(tree: Path, module: str) -> list[str]:
    """The tests of a module: the file named after it, then those of its package that import it."""
    package, *names = Path(module).with_suffix("").parts[1:]
    tests = tree / "tests" / FOLDERS.get(package, package)
    folder = tests / names[0] if package == "convattn" and len(names) > 1 else tests
    files = sorted(folder.glob("test_*.py" if folder == tree / "tests" else "**/test_*.py"))
    parent, stem = ".".join((package, *names[:-1])), names[-1]
    imports = re.compile(rf"^\s*from {parent}(\.{stem} | import .*\b{stem}\b)", re.MULTILINE)
    named = [file for file in files if file.stem in (f"test_{stem}", f"test_check_{stem}")]
    if package == "convattn_check":  # little is left for them after the certificates
        others = files
    else:
        others = [file for file in files if imports.search(file.read_text("utf-8"))]
    if not named and not others:
        others = [file for file in files if file.parent == tests.joinpath(*names[:-1])]
    return [str(file.relative_to(tree)) for file in dict.fromkeys([*named, *others])]


def corpora(tree: Path) -> Iterator[Certificate]:
    """The committed certificates."""
    for folder in ("tests/incorrect", "tests/correct"):
        listed = json.loads((tree / folder / "manifest.json").read_text("utf-8"))["certificates"]
        for entry in listed:
            if (path := tree / folder / entry["file"]).exists():
                yield Certificate(f"{folder}/{path.name}", path.read_bytes(), entry)
    for path in sorted((tree / "certificates").glob("*.json")):
        yield Certificate(f"certificates/{path.name}", path.read_bytes(), {"reason": ""})


def has_its_verdict(certificate: Certificate, check: Any) -> bool:
    """Whether a checker says of a certificate what its manifest says."""
    verdict, expected = check(certificate.content), certificate.expected
    same = verdict.accepted == ("code" not in expected) and verdict.code == expected.get("code", "")
    claim = expected.get("claim", verdict.claim) if verdict.accepted else verdict.claim
    return bool(same and verdict.claim == claim and expected["reason"] in verdict.reason)


def first_refuted(source: Path, certificates: Sequence[Certificate], answer: Connection) -> None:
    """In a process of its own: send the first certificate with another verdict, "" for none."""
    sys.path.insert(0, str(source))
    sys.dont_write_bytecode = True
    for name in [module for module in sys.modules if module.split(".")[0] == "convattn_check"]:
        del sys.modules[name]  # the parent may have imported it from elsewhere
    signal.setitimer(signal.ITIMER_PROF, SLOW)  # ends this process
    try:
        from convattn_check import check

        for certificate in certificates:
            signal.setitimer(signal.ITIMER_PROF, SLOW)
            if not has_its_verdict(certificate, check):
                return answer.send(certificate.name)
        answer.send("")
    except BaseException as error:
        answer.send(f"{type(error).__name__}: {error}"[:200])


class Judge:
    """Judges mutants in a copy of the sources.

    Args:
        tree: The root of the tree; it is not changed.
        folder: Where the copy lies.
        only_certificates: Whether the tests are left out, for mutants of the checker.
    """

    def __init__(self, tree: Path, folder: Path, only_certificates: bool = False) -> None:
        self.tree, self.folder, self.only_certificates = tree, folder, only_certificates
        for path in tree.iterdir():
            if path.name == "src":
                shutil.copytree(path, folder / "src", ignore=shutil.ignore_patterns("__pycache__"))
            else:  # what a module finds beside it
                (folder / path.name).symlink_to(path)
        self.usual: dict[tuple[str, ...], float] = {}

    def __call__(self, mutant: Mutant) -> str:
        """What notices it, "" for nothing."""
        if mutant.module.startswith(CHECKER):
            self.seconds(self.by_certificates, ())
            with self.written(mutant):
                by = self.by_certificates()
            if by or self.only_certificates:
                return by
        files = tuple(test_files(self.tree, mutant.module))
        for stage in STAGES:
            seconds = self.seconds(partial(self.by_tests, files, stage), (stage, *files))
            with self.written(mutant):
                if by := self.by_tests(files, stage, 4 * seconds + MARGIN):
                    return by
        return ""

    @cached_property
    def certificates(self) -> list[Certificate]:
        """The committed ones, the smallest first; what notices a mutant moves to the front."""
        return sorted(corpora(self.tree), key=lambda certificate: len(certificate.content))

    def seconds(self, work: Callable[[], str], name: tuple[str, ...]) -> float:
        """How long something takes without any error in the program, where it notices nothing."""
        if name not in self.usual:
            start = time.monotonic()
            if by := work():
                raise RuntimeError(f"without any error in the program: {by}")
            self.usual[name] = time.monotonic() - start
        return self.usual[name]

    @contextmanager
    def written(self, mutant: Mutant) -> Iterator[None]:
        """The sources with the error, for a while."""
        path = self.folder / mutant.module
        code = path.read_bytes()
        path.write_bytes(mutant.applied(code))
        try:
            yield
        finally:
            path.write_bytes(code)

    def by_certificates(self) -> str:
        """The certificate that notices what the sources hold now."""
        receiver, sender = FORK.Pipe(duplex=False)
        source = self.folder / "src"
        process = FORK.Process(target=first_refuted, args=(source, self.certificates, sender))
        process.start()
        sender.close()
        try:
            by = str(receiver.recv())
        except EOFError:
            by = f"a certificate took over {SLOW:g} s, or ended the process"
        process.join()
        self.certificates.sort(key=lambda certificate: certificate.name != by)
        return by

    def by_tests(self, files: Sequence[str], stage: str, limit: float | None = None) -> str:
        """The first test that fails with what the sources hold now."""
        if not files:
            return ""
        command = [sys.executable, "-B", "-m", "pytest", *OPTIONS, "-m", stage, *files]
        if all(file.startswith("tests/convattn_check") for file in files):
            command.append("--confcutdir=tests/convattn_check")  # no JAX
        paths = [str(self.folder / "src"), os.environ.get("PYTHONPATH", "")]
        environment = {**os.environ, "PYTHONPATH": os.pathsep.join(filter(None, paths))}
        with open(self.folder / "output", "w+") as output:
            try:
                done = subprocess.run(
                    command, cwd=self.tree, env=environment, stdout=output, timeout=limit
                )
            except subprocess.TimeoutExpired:
                return f"no answer in {limit:.0f} seconds"
            output.seek(0)
            first = FAILED.search(output.read())
        if done.returncode in (0, NO_TESTS):
            return ""
        return first[1] if first else f"pytest ended with {done.returncode}"


def table(mutants: Sequence[Mutant], by: dict[Key, str]) -> str:
    """For each module its mutants: noticed, open and, where nobody judged, equivalent."""
    rows = ["| module | mutants | noticed | equivalent | open | score |"]
    for module in [*sorted({mutant.module for mutant in mutants}), "all"]:
        keys = [mutant.key for mutant in mutants if module in (mutant.module, "all")]
        verdicts = [bool(by[key]) for key in keys if key in by]
        noticed, left = sum(verdicts), len(verdicts) - sum(verdicts)
        score = f"{100 * noticed / len(verdicts):.1f} %" if verdicts else "-"
        numbers = (len(keys), noticed, len(keys) - len(verdicts), left, score)
        rows.append(f"| {module} | {' | '.join(map(str, numbers))} |")
    return "\n".join(rows)


def main(arguments: Sequence[str] | None = None) -> int:
    """Judge the mutants of some modules, and print what nothing notices."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    add = parser.add_argument
    add("paths", nargs="+", type=Path, help="modules, or folders of modules")
    add("--sample", type=int, help="so many are drawn of each path (all)")
    add("--seed", type=int, default=0, help="of what is drawn (%(default)s)")
    add("--certificates", action="store_true", help="without tests, for mutants of the checker")
    options = parser.parse_args(arguments)
    mutants: list[Mutant] = []
    for path in map(Path.resolve, options.paths):
        every = find_mutants(ROOT, sorted(path.rglob("*.py")) if path.is_dir() else [path])
        mutants += every if options.sample is None else sample(every, options.sample, options.seed)
    listed = equivalents(EQUIVALENT)
    if lost := stale(listed, mutants if options.sample is None else []):
        print(f"{EQUIVALENT.name} lists what is no mutant:", *lost, sep="\n", file=sys.stderr)
        return 2
    by: dict[Key, str] = {}
    with tempfile.TemporaryDirectory() as folder:
        judge = Judge(ROOT, Path(folder), options.certificates)
        for mutant in mutants:
            if mutant.key not in listed:
                by[mutant.key] = judge(mutant)
                if not by[mutant.key]:
                    print(mutant, flush=True)
    print(table(mutants, by))
    return int("" in by.values())


if __name__ == "__main__":
    sys.exit(main())
