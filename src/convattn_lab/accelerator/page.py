"""One page of a session, with its figures inside, to send on."""

import base64
import json
from collections.abc import Callable, Iterable, Sequence
from html import escape
from pathlib import Path
from typing import Any

from convattn_lab.accelerator.session import Ended, Session
from convattn_lab.accelerator.stages import STAGES
from convattn_lab.runs.directory import RESULT
from convattn_lab.training.metrics import FILE_NAME as METRICS

FILE_NAME = "index.html"
STYLE = """
body { font: 16px/1.5 system-ui, sans-serif; margin: 2rem auto; max-width: 70rem; padding: 0 1rem;
       color: #1b1f24; background: #fff }
table { border-collapse: collapse; margin: 1rem 0; font-variant-numeric: tabular-nums }
th, td { border-bottom: 1px solid #d0d7de; padding: .2rem .8rem; text-align: left }
div { overflow-x: auto } img { max-width: 100% } .failed { color: #b31d28; font-weight: 600 }
@media (prefers-color-scheme: dark) {
  body { color: #e6edf3; background: #0d1117 } th, td { border-color: #30363d }
  .failed { color: #ff7b72 }
}
"""
Section = Callable[[Path], Iterable[str]]


def page(folder: Path, session: Session) -> bytes:
    """The page as HTML.

    Args:
        folder: Of the session; results that are not there are left out.
        session: As it is there.
    """
    environment = session.environment
    device = f"{environment['devices']} × {environment['device']}"
    memory = f", {environment['memory'] / 2**30:.0f} GiB each" if environment.get("memory") else ""
    names = ("jax", "jaxlib", "python", "convattn", "platform")
    versions = ", ".join(f"{name} {environment.get(name)}" for name in names)
    minutes = sum(entry["minutes"] for entry in session.sessions)
    sections = [
        f"<h1>convattn on {escape(device)}</h1>",
        f"<p>{escape(device + memory)}. {escape(versions)}. {len(session.sessions)} sessions of "
        f"{minutes:g} minutes in all, the first on {session.sessions[0]['started'][:10]}.</p>",
        _table(
            ("stage", "status", "seconds", "reason"),
            [
                (name, ended.status, f"{ended.seconds:.0f}", ended.reason)
                for name, ended in session.stages.items()
            ],
        ),
    ]
    for stage in STAGES:
        ended = session.stages.get(stage.name, Ended())
        body = list(SECTIONS[stage.name](folder))
        if ended.status == "failed":
            body.insert(0, f'<p class="failed">failed: {escape(ended.reason)}</p>')
        sections += [f"<h2>{escape(stage.title)}</h2>", *(body or ["<p>not reached</p>"])]
    head = (
        f'<!doctype html><html lang="en"><meta charset="utf-8"><title>convattn on {escape(device)}'
    )
    head += f'</title><meta name="viewport" content="width=device-width"><style>{STYLE}</style>'
    return (head + "\n".join(sections) + "</html>\n").encode()


def _table(columns: Sequence[str], rows: Iterable[Sequence[str]]) -> str:
    def line(cells: Sequence[str], kind: str) -> str:
        return "<tr>" + "".join(f"<{kind}>{escape(cell)}</{kind}>" for cell in cells) + "</tr>"

    body = "".join(line(cells, "td") for cells in rows)
    return f"<div><table>{line(columns, 'th')}{body}</table></div>"


def _read(path: Path) -> Any:
    return json.loads(path.read_text("utf-8")) if path.is_file() else None


def _picture(path: Path, title: str) -> Iterable[str]:
    if path.is_file():
        content = base64.b64encode(path.read_bytes()).decode()
        yield f'<img alt="{escape(title)}" src="data:image/png;base64,{content}">'


