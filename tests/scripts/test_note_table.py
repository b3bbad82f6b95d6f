"""The table of docs/note/note.tex says of each row what its proof file says."""

import importlib.util
import re
import sys
from pathlib import Path
from types import SimpleNamespace

import pytest

from convattn_ledger.evidence import proved

ROOT = Path(__file__).resolve().parents[2]
NOTE = (ROOT / "docs" / "note" / "note.tex").read_text("utf-8")


@pytest.fixture(scope="module")
def script():
    spec = importlib.util.spec_from_file_location("note_table", ROOT / "scripts" / "note_table.py")
    module = importlib.util.module_from_spec(spec)
    sys.modules[spec.name] = module
    spec.loader.exec_module(module)
    yield module
    del sys.modules[spec.name]


def test_every_row_that_the_note_names_is_in_the_ledger(script):
    rows = script.named_rows(NOTE)
    assert len(rows) > 15
    missing = [row for row in rows if script.claim_of(row) is None]
    assert not missing, f"docs/note/note.tex names {missing}, which proofs/sharpened/ does not hold"


def test_rows_are_named_once_and_in_order(script):
    note = r"\row{S.pad} \row{S.finite}, \row{S.pad} \newcommand{\row}[1]{#1}"
    assert script.named_rows(note) == ["S.pad", "S.finite"]


def test_a_row_shows_its_theorems_with_what_they_cover(script):
    covers = "(1), for ρ > 0; not: (2), nor limits"
    claim = SimpleNamespace(
        evidence=(proved("sharpened/depth.v", covers=covers), proved("sharpened/depth_limit.v"))
    )
    assert script.lines_of("S.depth", claim) == [
        r"\hypertarget{row:S.depth}{\textsf{S.depth}} & \texttt{depth} & "
        r"(1), for $\rho > 0$ & (2), nor limits \\",
        r" & \texttt{depth\_\allowbreak limit} & all &  \\",
    ]


def test_a_row_without_theorem_is_on_paper_and_one_that_is_missing_is_named(script):
    table = script.table({"S.paper": SimpleNamespace(evidence=()), "S.gone": None})
    assert r"\newcommand{\onpaperrows}{\textsf{S.paper}}" in table
    assert re.search(r"S\.paper\}\} & --- .* on paper only", table)
    assert re.search(r"S\.gone\}\} & .*no row of the ledger", table)


def test_theorems_with_axioms_are_named(script):
    evidence = (proved("sharpened/saturation.v"), proved("sharpened/saturation_reals.v"))
    table = script.table({"S.saturation": SimpleNamespace(evidence=evidence)})
    assert r"\newcommand{\withaxioms}{\texttt{saturation\_\allowbreak reals}}" in table


@pytest.mark.parametrize(
    ("text", "latex"),
    [
        ("m ≥ P, D_in·D_out = 1", r"$m \ge P$, $D_{\mathrm{in}}\cdot D_{\mathrm{out}} = 1$"),
        ("the bound N e^(-s/2)", r"the bound $N e^{-s/2}$"),
        ("ρ + 1 heads, 50 % of N", r"$\rho + 1$ heads, $50$ \% of $N$"),
        ("the bound 1 - θ(α)^-axes", r"the bound $1 - \theta (\alpha )^{-\mathrm{axes}}$"),
        ("N_H ≥ ρ, and ≥ ρ + 1 else", r"$N_{H} \ge \rho$, and $\ge \rho + 1$ else"),
        ("nor Σ_(i>N) σ_i²", r"nor $\sum _{i>N} \sigma _{i}^2$"),
        (
            "max(rk_in, rk_out)",
            r"$\operatorname{max}(\mathrm{rk}_{\mathrm{in}}$, $\mathrm{rk}_{\mathrm{out}})$",
        ),
        ("a token's weights - all of them", "a token's weights - all of them"),
    ],
)
def test_formulas_are_set_as_such(script, text, latex):
    assert script.as_latex(text) == latex


def test_a_character_without_a_form_in_latex_is_refused(script):
    with pytest.raises(ValueError, match="'ℵ' in 'ℵ heads' has no form"):
        script.as_latex("ℵ heads")
