"""Runs verifiers of PyPI on all pairs, each in an environment of its own, and tells what they say.

A verdict is *wrong* if it is not the expected one, which rational arithmetic decides with more room
than the bound of the pair. Verdicts *contradict* each other if one is "holds" and the other
"violated". A counterexample is evaluated by onnxruntime.

What calls a verifier is `experiments/verifier_adapters/with_NAME.py`, run by the Python of that
verifier's environment as `with_NAME.py NETWORK PROPERTY PROPERTY_2 PAIR SECONDS`. It imports
nothing of this project, prints a line of JSON, the `verdict` ("holds", "violated" or "unknown") and
a `counterexample` if there is one, its pixels row by row, and lets errors end it.
"""

import json
import os
import re
import signal
import subprocess
import sys
import time
from collections.abc import Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from convattn.files import brief, parse_json, read_file, write_file
from verifier_twins.onnx_files import digest, run_network

ADAPTERS = Path(__file__).parents[1] / "verifier_adapters"
DECIDED = ("holds", "violated")
VERDICTS = (*DECIDED, "unknown", "timeout", "error")
MESSAGE = 200  # characters
_INSTALLATION = 1800.0  # seconds
_BEGINNING = 90.0  # seconds that a call may take beside its limit, for imports


@dataclass(frozen=True)
class Verifier:
    """A verifier of PyPI.

    Attributes:
        name: Of its environment and its adapter.
        packages: What pip installs.
        python: The interpreter that it needs; None for any.
        reads_networks: Whether it reads files of networks; what does not is only installed.
        note: What is to be said of it.
    """

    name: str
    packages: tuple[str, ...]
    python: str | None = None
    reads_networks: bool = True
    note: str = ""


_KERAS = "bounds Keras models, and reads no ONNX files"
_BACK_ENDS = "a front end whose verifiers are fetched from GitHub; none comes with it"
VERIFIERS = (
    Verifier("marabou", ("maraboupy==2.0.0", "onnx==1.23.2", "onnxruntime==1.32.0")),
    Verifier("vibecheck", ("vibecheck-nn==1.1.0",)),
    Verifier("pynever", ("pynever==1.3.2",)),
    Verifier(
        "abstractnn",
        (
            "abstractnn==0.1.5",
            "matplotlib",
            "numpy",
            "onnx==1.23.2",
            "onnxruntime==1.32.0",
            "pillow",
        ),
        note="what it imports is not among its dependencies, and is installed beside it",
    ),
    Verifier(
        "auto_lirpa",
        (
            *("auto-LiRPA==0.3", "appdirs", "numpy<2", "onnx==1.19.1", "onnx2torch==1.5.15"),
            *("pyyaml", "tqdm"),
        ),
        python="python3.9",
        note="0.3 is the newest on PyPI; it needs PyTorch before 1.13, and so Python 3.9 or 3.10",
    ),
    Verifier("dnnv", ("dnnv==0.6.0",), "python3.9", False, _BACK_ENDS),
    Verifier("auto-verify", ("auto-verify==1.0.0",), None, False, _BACK_ENDS),
    Verifier("jax-verify", ("jax-verify==1.0",), "python3.9", False, "bounds functions of JAX"),
    Verifier("decomon", ("decomon==0.2.1",), "python3.10", False, _KERAS),
    Verifier(
        "bound-propagation",
        ("bound-propagation==0.4.7",),
        None,
        False,
        "bounds torch.nn.Sequential",
    ),
    Verifier("rangeflow", ("rangeflow==0.5.0",), None, False, "bounds layers of its own"),
)


def environment_of(verifier: Verifier, folder: Path) -> tuple[Path, str]:
    """The Python of a verifier's environment, made if it is not there; why it could not be made."""
    own = folder / verifier.name
    python, outcome = own / "bin" / "python", own / "installed.txt"
    if not outcome.exists():
        interpreter = verifier.python or sys.executable
        commands = (
            [interpreter, "-m", "venv", "--clear", str(own)],
            [str(python), "-m", "pip", "install", "-q", "--no-input", *verifier.packages],
        )
        for command in commands:
            code, _, error = _run(command, _INSTALLATION)
            if code != 0:
                own.mkdir(parents=True, exist_ok=True)
                write_file(outcome, f"failed: {_last(error)}".encode())
                break
        else:
            write_file(outcome, b"installed")
    text = outcome.read_text()
    return python, "" if text == "installed" else text