def _audit(folder: Path) -> Iterable[str]:
    audit = _read(folder / "audit.json")
    if audit is None:
        return
    yield "<p>Bits of significand that a product of float32 matrices keeps, of 24.</p>"
    columns = ("precision", "left_bits", "right_bits", "accumulator_bits", "amounts_to")
    yield _table(tuple(audit["matmul"][0]) or columns, _texts(audit["matmul"]))
    yield "<p>Subnormal numbers.</p>"
    yield _table(tuple(audit["subnormals"][0]), _texts(audit["subnormals"]))


def _texts(rows: Iterable[dict[str, Any]]) -> Iterable[tuple[str, ...]]:
    for row in rows:
        yield tuple(f"{v:.4g}" if isinstance(v, float) else str(v) for v in row.values())


def _checks(folder: Path) -> Iterable[str]:
    report = _read(folder / "checks.json")
    if report is None:
        return
    rows = report["rows"]
    failed = sum(row["passed"] is False for row in rows)
    yield f"<p>{len(rows)} checks, {failed} failed. {escape(report['precision'])}</p>"
    yield _table(tuple(rows[0]), _texts(rows))


def _bench(folder: Path) -> Iterable[str]:
    report = _read(folder / "bench.json")
    if report is None:
        return
    peak = report.get("peak") or {}
    if peak:
        yield (
            f"<p>Fractions are of what one large product ({peak['flops'] / 1e12:.3g} TFLOP/s) "
            f"and one large sum of arrays ({peak['bytes'] / 1e9:.3g} GB/s) reach in the same run; "
            "flops and bytes by XLA's cost analysis. Ratios are of single turns: lower quartile, "
            "median, upper quartile.</p>"
        )
    yield from _picture(folder / "bench.png", "time and memory against the number of pixels")
    columns = ("case", "pixels", "D", "contestant", "forward ms", "forward + backward ms")
    yield _table(
        (*columns, "× lax.conv", "of peak flops", "of peak bytes", "XLA MiB"),
        (_bench_row(row, peak) for row in report["rows"] if row["skipped"] is None),
    )


def _bench_row(row: dict[str, Any], peak: dict[str, float]) -> tuple[str, ...]:
    seconds, cost = row["median_backward"], row.get("cost") or {}
    shares = [
        f"{cost[name] / seconds / peak[name]:.1%}" if cost.get(name) and peak else ""
        for name in ("flops", "bytes")
    ]
    ratio = row.get("over_convolution")
    return (
        *(row["case"], f"{row['side']}²", str(row["features"])),
        row["contestant"] + (f" ({row['chose']})" if row["chose"] else ""),
        *(f"{1000 * time:.3f}" for time in (row["median_forward"], seconds)),
        "" if ratio is None else " ".join(f"{value:.2f}" for value in ratio),
        *shares,
        "" if row["memory"] is None else f"{row['memory']['total'] / 2**20:.1f}",
    )


def _rates(folder: Path) -> Iterable[str]:
    report = _read(folder / "rates.json")
    if report is not None:
        yield f"<p>{escape(report['says'])}</p>"
        yield _table(tuple(report["rates"]), _texts([report["rates"]]))


def _hours(folder: Path) -> Iterable[str]:
    report = _read(folder / "hours.json")
    if report is not None:
        yield _table(tuple(report["rows"][0]), _texts(report["rows"]))


def _training(folder: Path) -> Iterable[str]:
    run = folder / "training"
    lines = (run / METRICS).read_text("utf-8").splitlines() if (run / METRICS).is_file() else []
    if lines:
        last = json.loads(lines[-1])
        yield _table(tuple(last), _texts([last]))
    if (result := _read(run / RESULT)) is not None:
        yield _table(tuple(result), _texts([result]))
    for path in sorted((run / "figures").glob("*.png")):
        yield from _picture(path, path.stem)


SECTIONS: dict[str, Section] = {
    "audit": _audit,
    "checks": _checks,
    "bench": _bench,
    "rates": _rates,
    "hours": _hours,
    "training": _training,
}
