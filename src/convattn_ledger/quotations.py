"""Quotations in proof files, compared word for word with the papers.

The texts of the papers are not in the repository. Instead of them it holds digests of all runs of
two, three and five words in a row, so a quotation stands in a paper if each of its runs does.
Formulas are set in many ways: what is no plain word of three letters or more is left out on both
sides.
"""

import hashlib
import re
import unicodedata
from collections.abc import Iterator

import numpy as np

LENGTHS = (2, 3, 5)  # of a run, in words
_WORD = re.compile(r"[a-z]{3,}")
_FORMULAS = (
    "mathbf text softmax span mhsa conv vect val out key qry rel abs pos max min mid log exp"
)
_OF_FORMULAS = frozenset(_FORMULAS.split())
_ELISION = re.compile(r"\.\.\.|…|\[[^\]]*\]")
_QUOTED = re.compile(r'"([^"]+)"')


def words(text: str) -> list[str]:
    """The plain words of a text, in lower case.

    >>> words("Lemma 2. Let softmax(A_q) of each pat-\\nchwise query¹ be one-hot")
    ['lemma', 'let', 'each', 'patchwise', 'query', 'one', 'hot']
    """
    text = unicodedata.normalize("NFKC", text).lower()
    text = re.sub(r"(?<=[a-z])-\s*\n\s*(?=[a-z])", "", text)
    tokens = (re.sub(r"\d+\W*$", "", part) for part in re.sub(r"[-–—/]", " ", text).split())
    plain = (part.strip(".,;:()[]{}*`†'\"“”‘’") for part in tokens)
    return [word for word in plain if _WORD.fullmatch(word) and word not in _OF_FORMULAS]


def quotations(text: str) -> Iterator[list[str]]:
    """The words of each quotation of two words or more, at elisions in parts.

    >>> list(quotations('It "attends to […] exactly one patch", as "SAME" does'))
    [['attends'], ['exactly', 'one', 'patch'], ['same']]
    """
    for quoted in _QUOTED.findall(text):
        for part in _ELISION.split(quoted):
            yield words(part)


def runs(text: list[str], length: int) -> Iterator[int]:
    """A digest of each run of so many words, in 32 bits."""
    for start in range(len(text) - length + 1):
        run = " ".join(text[start : start + length])
        yield int.from_bytes(hashlib.sha256(run.encode()).digest()[:4], "big")


def digests(texts: list[str]) -> np.ndarray:
    """Those of all runs of some texts, in order."""
    hashes = {run for text in map(words, texts) for n in LENGTHS for run in runs(text, n)}
    return np.array(sorted(hashes), np.uint32)


def stands(quotation: list[str], known: np.ndarray) -> bool:
    """Whether each run of a quotation is one of the texts'; a single word always is.

    >>> known = digests(["The right inductive bias for the first few layers"])
    >>> stands(["right", "inductive", "bias"], known), stands(["wrong", "inductive"], known)
    (True, False)
    """
    if len(quotation) < LENGTHS[0]:
        return True
    length = max(n for n in LENGTHS if n <= len(quotation))
    hashes = np.array(list(runs(quotation, length)), np.uint32)
    return bool(np.isin(hashes, known).all())
