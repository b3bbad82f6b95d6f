"""Writes the table of docs/note/note.tex: each row that it names, with what Coq has proved of it.

Usage: python scripts/note_table.py [--note docs/note/note.tex] [--output build/note/table.tex]

The rows are those of the commands \\row{...} in the note, in their order; their theorems and what
these cover stand in the proof files. A row that is not in the ledger is named as such in the table,
and on standard error.
"""

import argparse
import re
import sys
from pathlib import Path

from convattn_ledger import Claim, Evidence
from convattn_ledger.coq.axioms import ALLOWED
from convattn_ledger.coq.theorem_check import TheoremCheck
from convattn_ledger.discovery import load_claim

ROOT = Path(__file__).resolve().parents[1]
NAMES = """
· cdot  × times  ± pm  → to  ∞ infty  ≤ le  ≥ ge  ≠ ne  ≈ approx  ∈ in  ⊆ subseteq  ‖ Vert
⌈ lceil  ⌉ rceil  ⌊ lfloor  ⌋ rfloor  Σ sum  Π prod  ∏ prod  Δ Delta  Λ Lambda  Φ Phi
α alpha  β beta  γ gamma  δ delta  ε varepsilon  η eta  θ theta  κ kappa  λ lambda  μ mu  π pi
ρ rho  σ sigma  τ tau  φ varphi  χ chi  ω omega  Γ Gamma
"""  # what a proof file writes in Unicode, and its name in LaTeX
MATHEMATICS = {mark: f"\\{name} " for mark, name in re.findall(r"(\S) (\w+)", NAMES)}
MATHEMATICS |= {"²": "^2", "³": "^3", "₁": "_1", "₂": "_2", "−": "-"}
TEX_UNDERSCORE = r"\_\allowbreak "
SPECIAL = str.maketrans({mark: f"\\{mark}" for mark in "&%$#{}"})
RELATION = re.compile("[-=<>≤≥≠≈+±·×→−∈⊆]")
FORMULA = re.compile(f"[DFKMNPTmsz]|[0-9]+|[(]?[0-9]+[A-Za-z].*|Fz|.*[_^{''.join(MATHEMATICS)}].*")


def named_rows(note: str) -> list[str]:
    """The rows that a note names, in the order in which it first names them."""
    return list(dict.fromkeys(re.findall(r"\\row\{([A-Z][A-Z0-9]*\.\w+)\}", note)))


def claim_of(row: str) -> Claim | None:
    """The claim of a row of `proofs/sharpened/`, or none if there is no such file."""
    path = ROOT / "proofs" / "sharpened" / f"{row.removeprefix('S.')}.py"
    return load_claim(path)[0] if path.exists() else None


def as_latex(text: str) -> str:
    """Text of a proof file as LaTeX, with its formulas set as such.

    Raises:
        ValueError: For a character that `MATHEMATICS` lacks.
    """
    pieces: list[str] = []
    open_formula = False
    for word in text.translate(SPECIAL).split():
        core = word.rstrip(",.;:")
        is_formula = bool(FORMULA.fullmatch(core)) or (open_formula and RELATION.fullmatch(core))
        if open_formula and not is_formula:
            pieces[-1] += "$"
        pieces.append(formula(core) if is_formula else core)
        if is_formula and not open_formula:
            pieces[-1] = "$" + pieces[-1]
        open_formula = bool(is_formula) and core == word
        pieces[-1] += ("$" if is_formula and core != word else "") + word[len(core) :]
    latex = " ".join(pieces) + "$" * open_formula
    if not latex.isascii():
        mark = next(mark for mark in latex if not mark.isascii())
        raise ValueError(f"{mark!r} in {text!r} has no form in LaTeX: add it to MATHEMATICS here")
    return latex


