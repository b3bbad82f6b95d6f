"""The axioms that a theorem may stand on: none, but for those about real numbers.

Coq's real numbers are built with three axioms, and their library uses classical logic besides; that
they are a field of Mathematical Components takes Hilbert's choice. Axioms are named in
full, since a file of the proofs may bear the name of a library's file.
"""

from collections.abc import Collection

from convattn_ledger.coq.sources import Failure

REALS = "Coq's real numbers"
CLASSICAL = "classical logic"
CHOICE = "choice"
FAMILIES: dict[str, frozenset[str]] = {
    REALS: frozenset(
        {
            "Coq.Reals.ClassicalDedekindReals.sig_forall_dec",
            "Coq.Reals.ClassicalDedekindReals.sig_not_dec",
            "Coq.Logic.FunctionalExtensionality.functional_extensionality_dep",
        }
    ),
    CLASSICAL: frozenset({"Coq.Logic.Classical_Prop.classic"}),
    CHOICE: frozenset({"Coq.Logic.Epsilon.epsilon_statement"}),
}
# The files of theorems on real numbers, and what each of them stands on.
ALLOWED: dict[str, tuple[str, ...]] = {
    "cordonnier2020/alpha46.v": (REALS, CLASSICAL),
    "sharpened/saturation_reals.v": (REALS, CLASSICAL, CHOICE),
    "sharpened/vit_reals.v": (REALS, CLASSICAL, CHOICE),
}
CLOSED = "closed under the global context"


def stated(file: str) -> str:
    """What a file's theorem may stand on, in words.

    Example:
        >>> stated("sharpened/finite.v")
        'closed under the global context'
    """
    allowed = ALLOWED.get(file, ())
    return f"axioms of {', '.join(allowed)}" if allowed else CLOSED


def judge(file: str, line: int, assumptions: Collection[str]) -> list[Failure]:
    """What is wrong with the axioms, by their full names, that Coq's kernel found.

    Example:
        >>> judge("p/a.v", 3, ["cheat"])[0].found
        "the theorem stands on 'cheat'"
    """
    allowed = ALLOWED.get(file, ())
    known: frozenset[str] = frozenset().union(*(FAMILIES[family] for family in allowed))
    failures = [
        Failure(
            file,
            line,
            f"the theorem stands on {name!r}",
            "prove it without; allowed here: " + (", ".join(allowed) or "no axiom at all"),
        )
        for name in assumptions
        if name not in known
    ]
    failures += [
        Failure(
            file,
            line,
            f"the theorem stands on no axiom of {family}",
            "take that family out of the file's row in ledger/coq/axioms.py",
        )
        for family in allowed
        if not FAMILIES[family] & set(assumptions)
    ]
    return failures