def run_verifiers(
    pairs: Sequence[Path],
    environments: Path,
    results: Path,
    names: Sequence[str],
    seconds: int,
) -> Iterator[dict[str, Any]]:
    """What each verifier says of both networks of each pair; a line in `results` each, as it comes.

    What `results` holds of the same files is not run again.

    Args:
        pairs: Their folders.
        environments: Where verifiers are installed.
        results: A file of lines of JSON.
        names: Of verifiers; none for all.
        seconds: That a call may take.

    Raises:
        ValueError: If a line of `results` is no row.
    """
    done = {(row["verifier"], row["pair"], row["network"]): row for row in read_rows(results)}
    for verifier in VERIFIERS:
        if names and verifier.name not in names:
            continue
        python, problem = environment_of(verifier, environments)
        folders = list(pairs)
        if problem or not verifier.reads_networks:
            folders = []
            row = {"verifier": verifier.name, "pair": "", "network": "", "verdict": "not run"}
            row["message"] = problem or verifier.note
            yield _kept(done, results, row)
        for folder in folders:
            for network in ("cnn", "twin"):
                key = verifier.name, folder.name, network
                own = digest(folder / f"{network}.onnx")
                if done.get(key, {}).get("sha256") != own:
                    done.pop(key, None)
                row = done.get(key) or _called(verifier, python, folder, network, seconds)
                yield _kept(done, results, row | {"sha256": own})


def read_rows(results: Path) -> list[dict[str, Any]]:
    """The rows of a file that `run_verifiers` has written; none where there is no file.

    Raises:
        ValueError: If a line is no row; says which.
    """
    rows = []
    for number, line in enumerate(read_file(results).splitlines() if results.exists() else (), 1):
        try:
            row = parse_json(line)
        except ValueError:
            row = None
        if not _is_row(row):
            raise ValueError(
                f"line {number} of {results} is {brief(line.decode(errors='replace'), 60)}, but "
                "expected an object with the verifier, pair, network, verdict and message of a "
                "call; remove the line, and the call is made again"
            )
        rows.append(row)
    return rows


def _is_row(row: Any) -> bool:
    if not isinstance(row, dict):
        return False
    texts = [row.get(key) for key in ("verifier", "pair", "network", "verdict", "message")]
    return (
        all(isinstance(text, str) for text in texts)
        and row["verdict"] in (VERDICTS if row["pair"] else ("not run",))
        and isinstance(row.get("wrong", False), bool)
    )


def _kept(done: dict[Any, Any], results: Path, row: dict[str, Any]) -> dict[str, Any]:
    """The row; it is written if there is none of this call yet."""
    key = row["verifier"], row["pair"], row["network"]
    if key not in done:
        done[key] = row
        text = "".join(json.dumps(each) + "\n" for each in done.values())
        write_file(results, text.encode())
    return row


def _called(
    verifier: Verifier, python: Path, folder: Path, network: str, seconds: int
) -> dict[str, Any]:
    """A call of a verifier, as a row."""
    names = (f"{network}.onnx", "property.vnnlib", "property-2.vnnlib", "pair.json")
    adapter = ADAPTERS / f"with_{verifier.name}.py"
    files = [str((folder / name).resolve()) for name in names]
    started = time.monotonic()
    code, output, error = _run(
        [str(python), str(adapter), *files, str(seconds)], seconds + _BEGINNING
    )
    row: dict[str, Any] = {"verifier": verifier.name, "pair": folder.name, "network": network}
    row |= {"seconds": round(time.monotonic() - started, 1)}
    pair = json.loads((folder / "pair.json").read_text())
    row["expected"] = pair["expected"]
    if code is None:
        return row | {"verdict": "timeout", "message": ""}
    try:
        answer = parse_json(output.strip().splitlines()[-1])
        verdict, image = answer["verdict"], answer["counterexample"]
    except (ValueError, IndexError, KeyError, TypeError):
        return row | {"verdict": "error", "message": _last(error or output)}
    if verdict not in VERDICTS:
        return row | {"verdict": "error", "message": f"the verdict {brief(verdict, 60)}"}
    row["verdict"], row["message"] = verdict, str(answer.get("message", ""))[:MESSAGE]
    row["wrong"] = row["verdict"] in DECIDED and row["verdict"] != pair["expected"]
    if image is not None:
        row["counterexample"] = _judged(pair, folder / names[0], image)
    if "intervals" in answer:
        row["outside"] = _outside(pair, folder, network, answer["intervals"])
    return row


