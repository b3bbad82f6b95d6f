"""The commands as the command line sees them: options, defaults and help.

Each function only names its options and passes them on; the work is in `convattn.cli`, in the
module of that name, which is imported when the command is given.
"""

from collections.abc import Callable
from typing import Any

from convattn.cli.arguments.convert import convert
from convattn.cli.arguments.evidence import audit, check, ledger, verify
from convattn.cli.arguments.heads import heads
from convattn.cli.arguments.prove import prove

COMMANDS: dict[str, Callable[..., Any]] = {
    "verify": verify,
    "prove": prove,
    "check": check,
    "audit": audit,
    "convert": convert,
    "heads": heads,
    "ledger": ledger,
}
