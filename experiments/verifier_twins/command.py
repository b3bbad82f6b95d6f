"""`experiments/twins.py`: pairs are written, and verifiers are run on them."""

from dataclasses import dataclass
from importlib.util import find_spec
from pathlib import Path
from typing import Annotated, Any

import tyro

from convattn.cli.output import (
    print_lines,
    require_folder,
    require_outputs,
    require_outside,
    write_json,
)
from convattn.cli.running import FAILED, SUCCESS, UsageError, run_program
from convattn.files import require_own
from verifier_twins import INSTALL, PROGRAM
from verifier_twins.catalogue import PAIRS, Pair
from verifier_twins.verdicts import VERIFIERS, contradictions, run_verifiers, table

PACKAGES = ("jax2onnx", "onnxruntime")
RESULTS = "verdicts.jsonl"


@dataclass(frozen=True)
class Twins:
    """Write the pairs, or run verifiers on them.

    Attributes:
        output_dir: The folder of the pairs.
        verify: Run verifiers, which are installed in this folder.
        pair: Only these, by the beginning of their names.
        verifier: Only these.
        seconds: That a call of a verifier may take.
        json: A file for what was certified, or for the verdicts.
    """

    output_dir: Annotated[Path, tyro.conf.arg(metavar="DIR")]
    verify: Annotated[Path | None, tyro.conf.arg(metavar="DIR")] = None
    pair: tuple[str, ...] = ()
    verifier: tuple[str, ...] = ()
    seconds: int = 60
    json: Annotated[Path | None, tyro.conf.arg(metavar="FILE")] = None

    def __call__(self) -> int:
        """0; 1 if a verifier contradicts itself or is wrong."""
        chosen = [pair for pair in PAIRS if not self.pair or pair.name.startswith(self.pair)]
        if not chosen:
            names = ", ".join(pair.name for pair in PAIRS)
            raise UsageError(f"--pair got {' '.join(self.pair)}, but expected some of {names}")
        known = [verifier.name for verifier in VERIFIERS]
        for name in set(self.verifier) - set(known):
            raise UsageError(f"--verifier got {name}, but expected some of {', '.join(known)}")
        if self.seconds < 1:
            raise UsageError(f"--seconds got {self.seconds}, but expected 1 or more")
        for folder, option in ((self.output_dir, "--output-dir"), (self.verify, "--verify")):
            require_folder(folder, option)
        require_outside(self.json, "--json", self.output_dir, "--output-dir")
        for environment in () if self.verify is None else [self.verify / name for name in known]:
            require_outside(environment, "--verify", self.output_dir, "--output-dir")
            require_outside(self.json, "--json", environment, "--verify")
        require_outputs({"--json": self.json}, {})
        for package in PACKAGES:
            if find_spec(package) is None:
                raise UsageError(f"{package} is not installed; {INSTALL}")
        return self._write(chosen) if self.verify is None else self._verify(chosen, self.verify)

    def _write(self, chosen: list[Pair]) -> int:
        from verifier_twins.writing import is_written, read_pair, write_pair

        require_own(self.output_dir, {RESULTS, *(pair.name for pair in PAIRS)})
        print_lines(["pair | property | room in bounds | bound | largest difference"])
        pairs = []
        for pair in chosen:
            folder = self.output_dir / pair.name
            content = read_pair(folder) if is_written(folder) else write_pair(pair, folder)
            total, apart = max(content["bound"]["total"]), max(content["largest_difference"])
            numbers = f"{content['room']:.3g} | {total:.2g} | {apart:.2g}"
            print_lines([f"{pair.name} | {pair.expected} | {numbers}"])
            pairs.append(content)
        write_json(self.json, {"schema": 1, "pairs": pairs})
        return SUCCESS

    def _verify(self, chosen: list[Pair], environments: Path) -> int:
        from verifier_twins.writing import is_written

        folders = [self.output_dir / pair.name for pair in chosen]
        for folder in folders:
            if not is_written(folder):
                raise UsageError(f"{folder} holds no whole pair; run {PROGRAM} without --verify")
        rows: list[dict[str, Any]] = []
        results = self.output_dir / RESULTS
        for row in run_verifiers(folders, environments, results, self.verifier, self.seconds):
            rows.append(row)
            parts = (row["verifier"], row["pair"], row["network"], row["verdict"], row["message"])
            print_lines([" | ".join(parts)])
        print_lines(["", *table(rows)])
        write_json(self.json, {"schema": 1, "seconds": self.seconds, "rows": rows})
        return FAILED if contradictions(rows) or any(row.get("wrong") for row in rows) else SUCCESS


def run(arguments: list[str] | None = None) -> int:
    """The command, its packages being there."""
    return run_program(PROGRAM, Twins, Twins.__call__, arguments)