def formula(word: str) -> str:
    """One word of a formula, such as `e^(-s/2)`."""
    word = re.sub(r"\^(?:\(([^)]*)\)|(-?\w+))", lambda m: f"^{{{m[1] or m[2]}}}", word)
    word = re.sub(r"_(?:\(([^)]*)\)|([A-Za-z0-9]+))", lambda m: f"_{{{m[1] or m[2]}}}", word)
    word = re.sub(r"[a-z]{2,}(?![a-z]*\()", lambda m: rf"\mathrm{{{m[0]}}}", word)
    word = re.sub(r"[a-z]{2,}(?=\()", lambda m: rf"\operatorname{{{m[0]}}}", word)
    return "".join(MATHEMATICS.get(mark, mark) for mark in word).strip()


def lines_of(row: str, claim: Claim | None) -> list[str]:
    """The lines of one row in the table: theorem, what it covers, what it does not."""
    label = rf"\hypertarget{{row:{row}}}{{\textsf{{{row}}}}}"
    if claim is None:
        return [rf"{label} & \multicolumn{{3}}{{l}}{{\textbf{{no row of the ledger}}}} \\"]
    theorems = theorems_of(claim)
    if not theorems:
        return [rf"{label} & --- & & all: on paper only \\"]
    lines = []
    for file, evidence in theorems:
        covers, _, missing = evidence.covers.partition("; not: ")
        cells = (as_latex(covers or "all"), as_latex(missing))
        lines.append(rf"{label} & {theorem_name(file)} & {' & '.join(cells)} \\")
        label = ""
    return lines


def theorems_of(claim: Claim) -> list[tuple[str, Evidence]]:
    """The file under `proofs/coq/` and the evidence of each theorem of a claim."""
    return [
        (item.check.file, item) for item in claim.evidence if isinstance(item.check, TheoremCheck)
    ]


def theorem_name(file: str) -> str:
    """A theorem has the name of its file; one of `sharpened/` is shown without the folder."""
    name = file.removeprefix("sharpened/").removesuffix(".v")
    return rf"\texttt{{{name.replace('_', TEX_UNDERSCORE)}}}"


def table(claims: dict[str, Claim | None]) -> str:
    """The definitions of the commands \\coqtable, \\onpaperrows and \\withaxioms."""
    on_paper = ", ".join(
        rf"\textsf{{{row}}}" for row, claim in claims.items() if claim and not theorems_of(claim)
    )
    files = [file for claim in claims.values() if claim for file, _ in theorems_of(claim)]
    with_axioms = ", ".join(theorem_name(file) for file in files if file in ALLOWED)
    head = r"row & theorem & covers & does not cover \\"
    return "\n".join(
        [
            "% Written by scripts/note_table.py from the proof files.",
            rf"\newcommand{{\onpaperrows}}{{{on_paper or 'none'}}}",
            rf"\newcommand{{\withaxioms}}{{{with_axioms or 'none'}}}",
            r"\newcommand{\coqtable}{%",
            r"\begin{longtable}{@{}l>{\raggedright}p{38mm}>{\raggedright}p{48mm}>{\raggedright\arraybackslash}p{43mm}@{}}",
            r"\caption{Rows of the ledger and their theorems in Coq.}\label{tab:coq}\\",
            rf"\toprule {head} \midrule \endfirsthead",
            rf"\toprule {head} \midrule \endhead",
            r"\bottomrule \endfoot",
            *(line for row, claim in claims.items() for line in lines_of(row, claim)),
            r"\end{longtable}}",
            "",
        ]
    )


def main() -> None:
    """Read the note and the rows that it names, and write the table."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--note", type=Path, default=ROOT / "docs" / "note" / "note.tex")
    parser.add_argument("--output", type=Path, default=ROOT / "build" / "note" / "table.tex")
    arguments = parser.parse_args()
    claims = {row: claim_of(row) for row in named_rows(arguments.note.read_text("utf-8"))}
    if missing := [row for row, claim in claims.items() if claim is None]:
        print(
            f"{arguments.note.name} names {', '.join(missing)}, which proofs/sharpened/ does not "
            "hold: add the rows or take them out of the note",
            file=sys.stderr,
        )
    arguments.output.parent.mkdir(parents=True, exist_ok=True)
    arguments.output.write_text(table(claims), "utf-8")


if __name__ == "__main__":
    main()
