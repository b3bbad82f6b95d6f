"""The bounds of the checker are those of docs/certificates.md, no others, and are what they say."""

import importlib
import pkgutil
import re
from fractions import Fraction
from pathlib import Path

import pytest

import convattn_check
from convattn_check import check

ROOT = Path(__file__).resolve().parents[2]
PAGE = ROOT / "docs" / "certificates.md"
ROW = re.compile(r"^\| `(\w+)` \| (`[A-Z_]+` \d.*) \|$", re.MULTILINE)
BOUND = re.compile(r"`([A-Z_]+)` (\d[-\d,^]*\d|\d)")
NUMBER = int | Fraction
NO_BOUNDS = {("convolution", "ABSENT")}


def number(text):
    base, _, exponent = text.replace(",", "").partition("^")
    return Fraction(int(base)) ** int(exponent or 1)


def constants():
    """The numbers in capitals that a module sets itself."""
    names = {module.name for module in pkgutil.iter_modules(convattn_check.__path__)}
    for name in sorted(names - {"__main__"}):
        module = importlib.import_module(f"convattn_check.{name}")
        source = Path(module.__file__).read_text("utf-8")
        for constant, value in vars(module).items():
            sets = re.search(rf"^([A-Z_]+, )*{constant}(, [A-Z_]+)* = ", source, re.MULTILINE)
            if (
                re.fullmatch("[A-Z][A-Z_]*", constant)
                and isinstance(value, int | Fraction)
                and sets
            ):
                yield (name, constant), value


def test_the_page_lists_every_bound_with_its_value():
    rows = [
        (module, *bound)
        for module, bounds in ROW.findall(PAGE.read_text("utf-8"))
        for bound in BOUND.findall(bounds)
    ]
    listed = {(module, constant): number(value) for module, constant, value in rows}
    assert len(listed) == len(rows)
    assert {key: value for key, value in constants() if key not in NO_BOUNDS} == listed


# A true certificate has just so much, and what is said where the bound is one less.
REACHED = """
approximation MOST_OFFSETS 9 certificates/S.approx-texture-P1-heads4 9 offsets, expected up to 8
approximation LARGEST_THRESHOLD 10000000000000000 tests/correct/approximation-large-error over 40
attention MOST_BITS 84 tests/correct/equality-bases-falling 18 bits each and 84 together
attention LONGEST_POWER 18 tests/correct/equality-bases-falling 18 bits each and 84 together
border LARGEST_SIDE 3 tests/correct/border-K1x3 kernel_size[1] is 3, expected 1 to 2
commutant MOST_AXES 3 tests/correct/commutant-bare-1x2x1 the grid has 3 axes, expected 1 to 2
commutant MOST_NODES 5 certificates/A19.equivariance-torus-5 grid[0] is 5, expected 1 to 4
commutant MOST_NODES 6 certificates/A19.equivariance-bare-2x3 6 nodes, expected up to 5
commutant MOST_SHIFTS 6 tests/correct/commutant-bare-1x2x1 6 shifts, expected 1 to 5
cost MOST_STEPS 192 tests/correct/equality-wo-K1x3-P1x2 takes 192 steps or more
equality MOST_OFFSETS 9 certificates/C20.lemma1-K3-P1 more than 8 offsets
exponentials MOST_HEADS 4 certificates/S.barrier-K1-P1-N5 heads is 4, expected 1 to 3
formula MOST_STEPS 568 certificates/B19.sa2d-even take more than 567 steps
given_kernel MOST_OFFSETS 5 certificates/S.kernel-laplace-P2 heads is 6, expected 1 to 5
given_kernel MOST_ROWS 9 certificates/S.kernel-laplace-P2 F has 9 distinct rows, expected up to 8
grid_matrices MOST_NODES 5 certificates/B19.language-causal E.grid[0] is 5, expected 1 to 4
grid_matrices MOST_SHIFTS 3 certificates/B19.language-causal tensors.F has 3 shifts
head_dimension MOST_ROWS 2 tests/correct/head_dimension-limit-d2 2 rows, expected 1 to 1
identity LARGEST_SIZE 4 certificates/B19.sa2d-even h is 4, expected 1 to 3
identity MOST_ENTRIES 12 tests/correct/identity-edge-of-two-nodes tensors.N has 12 entries
lower_bound MOST_HEADS 9 certificates/S.content-K3-P16 heads is 9, expected 1 to 8
narrow_heads MOST_HEADS 5 tests/correct/narrow_heads-one-channel count is 5, expected 1 to 4
narrow_heads MOST_OFFSETS 3 tests/correct/narrow_heads-one-channel 3 offsets: up to 2
narrow_heads MOST_COORDINATES 3 tests/correct/narrow_heads-limit has 3 coordinates, expected up to 2
reading LARGEST_FILE 849 tests/correct/equality-stride-subsample-odd longer than 848 bytes
reading MOST_DIGITS 2 tests/correct/equality-dp1-K1 a number has 2 digits, expected up to 1
reading LARGEST_POSITION 2 certificates/S.polygon-K5-P1 ring[0][0] is 2, expected 0 to 1
reading LARGEST_ENTRY 3 certificates/C20.rank-h1-o3 value[2][0] is 3, expected -2 to 2
shared_map MOST_HEADS 3 certificates/S.lemma3-heads3-K1 3 heads, expected up to 2
total_variation MOST_TERMS 40 tests/correct/total_variation-bias-two-keys terms is 40, expected
total_variation MOST_SQUARES 8 tests/correct/total_variation-alpha-a-thousandth squares is 8
total_variation LARGEST_DENOMINATOR 1000 tests/correct/total_variation-bias-small sharpness 1/1000
total_variation LONGEST_DENOMINATOR 8 tests/correct/total_variation-bias-twice-the-distance 4/7
two_layers MOST_TOKENS 12 tests/correct/two_layers-margin-narrow 12 tokens, expected up to 11
two_layers MOST_HEADS 3 tests/correct/two_layers-margin-narrow second has 3 heads, expected 1 to 2
"""


@pytest.mark.parametrize("row", REACHED.strip().splitlines(), ids=lambda row: row[:30].rstrip())
def test_a_bound_allows_what_it_names_and_no_more(row, monkeypatch):
    module, constant, most, path, said = row.split(" ", 4)
    content = (ROOT / f"{path}.json").read_bytes()
    module = importlib.import_module(f"convattn_check.{module}")
    monkeypatch.setattr(module, constant, int(most))
    assert check(content).accepted
    monkeypatch.setattr(module, constant, int(most) - 1)
    verdict = check(content)
    assert verdict.code in ("range", "cost")
    assert said in verdict.reason
