import copy
import json
import subprocess
import sys
from pathlib import Path

import pytest

SCRIPT = Path(__file__).resolve().parents[3] / "scripts/reliability/compare_reports.py"
EVIDENCE = [
    {"name": "a", "level": "TESTED", "passed": True, "detail": "1.5e-7", "seconds": 1.0},
    {"name": "b", "level": "BOUNDED", "passed": None, "detail": "no GPU", "seconds": 0.0},
]
REPORT = {
    "schema": 1,
    "environment": {"jax": "0.10.2", "seconds": 3.0},
    "claims": [{"id": "S.x", "verdict": "holds", "evidence": EVIDENCE, "problems": []}],
}


def changed(*keys, to):
    report = copy.deepcopy(REPORT)
    node = report
    for key in keys[:-1]:
        node = node[key]
    node[keys[-1]] = to
    return report


def compare(folder, *reports, options=()):
    paths = [folder / f"{number}.json" for number in range(len(reports))]
    for path, report in zip(paths, reports, strict=True):
        path.write_text(report if isinstance(report, str) else json.dumps(report))
    command = [sys.executable, SCRIPT, *paths, *options]
    return subprocess.run(command, capture_output=True, text=True, timeout=60, check=False)


def test_times_and_the_environment_may_differ(tmp_path):
    later = changed("claims", 0, "evidence", 0, "seconds", to=9.0)
    elsewhere = changed("environment", to={"jax": "0.11.2"})
    done = compare(tmp_path, REPORT, later, elsewhere)
    assert done.returncode == 0
    assert "0 differences" in done.stdout


@pytest.mark.parametrize(
    ("report", "message", "verdicts"),
    [
        (changed("claims", 0, "evidence", 0, "passed", to=False), "S.x/evidence/a/passed", True),
        (changed("claims", 0, "evidence", 1, "passed", to=True), "S.x/evidence/b/passed", True),
        (changed("claims", 0, "evidence", 0, "level", to="BOUNDED"), "'BOUNDED'", True),
        (changed("claims", 0, "evidence", to=EVIDENCE[:1]), "became 'nothing'", True),
        (changed("claims", 0, "id", to="S.y"), "S.y", True),
        (changed("claims", 0, "evidence", 0, "detail", to="1.6e-7"), "'1.6e-7'", False),
    ],
    ids=["failed", "ran", "level", "evidence lost", "claim", "number"],
)
@pytest.mark.quick(2)
def test_what_differs_is_named(tmp_path, report, message, verdicts):
    done = compare(tmp_path, REPORT, report)
    assert done.returncode == 1
    assert message in done.stdout
    assert compare(tmp_path, REPORT, report, options=["--verdicts"]).returncode == verdicts


@pytest.mark.parametrize(
    ("report", "words"),
    [("{", "convattn verify --json"), ({"claims": []}, "no claims"), (None, "at least two")],
    ids=["not JSON", "empty", "one report"],
)
def test_what_is_no_report_is_refused(tmp_path, report, words):
    done = compare(tmp_path, REPORT, *[report] * (report is not None))
    assert done.returncode == 2
    assert words in done.stderr