def _judged(pair: dict[str, Any], network: Path, image: Sequence[float]) -> str:
    """What a counterexample is, in onnxruntime."""
    lower = np.array(pair["box"]["lower"])
    pixels, upper = np.array(image), lower + 2 * pair["box"]["radius"]
    if (
        pixels.shape != lower.shape
        or (pixels < lower - 1e-6).any()
        or (pixels > upper + 1e-6).any()
    ):
        return "outside the box"
    inside = np.clip(pixels, lower, upper).astype(np.float32).reshape(1, *pair["image"])
    logits, least = run_network(network, inside)[0], np.inf
    for smaller, larger in (text.split(" <= ") for text in pair["counterexample_if_any"]):
        other = logits[int(larger[2:])] if larger.startswith("Y_") else float(larger)
        least = min(least, float(logits[int(smaller[2:])] - other))
    if least <= 0:
        return "confirmed"
    tie = least <= 2 * max(pair["bound"]["total"])
    return "a tie, within the bound" if tie else "none in onnxruntime"


def _outside(
    pair: dict[str, Any], folder: Path, network: str, intervals: Sequence[Sequence[float]]
) -> bool:
    """Whether logits of the box's middle lie outside a verifier's intervals by more than 1e-3."""
    middle = np.array(pair["box"]["lower"]) + pair["box"]["radius"]
    image = middle.astype(np.float32).reshape(1, *pair["image"])
    logits = run_network(folder / f"{network}.onnx", image)[0]
    low, high = np.array(intervals).T
    return bool(((logits < low - 1e-3) | (logits > high + 1e-3)).any())


def _run(command: Sequence[str], seconds: float) -> tuple[int | None, str, str]:
    """The exit code, None where it took too long, and what was printed."""
    quiet = {"OMP_NUM_THREADS": "1", "PYTHONDONTWRITEBYTECODE": "1", "JAX_PLATFORMS": "cpu"}
    environment = {name: text for name, text in os.environ.items() if name != "PYTHONPATH"} | quiet
    try:
        process = subprocess.Popen(
            command,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
            errors="replace",
            env=environment,
            start_new_session=True,
        )
    except OSError as error:
        return 127, "", str(error)
    try:
        output, error_text = process.communicate(timeout=seconds)
    except BaseException as stopped:
        with suppress(ProcessLookupError):
            os.killpg(process.pid, signal.SIGKILL)
        process.communicate()
        if isinstance(stopped, subprocess.TimeoutExpired):
            return None, "", ""
        raise
    return process.returncode, output, error_text


def _last(text: str) -> str:
    """The last line that says something, without paths of this machine."""
    lines = [line.strip() for line in text.splitlines() if line.strip()]
    errors = [line for line in lines if "Error" in line or "ERROR" in line]
    return re.sub(r"\s*/\S+/.*", "", (errors or lines or [""])[-1])[:MESSAGE]


def contradictions(rows: Sequence[dict[str, Any]]) -> list[tuple[str, str]]:
    """Verifier and pair, where its two verdicts contradict each other."""
    verdicts: dict[tuple[str, str], set[str]] = {}
    for row in rows:
        verdicts.setdefault((row["verifier"], row["pair"]), set()).add(row["verdict"])
    return [key for key, own in verdicts.items() if set(DECIDED) <= own]


def table(rows: Sequence[dict[str, Any]]) -> list[str]:
    """A table: of each verifier and network how often it said what."""
    kinds = ("right", "wrong", "unknown", "timeout", "error")
    lines = [f"| verifier | network | {' | '.join(kinds)} |", f"|---|---|{'---:|' * len(kinds)}"]
    for name in dict.fromkeys(row["verifier"] for row in rows if row["pair"]):
        for network in ("cnn", "twin"):
            own = [r for r in rows if (r["verifier"], r["network"]) == (name, network)]
            counts = dict.fromkeys(kinds, 0)
            for row in own:
                decided = row["verdict"] in DECIDED
                counts["wrong" if row.get("wrong") else "right" if decided else row["verdict"]] += 1
            lines.append(f"| {name} | {network} | {' | '.join(map(str, counts.values()))} |")
    lines += [f"{row['verifier']}: {row['message']}" for row in rows if not row["pair"]]
    lines += [f"CONTRADICTION: {name} on {pair}" for name, pair in contradictions(rows)]
    return lines
