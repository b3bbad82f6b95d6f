import re
from pathlib import Path

import pytest

from convattn_ledger import Kind, Level, Verdict
from convattn_ledger.claim import REQUIRED_LEVELS
from convattn_ledger.discovery import discover
from convattn_ledger.runner import Options, run
from convattn_ledger.selection import select
from ledger.proof_files import write

GUIDE = Path(__file__).parents[2] / "docs" / "architecture.md"


@pytest.fixture
def guide():
    return GUIDE.read_text("utf-8")


def verify(directory):
    return run(select(discover(directory))[0], Options(directory, jobs=1, preload=()))


def test_the_example_of_the_guide_is_a_claim_that_passes_and_can_fail(guide, tmp_path):
    (example,) = re.findall(r"```python\n(.*?)```", guide, re.DOTALL)
    outcome = verify(write(tmp_path, cordonnier2020__rows=example))
    assert outcome.passed
    assert outcome.claims[0].evidence[0].detail == "100 rows of 7 keys sum to exactly 1"
    wrong = example.replace("Fraction(weight, sum(weights))", "Fraction(weight, 99)")
    outcome = verify(write(tmp_path, cordonnier2020__rows=wrong))
    assert outcome.claims[0].evidence[0].detail.startswith("case 0: weights [")


def test_the_guide_lists_every_verdict_kind_and_level(guide):
    for member in (*Verdict, *Level):
        assert f"`{member.name}`" in guide
    for kind in Kind:
        (row,) = [line for line in guide.splitlines() if line.startswith(f"| `{kind.name}`")]
        required = set(re.findall(r"`(\w+)`", row.split("|")[2])) & set(Level.__members__)
        assert required == {level.name for level in REQUIRED_LEVELS[kind]}
