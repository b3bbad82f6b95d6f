"""Choosing what to verify: claims by id or pattern, evidence by level and speed."""

import difflib
from collections.abc import Collection, Sequence
from dataclasses import dataclass
from fnmatch import fnmatchcase

from convattn_ledger.claim import Evidence, Level
from convattn_ledger.discovery import Proof


@dataclass(frozen=True)
class Selected:
    """A proof and the evidence of it that is to be run.

    Attributes:
        proof: The proof, possibly one with a problem.
        evidence: What to run, in the claim's order.
        problem: Why the claim fails before anything is run; empty if it does not.
        required: The levels that must be reached; empty unless all its evidence is run.
    """

    proof: Proof
    evidence: tuple[Evidence, ...]
    problem: str = ""
    required: frozenset[Level] = frozenset()


class NothingSelected(ValueError):
    """The selection is empty."""


def matching(proofs: Sequence[Proof], patterns: Sequence[str]) -> list[Proof]:
    """The proofs whose claim matches one of the patterns; all of them if there are none.

    Args:
        proofs: What was discovered.
        patterns: Ids, or shell patterns such as ``C20.*``.

    Raises:
        NothingSelected: If a pattern matches nothing; names the closest ids.
    """
    every_name = {name for proof in proofs for name in _names(proof)}
    for pattern in patterns:
        if not any(fnmatchcase(name, pattern) for name in every_name):
            folded = {name.casefold(): name for name in sorted(every_name)}
            near = difflib.get_close_matches(pattern.casefold(), folded, n=3, cutoff=0.4)
            closest = ", ".join(folded[name] for name in near) or "none is similar"
            broken = sum(bool(proof.problem) for proof in proofs)
            raise NothingSelected(
                f"no claim matches {pattern!r}; closest ids: {closest}"
                + (f"; {broken} proof file(s) could not be loaded" if broken else "")
            )

    def chosen(proof: Proof) -> bool:
        return any(fnmatchcase(name, pattern) for name in _names(proof) for pattern in patterns)

    return [proof for proof in proofs if not patterns or chosen(proof)]


def select(
    proofs: Sequence[Proof], levels: Collection[Level] = (), quick: bool = False
) -> tuple[list[Selected], int]:
    """Choose the evidence to run.

    Args:
        proofs: The claims to verify.
        levels: The levels to run; all of them if empty.
        quick: Whether to run quick evidence only.

    Returns:
        What is selected, and how many claims were left out for having none of that evidence.

    Raises:
        NothingSelected: If no claim has evidence of these levels.
    """
    selected: list[Selected] = []
    left_out = 0
    for proof in proofs:
        if proof.problem or proof.claim is None:
            selected.append(Selected(proof, (), proof.problem))
            continue
        available = [item for item in proof.claim.evidence if item.quick or not quick]
        evidence = tuple(item for item in available if not levels or item.level in levels)
        if quick and not available:
            problem = "no evidence is marked quick: every claim needs some that is"
            selected.append(Selected(proof, (), problem))
        elif not evidence:
            left_out += 1
        else:
            full = not levels and not quick
            required = proof.claim.required_levels if full else frozenset()
            selected.append(Selected(proof, evidence, required=required))
    if left_out and not any(item.evidence for item in selected):
        names = ", ".join(level.name for level in sorted(levels, reverse=True))
        raise NothingSelected(
            f"none of the {len(proofs)} selected claims has {'quick ' * quick}evidence of level "
            f"{names}"
        )
    return selected, left_out


def _names(proof: Proof) -> set[str]:
    return {proof.label} | ({proof.claim.id} if proof.claim else set())
