"""Values that Coq computes from the definitions in the proofs, as Python's."""

import ast
import re
import subprocess
from collections.abc import Callable, Iterable, Sequence
from fractions import Fraction
from pathlib import Path
from typing import Any

HEADER = """From Coq Require Import String BinInt.
From mathcomp Require Import all_ssreflect all_algebra ssrZ.
From Convattn Require Import {modules}.
Import GRing.Theory.
Delimit Scope Z_scope with binary.
Open Scope ring_scope.
Set Printing Width 1000000.
Set Printing Depth 1000000.
"""
WARNINGS = "-notation-overridden,-ambiguous-paths"
MARK = "7654321"


class Evaluator:
    """A running Coq with the proofs loaded, which computes one term after another."""

    def __init__(self, compiled: Path, modules: Sequence[str]) -> None:
        """Load `modules`, such as `bridge.values`, from the folder of the compiled proofs."""
        command = ["coqtop", "-q", "-w", WARNINGS, "-Q", str(compiled), "Convattn"]
        self._process = subprocess.Popen(
            command,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
        )
        said = self._answer(HEADER.format(modules=" ".join(modules)))
        if "Error" in said:
            self.close()
            raise ValueError(f"Coq could not load {modules}: {said}")

    def evaluate(self, term: str) -> Any:
        """`Eval vm_compute` of a term: a natural, a boolean, a pair or a sequence of these.

        Raises:
            ValueError: With Coq's words where the term is refused, and for a value that is not of
                these forms.
        """
        said = self._answer(f"Eval vm_compute in ({term}).\n")
        match = re.search(r"= (.*)\n     : ", said)
        if match is None:
            raise ValueError(f"Coq was given {term} and said: {said}")
        return read_value(match.group(1))

    def _answer(self, lines: str) -> str:
        """What Coq prints until it has read `lines`."""
        self._process.stdin.write(f'{lines}Check "{MARK}"%string.\n')
        self._process.stdin.flush()
        said = []
        for line in self._process.stdout:
            if MARK in line:
                return "".join(said)
            said.append(line)
        raise ValueError(f"Coq ended: {''.join(said)}")

    def close(self) -> None:
        self._process.communicate("Quit.\n", timeout=30)


def read_value(text: str) -> Any:
    """One printed value.

    >>> read_value("[:: (true, 3%N); (false, 0%N)]")
    [(True, 3), (False, 0)]
    """
    plain = re.sub(r"%[A-Za-z_]+", "", text).replace("[::", "[").replace(";", ",")
    plain = re.sub(r"\btrue\b", "True", re.sub(r"\bfalse\b", "False", plain))
    return ast.literal_eval(plain)


def as_fraction(printed: tuple[bool, int, int]) -> Fraction:
    """What `fraction` of bridge/values.v prints: sign, numerator, denominator."""
    negative, numerator, denominator = printed
    return Fraction(-numerator if negative else numerator, denominator)


def rational(value: Fraction) -> str:
    """A fraction as a term of type `rat`."""
    sign = "- " if value < 0 else ""
    return f"({sign}({abs(value.numerator)}%:R / {value.denominator}%:R) : rat)"


def whole(value: int) -> str:
    """A whole number as a term of type `int`."""
    return f"(- {-value}%:Z)" if value < 0 else f"{value}%:Z"


def binary(value: int) -> str:
    """A whole number as a term of type `Z`."""
    return f"({value})%binary"


def listed(terms: Iterable[str]) -> str:
    """A sequence of terms."""
    return f"[:: {'; '.join(terms)}]"


def paired(values: Sequence[int], term: Callable[[int], str] = whole) -> str:
    """Two whole numbers as a pair of terms."""
    first, second = values
    return f"({term(first)}, {term(second)})"
