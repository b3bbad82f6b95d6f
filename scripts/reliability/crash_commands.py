"""The commands that are killed: a small task for each, and what its output must hold."""

import fnmatch
import importlib
import re
import sys
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from crash_process import Place, Program, apart, start_fork

ROOT = Path(__file__).parents[2]
CHECKPOINT = re.compile(r"^(?:.*/)?(?:checkpoints|best)/\d+")
CLAIM = '''"""A tiny claim.

Printed. One is one.

Verified. One is one.

Nothing to repair.

Proof. By reflexivity.
"""

import jax
from convattn.ledger import Claim, Evidence, Kind, Level, Verdict
from convattn.ledger.evidence.proved import proved


def sum_of_ones(run):
    return f"1 + 1 = {{int(jax.jit(lambda x: x + x)(1))}}"


CLAIM = Claim("{id}", "A source, §1", Verdict.HOLDS, (Kind.IDENTITY,), (
    Evidence("sum", Level.TESTED, sum_of_ones),{more}
))
'''
TRAINING = [
    *("--training{}.epochs", "2", "--training{}.batch-size", "2"),
    *("--training{}.checkpoint-minutes", "0", "--training{}.steps-per-call", "1"),
]
CIFAR = (
    "--no-figures --model.heads 2 --model.width 4 --model.inner 4"
    " --images.crop 1 --images.validation 0.5"
)
TWO_PHASE = (
    "--no-figures --model.depth 1 --model.width 48 --model.inner 6 --model.patch-size 4"
    " --images.crop 1"
)


@dataclass(frozen=True)
class Command:
    """A command, with a task that takes seconds.

    Attributes:
        program: How it is run.
        prepare: Writes what it reads.
        words: The folder of what it reads, whether it is the run before → its arguments. The output
            of the run before stands there in half of the trials, and must not be lost.
        modules: Loaded before any fork.
        inner: Patterns of files that mean nothing to a reader: kept for the next run alone.
        may_go: Patterns of files that a run may remove.
        code: Its exit code.
        writes: Whether it writes anything.
    """

    program: Program
    prepare: Callable[[Path], None]
    words: Callable[[str, bool], list[str]]
    modules: tuple[str, ...] = ()
    inner: tuple[str, ...] = ("lock", "*/lock")
    may_go: tuple[str, ...] = ()
    code: int = 0
    writes: bool = True

    def files(self, place: Place) -> set[str]:
        """The files of the output, by name; not those that are hidden or inner."""
        return {name for name in every_file(place.out) if not self._left_out(name)}

    def strangers(self, place: Place) -> set[str]:
        """All other files, by names that do not differ by run, and those for a while."""
        names = (name for name in every_file(place.out) if self._left_out(name))
        found = {match[0] if (match := CHECKPOINT.search(name)) else name for name in names}
        inside = {f"tmp/{path.name}" for path in place.temporary.iterdir()}
        return found | inside

    def parts(self, place: Place) -> dict[str, Path]:
        """The files of the output, and each checkpoint as a whole."""
        found = {}
        for path in sorted(place.out.rglob("*")):
            name = str(path.relative_to(place.out))
            within = CHECKPOINT.search(name)
            whole = not (path.is_dir() or self._left_out(name))
            if within.end() == len(name) if within else whole:
                found[name] = path
        return found

    def kept(self, names: set[str]) -> set[str]:
        """Those that no run may remove."""
        return {name for name in names if not matches(name, self.may_go)}

    def _left_out(self, name: str) -> bool:
        if CHECKPOINT.search(name):
            return True  # it is read as a whole
        hidden = any(part.startswith(".") or "-tmp" in part for part in name.split("/"))
        return hidden or matches(name, self.inner)


def matches(name: str, patterns: Sequence[str]) -> bool:
    """Whether a name fits one of the patterns."""
    return any(fnmatch.fnmatchcase(name, pattern) for pattern in patterns)


def every_file(folder: Path) -> set[str]:
    """The files of a folder; a file of TensorBoard by the name that all of them share."""
    names = (str(path.relative_to(folder)) for path in folder.rglob("*") if not path.is_dir())
    return {re.sub(r"events\.out.*", "events", name) for name in names}


def program(module: str, script: str = "", ready: str | None = None) -> Program:
    """A command line of ours, by the module of its `main`."""
    more: dict[str, Any] = {}
    start: tuple[str, ...] = (sys.executable, "-m", "convattn.cli")
    if script:
        folder = "experiments/configs"
        more["configs"] = ROOT / (f"{folder}/two_phase" if "two_phase" in script else folder)
        start = (sys.executable, str(ROOT / script))

    def call(words: list[str]) -> int:
        return int(importlib.import_module(module).main(words, **more))

    return Program(call, start, ready)


def write_kernel(inputs: Path) -> None:
    """A kernel of 3 × 3 and 16 channels."""
    kernel = np.random.default_rng(0).standard_normal((3, 3, 16, 16)).astype(np.float32)
    np.savez(inputs / "kernel.npz", kernel=kernel)


def write_layer(inputs: Path) -> None:
    """A layer of attention, converted from a kernel."""
    from convattn import conv_to_attention
    from convattn.networks.weights.stored_layer import save_layer

    kernel = np.random.default_rng(0).standard_normal((3, 3, 2, 2)).astype(np.float32)
    save_layer(conv_to_attention(kernel), inputs / "layer.safetensors")


