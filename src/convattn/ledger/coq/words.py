"""The words that assume what is not proved, or weaken the kernel, wherever they stand."""

import re

_PROVE = "prove it, or leave it out"
_KERNEL = "leave it out: the kernel must check everything"
_WHOLE = "leave it out: what is checked must be what stands in the scanned files"
_FORBIDDEN = {
    "Admitted": "finish the proof",
    "Admit Obligations": "finish the proof",
    "admit": "finish the proof",
    "give_up": "finish the proof",
    "Abort": "leave the draft out",
    "Axiom": _PROVE,
    "Axioms": _PROVE,
    "Parameter": _PROVE,
    "Parameters": _PROVE,
    "Conjecture": _PROVE,
    "Conjectures": _PROVE,
    "Primitive": _PROVE,
    "Declare Module": _PROVE,
    "Declare Instance": _PROVE,
    "Unset Guard Checking": _KERNEL,
    "Unset Positivity Checking": _KERNEL,
    "Unset Universe Checking": _KERNEL,
    "Set Definitional UIP": _KERNEL,
    "bypass_check": _KERNEL,
    "Declare ML Module": _WHOLE,
    "Add LoadPath": _WHOLE,
    "Add Rec LoadPath": _WHOLE,
    "Add ML Path": _WHOLE,
    "Load": _WHOLE,
    "Redirect": _WHOLE,
    "Extraction": _WHOLE,
}
WORDS = re.compile(
    r"(?<![\w'])(?:"
    + "|".join(words.replace(" ", r"\s+") for words in sorted(_FORBIDDEN, key=len, reverse=True))
    + r")(?![\w'])"
)


def remedy_for(words: str) -> str:
    """What to do about words that `WORDS` has matched.

    Example:
        >>> remedy_for("Unset  Guard Checking")
        'leave it out: the kernel must check everything'
    """
    return _FORBIDDEN[" ".join(words.split())]
