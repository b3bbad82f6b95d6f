"""What Coq says against a file, as a failure with a place and a remedy."""

import re
from pathlib import Path

from convattn.ledger.coq.failure import Failure

_PLACE = re.compile(r'^File "(?:\./)?(?P<file>[^"]+)", line (?P<line>\d+)', re.MULTILINE)
_STALE = re.compile(r"inconsistent\s+assumptions|Cannot\s+load|bad\s+version\s+number|corrupted")
_ERROR_LINES = 8


def refused(file: str, said: str, output: Path) -> Failure:
    """Coq's message as a failure; warnings before the error are left out.

    Args:
        file: The file that it is about, unless it names one.
        said: The message.
        output: The folder of the compiled files.

    Example:
        >>> said = 'File "./p/a.v", line 3, characters 0-5:\\nError: No.'
        >>> str(refused("p/a.v", said, Path("out")))
        'p/a.v:3: Coq refuses it: Error: No.: mend the statement or the proof'
    """
    places = list(_PLACE.finditer(said))
    if places:
        file, line = places[-1]["file"], int(places[-1]["line"])
        said = said[places[-1].end() :].partition("\n")[2]
    else:
        line = 0
    lines = [text.rstrip() for text in said.strip().splitlines()]
    text = " ".join(" ".join(lines[:_ERROR_LINES]).split()) + " ..." * (len(lines) > _ERROR_LINES)
    remedy = remedy_for(said, output, "mend the statement or the proof")
    return Failure(file, line, f"Coq refuses it: {text}", remedy)


def remedy_for(said: str, output: Path, otherwise: str) -> str:
    """What to do about a message of Coq's: compile anew where compiled files do not fit together.

    So it is after a library was installed anew, whose version the system does not know.

    Args:
        said: The message.
        output: The folder of the compiled files.
        otherwise: The remedy for any other message.

    Example:
        >>> remedy_for("Error: A makes inconsistent assumptions over B", Path("out"), "mend it")
        'a library has changed since it was compiled: remove out and run again'
        >>> remedy_for("Error: Syntax error", Path("out"), "mend it")
        'mend it'
    """
    if _STALE.search(said):
        return f"a library has changed since it was compiled: remove {output} and run again"
    return otherwise