def write_claims(inputs: Path) -> None:
    """Two claims with evidence that computes."""
    for name in ("a", "b"):
        path = inputs / "proofs" / "paper" / f"{name}.py"
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(CLAIM.format(id=f"S.{name}", more=""))


def write_theorems(inputs: Path) -> None:
    """Two theorems, and claims that name them."""
    for name in ("a", "b"):
        source = inputs / "coq" / "paper" / f"{name}.v"
        proof = inputs / "proofs" / "paper" / f"{name}.py"
        for path in (source, proof):
            path.parent.mkdir(parents=True, exist_ok=True)
        source.write_text(f"Theorem {name} : 1 = 1.\nProof. reflexivity. Qed.\n")
        proof.write_text(CLAIM.format(id=f"S.{name}", more=f' proved("paper/{name}.v"),'))
    words = ["prove", "--lock", "--coq", str(inputs / "coq"), "--proofs", str(inputs / "proofs")]
    run = start_fork(
        program(CONVATTN), [*words, "--output", "out/prove"], Place.make(inputs / "made")
    )
    run.wait()
    if run.code:
        raise RuntimeError(f"convattn prove --lock ends with {run.code}: {run.output()}")


def write_pictures(inputs: Path) -> None:
    """Pictures of two classes."""
    from PIL import Image

    rng = np.random.default_rng(0)
    for split in ("train", "test"):
        for number, name in enumerate(("bird", "cat")):
            folder = inputs / "pictures" / split / name
            folder.mkdir(parents=True, exist_ok=True)
            for picture in range(4 if split == "train" else 1):
                pixels = rng.integers(0, 150, (8, 8, 3)) + 100 * number
                Image.fromarray(pixels.astype(np.uint8)).save(folder / f"{picture}.png")


def training(*parts: str) -> list[str]:
    """The options of training, for each of its parts."""
    return [word.format(part) for part in parts for word in TRAINING]


CONVATTN = "convattn.cli.__main__"
RUN_MODULES = (
    *("convattn.lab.runs.launch", "convattn.lab.analysis.figures", "tyro"),
    *("matplotlib.pyplot", "matplotlib.backends.backend_svg"),
    *("tensorboardX.event_file_writer", "orbax.checkpoint", "PIL.Image"),
)
CHECKPOINTS = ("*checkpoints/*", "*best/*")
VERIFY = ("convattn.cli.verify", "convattn.page.report.build")
COMMANDS = {
    "convert": Command(
        program(CONVATTN),
        write_kernel,
        lambda inputs, before: [
            *("convert", f"{inputs}/kernel.npz", "--output", "out/layer.safetensors"),
            *("--json", "out/layer.json", "--leak", "0.25" if before else "0.5"),
        ],
        ("convattn.cli.convert", "convattn.networks.weights.converted_layer"),
    ),
    "verify-json": Command(
        program(CONVATTN),
        write_claims,
        lambda inputs, before: [
            *("verify", "--proofs", f"{inputs}/proofs", "--jobs", "1", "--seed", str(int(before))),
            *("--json", "out/ledger.json"),
        ],
        VERIFY,
    ),
    "verify-report": Command(
        program(CONVATTN),
        write_claims,
        lambda inputs, before: [
            *("verify", "--proofs", f"{inputs}/proofs", "--jobs", "1", "--seed", str(int(before))),
            *("--report", "out/report"),
        ],
        VERIFY,
    ),
    "prove": Command(
        program(CONVATTN),
        write_theorems,
        lambda inputs, before: [
            *("prove", "--coq", f"{inputs}/coq", "--proofs", f"{inputs}/proofs", "--jobs", "1"),
            *("--output", "out/prove", "--json", "out/report.json"),
        ],
        ("convattn.cli.prove",),
        ("prove/lock", "prove/coq/*", "prove/assumptions/*", "prove/timed"),
    ),
    "cifar": Command(
        program("convattn.cli.experiments.cifar", "experiments/cifar.py"),
        write_pictures,
        lambda inputs, before: [
            *("--data", f"{inputs}/pictures", "--output-dir", "out/run", *CIFAR.split()),
            *(*training(""), "--training.select", "best"),
        ],
        RUN_MODULES,
        may_go=CHECKPOINTS,
    ),
    "two-phase": Command(
        program("convattn.cli.experiments.two_phase", "experiments/two_phase.py"),
        write_pictures,
        lambda inputs, before: [
            *("--data", f"{inputs}/pictures", "--output-dir", "out/run", *TWO_PHASE.split()),
            *training("-one", "-two"),
        ],
        (*RUN_MODULES, "convattn.lab.two_phase.pipeline", "convattn.lab.two_phase.pictures"),
        may_go=CHECKPOINTS,
    ),
    "explore": Command(
        program(CONVATTN, ready=" at http"),
        lambda inputs: apart(write_layer, inputs),
        lambda inputs, before: ["explore", f"{inputs}/layer.safetensors"],
        ("convattn.cli.explore", "convattn.page.explorer.run", "convattn.page.explorer.opening"),
        code=143,
        writes=False,
    ),
}
