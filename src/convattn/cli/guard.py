"""What every command line of the project does with failures: a message, a code, no traceback.

Exit codes: 0 for success, 1 for a failure that was found, 2 for wrong use, 70 for a defect in this
program, 130 when interrupted.
"""

import os
import sys
import traceback
from collections.abc import Callable

from convattn.cli.usage import UsageError

SUCCESS, WRONG_USE, DEFECT, INTERRUPTED = 0, 2, 70, 130


def guarded(command: str, body: Callable[[], int]) -> int:
    """Run the body of a command.

    Args:
        command: How messages call it.
        body: What it does; returns the exit code.

    Returns:
        The exit code.
    """
    for stream in (sys.stdout, sys.stderr):
        if hasattr(stream, "reconfigure"):
            stream.reconfigure(errors="backslashreplace")  # an ASCII terminal must not end a run
    try:
        code = body()
        sys.stdout.flush()
        return code
    except UsageError as error:
        print(f"{command}: {error}", file=sys.stderr)
        return WRONG_USE
    except KeyboardInterrupt:
        print(f"{command}: interrupted", file=sys.stderr)
        return INTERRUPTED
    except BrokenPipeError:
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return SUCCESS
    except SystemExit as exit_:
        return exit_.code if isinstance(exit_.code, int) else WRONG_USE
    except OSError as error:
        print(f"{command}: {error}", file=sys.stderr)
        return WRONG_USE
    except Exception as error:
        if os.environ.get("CONVATTN_TRACEBACK"):
            traceback.print_exc()
        print(
            f"{command}: a defect in convattn, please report it: {error!r} "
            "(set CONVATTN_TRACEBACK=1 to see where)",
            file=sys.stderr,
        )
        return DEFECT
