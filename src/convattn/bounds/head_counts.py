"""What `convattn.heads` answers with: numbers of heads, each with the claim that proves it."""

from dataclasses import dataclass
from typing import Any

COUNTS = {  # the fields of `HeadRange`, and what they are called
    "necessary": "necessary",
    "bounded": "necessary with bounded value maps",
    "sufficient": "sufficient",
    "bounded_sufficient": "sufficient with bounded value maps",
}


class HeadCount(int):
    """A number of heads that knows why.

    Attributes:
        claim: The id in the ledger.
        basis: `"proved"` for all sizes, by the proof that the claim gives, or `"checked"` for this
            one, by the exact rank of one fixed kernel. Which clauses of a proof Coq has checked
            (the level PROVED) stands with the claim in the ledger.
        reason: A phrase.

    >>> count = HeadCount(9, "S.heads", "proved", "the rank of F")
    >>> count + 1, count.claim, count
    (10, 'S.heads', HeadCount(9, claim='S.heads', basis='proved'))
    """

    claim: str
    basis: str
    reason: str

    def __new__(
        cls, count: int, claim: str = "", basis: str = "proved", reason: str = ""
    ) -> "HeadCount":
        """An integer with its claim."""
        instance = super().__new__(cls, count)
        instance.claim, instance.basis, instance.reason = claim, basis, reason
        return instance

    def __getnewargs__(self) -> tuple[Any, ...]:
        return (int(self), self.claim, self.basis, self.reason)

    def __repr__(self) -> str:
        return f"HeadCount({int(self)}, claim={self.claim!r}, basis={self.basis!r})"

    def __str__(self) -> str:
        return str(int(self))

    def as_dict(self) -> dict[str, Any]:
        """What JSON can hold."""
        return {
            "count": int(self),
            "claim": self.claim,
            "basis": self.basis,
            "reason": self.reason,
        }


@dataclass(frozen=True)
class HeadRange:
    """So many heads are necessary for the worst kernel, so many suffice for every kernel.

    Attributes:
        necessary, sufficient: In all layers together.
        difference: Empty where both agree, else a sentence that says what is open.
        bounded, bounded_sufficient: In the limit, where value maps may grow without bound: so many
            are necessary if they stay bounded, and so many suffice then; None where that is not
            known to be more than `necessary`, and not more than `sufficient`.
        each: The heads of each of two layers, of those that suffice; None for one layer.
    """

    necessary: HeadCount
    sufficient: HeadCount
    difference: str = ""
    bounded: HeadCount | None = None
    bounded_sufficient: HeadCount | None = None
    each: tuple[int, int] | None = None

    def as_dict(self) -> dict[str, Any]:
        """What JSON can hold."""
        maps = {"bounded": self.bounded, "bounded_sufficient": self.bounded_sufficient}
        return {
            "necessary": self.necessary.as_dict(),
            "sufficient": self.sufficient.as_dict(),
            "difference": self.difference,
            **{name: None if count is None else count.as_dict() for name, count in maps.items()},
            **({} if self.each is None else {"each": self.each}),
        }


@dataclass(frozen=True)
class HeadCounts:
    """The answer of `convattn.heads`.

    Attributes:
        offsets: How many token offsets the convolution reads.
        rank: The rank of the flattened kernel F of the worst kernel; `limit` and `exact`, the
            counts.
        regime: The sentences that say for which layers they hold.
        groups: How many value maps are necessary, where heads share them; else None.
    """

    offsets: int
    rank: int
    limit: HeadRange
    exact: HeadRange
    regime: dict[str, str]
    groups: HeadCount | None = None

    def rows(self) -> list[tuple[str, HeadCount]]:
        """Each count with what it is: "limit: necessary", "exact: sufficient"."""
        regimes = {"limit": self.limit, "exact": self.exact}
        counts = [
            (f"{regime}: {words}", getattr(numbers, name))
            for regime, numbers in regimes.items()
            for name, words in COUNTS.items()
        ]
        counts.append(("value maps: necessary", self.groups))
        return [(words, count) for words, count in counts if count is not None]

    def __str__(self) -> str:
        """A table: a line for each count, with its claim."""
        rows = self.rows()
        width = max(len(words) for words, _ in rows)
        return "\n".join(
            f"{words:<{width}}  {int(count):>6}  {count.claim:<9}  {count.basis:<7}  {count.reason}"
            for words, count in rows
        )

    def as_dict(self) -> dict[str, Any]:
        """What JSON can hold."""
        return {
            "offsets": self.offsets,
            "rank": self.rank,
            "limit": self.limit.as_dict(),
            "exact": self.exact.as_dict(),
            "regime": dict(self.regime),
            **({} if self.groups is None else {"groups": self.groups.as_dict()}),
        }
