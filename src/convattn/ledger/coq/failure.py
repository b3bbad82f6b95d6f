"""What is wrong with a proof, in one line that says where, what, and what to do about it."""

from dataclasses import dataclass


@dataclass(frozen=True)
class Failure:
    """Why the proofs do not pass.

    Attributes:
        file: The file, under ``proofs/coq/`` or, for a claim, under ``proofs/``.
        line: The line, from 1; 0 if no line is to blame.
        found: What was found there.
        remedy: What to do about it.

    Example:
        >>> print(Failure("sharpened/finite.v", 30, "'Admitted'", "finish the proof"))
        sharpened/finite.v:30: 'Admitted': finish the proof
    """

    file: str
    line: int
    found: str
    remedy: str

    def __str__(self) -> str:
        place = f"{self.file}:{self.line}" if self.line else self.file
        return f"{place}: {self.found}: {self.remedy}"
