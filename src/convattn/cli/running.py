"""What all command lines of the project share: exit codes, errors, signals, common options.

A command is a dataclass: its fields are the options, its docstring is the help, and a call does the
work and returns the exit code.

Exit codes: 0 for success, 1 for a failure that was found, 2 for wrong use, 70 for a defect in this
program, 130 when interrupted.
"""

import difflib
import os
import shutil
import signal
import subprocess
import sys
import threading
import traceback
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import fields
from importlib import import_module
from pathlib import Path
from types import FrameType
from typing import Annotated, Any, TypeVar

import tyro

from convattn.cli.interruption import INTERRUPTED, loading_can_be_interrupted
from convattn.extras import missing
from convattn.files import SCRIPT_FOLLOWS

T = TypeVar("T")  # a dataclass of arguments
SUCCESS, FAILED, WRONG_USE, DEFECT = 0, 1, 2, 70
# What JAX, NumPy and the loader of shared libraries say where memory ends, in lower case.
OUT_OF_MEMORY = (
    "resource_exhausted",
    "out of memory",
    "cannot allocate memory",
    "failed to map segment",
)
MIN_COLUMNS = 40  # in fewer, the layout of the help texts never ends


class UsageError(Exception):
    """The arguments cannot be carried out; the command line prints the message and exits 2."""


def cannot(verb: str, error: OSError) -> str:
    """That a file cannot be read or written, and why; an error without a file says it itself."""
    return f"cannot {verb} {error.filename}: {error.strerror}" if error.filename else str(error)


def option(metavar: str | None = None, **more: Any) -> Any:
    """An option whose help text says itself what holds without it."""
    return tyro.conf.arg(metavar=metavar, help_behavior_hint="", **more)


Flag = Annotated[bool, option()]
Sizes = tuple[int, ...]
Json = Annotated[Path | None, option("FILE", help="Write the numbers as JSON.")]
Proofs = Annotated[
    Path | None,
    option("DIR", help="Proofs <paper>/<name>.py; default: those of the checkout or wheel."),
]


def changed_options(command: Any) -> list[str]:
    """The options of a command that are not at their defaults, in their order, as typed."""
    changed = (field for field in fields(command) if getattr(command, field.name) != field.default)
    return [
        field.name.upper()
        if tyro.conf.Positional in getattr(field.type, "__metadata__", ())
        else f"--{field.name.replace('_', '-')}"
        for field in changed
    ]


def printable(text: str) -> str:
    """The text with escapes in place of what a terminal would obey; a file's name may hold it.

    >>> print(printable("a\\nb\\x1b[31m \\u202e δ"))
    a\\nb\\x1b[31m \\u202e δ
    """
    return "".join(char if char.isprintable() else ascii(char)[1:-1] for char in text)


def require_seed(seed: int) -> None:
    """Refuse a negative seed."""
    if seed < 0:
        raise UsageError(f"--seed got {seed}, but expected an integer ≥ 0")


def one_or_all(values: Sizes) -> int | Sizes:
    """One number alone, or all of them."""
    return values[0] if len(values) == 1 else values


def sizes_of(values: Sizes, name: str) -> int | Sizes:
    """One or two positive integers, or a `UsageError` that names the option."""
    if len(values) not in (1, 2) or min(values) < 1:
        raise UsageError(f"{name} got {values}, but expected one or two positive integers")
    return one_or_all(values)


def dispatch(
    words: Sequence[str], commands: Mapping[str, str], program: str, description: str
) -> int:
    """Run the command that the words name.

    Args:
        words: The command, of one word or two, then its options.
        commands: By name, `module:Dataclass`; only the module of the given command is imported.
        program: How help calls the program.
        description: What it is, for its help, which leaves out commands whose packages are missing.
    """
    config = (tyro.conf.FlagCreatePairsOff, tyro.conf.DisallowNone)
    name = next((n for n in (" ".join(words[:2]), *words[:1]) if n in commands), None)
    if name is not None:
        kind, rest = _load(commands[name]), words[len(name.split()) :]
        parsed = tyro.cli(kind, prog=f"{program} {name}", args=rest, config=config)
    elif words and not words[0].startswith("-"):
        group = [n.partition(" ")[2] for n in commands if n.startswith(f"{words[0]} ")]
        if group and words[1:2] not in (["--help"], ["-h"]):
            raise UsageError(
                f"expected {', '.join(group[:-1])} or {group[-1]} after {words[0]!r}, got "
                + (repr(words[1]) if words[1:] else "nothing")
            )
        if group:
            kinds = {name: _load(commands[f"{words[0]} {name}"]) for name in group}
            prog = f"{program} {words[0]}"
            return tyro.extras.subcommand_cli_from_dict(
                kinds, prog=prog, args=words[1:], config=config
            )()
        near = difflib.get_close_matches(words[0], commands, n=1, cutoff=0.5)
        hint = f", did you mean {near[0]!r}?" if near else ""
        raise UsageError(
            f"there is no command {words[0]!r}{hint} (commands: {', '.join(commands)})"
        )
    else:
        kinds = {}
        absent: dict[str, list[str]] = {}
        for name, target in commands.items():
            try:
                kinds[name] = _load(target)
            except ModuleNotFoundError as error:
                if not missing(error):
                    raise
                absent.setdefault(missing(error), []).append(repr(name))
        without = [f"Without {', '.join(names)}: {why}." for why, names in absent.items()]
        description = " ".join([description, *without])
        parsed = tyro.extras.subcommand_cli_from_dict(
            kinds, prog=program, description=description, args=words, config=config
        )
    return parsed()


def _load(target: str) -> Any:
    module, _, name = target.partition(":")
    return getattr(import_module(module), name)


def guarded(command: str, body: Callable[[], int | None]) -> int:
    """Run the body of a command: on a failure a message and a code, no traceback.

    Args:
        command: How messages call it.
        body: What it does; returns the exit code, or none for success.

    Returns:
        The exit code.
    """
    if shutil.get_terminal_size().columns < MIN_COLUMNS:
        os.environ["COLUMNS"] = str(MIN_COLUMNS)
    for name in ("stdout", "stderr"):
        if getattr(sys, name) is None:  # closed; the next file to be opened would take its place
            setattr(sys, name, open(os.devnull, "w"))  # noqa: SIM115
        stream = getattr(sys, name)
        if hasattr(stream, "reconfigure"):
            stream.reconfigure(errors="backslashreplace")  # an ASCII terminal must not end a run
    with loading_can_be_interrupted(command):
        code = _code_of(command, body)
    try:
        sys.stdout.flush()
    except OSError as error:
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        if isinstance(error, BrokenPipeError):
            return SUCCESS
        say(command, f"the output could not be written: {error.strerror}")
        return WRONG_USE
    return code


def run_program(
    program: str, arguments: type[T], body: Callable[[T], int], words: Sequence[str] | None
) -> int:
    """A script: its arguments are read, and each ValueError of its body is wrong use.

    Args:
        program: Its path, as messages call it.
        arguments: Their dataclass.
        body: What it does; returns the exit code.
        words: The words after the program; those of this process if None.

    Returns:
        The exit code.
    """

    def run() -> int:
        options = tyro.cli(arguments, args=words, prog=f"python {program}")
        try:
            return body(options)
        except ValueError as error:
            raise UsageError(str(error)) from error

    return guarded(program, run)


def say(command: str, text: str) -> None:
    """A line on standard error, whatever names it holds; where it cannot be written, nothing.

    The lines of a script that a message ends with stay lines.
    """
    sentence, follows, script = text.partition(SCRIPT_FOLLOWS)
    message = printable(sentence) + follows + "\n".join(map(printable, script.split("\n")))
    try:
        print(f"{command}: {message}", file=sys.stderr, flush=True)
    except OSError:
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stderr.fileno())


def _code_of(command: str, body: Callable[[], int | None]) -> int:
    try:
        return body() or SUCCESS
    except UsageError as error:
        say(command, str(error))
        return WRONG_USE
    except KeyboardInterrupt:
        say(command, "interrupted")
        return INTERRUPTED
    except BrokenPipeError:
        return SUCCESS
    except SystemExit as exit_:
        return exit_.code if isinstance(exit_.code, int) else WRONG_USE
    except OSError as error:
        say(command, str(error))
        return WRONG_USE
    except Exception as error:
        if isinstance(error, ModuleNotFoundError) and (reason := missing(error)):
            say(command, reason)
            return WRONG_USE
        if problem := _environment_problem(error):
            say(command, problem)
            return WRONG_USE
        if os.environ.get("CONVATTN_TRACEBACK"):
            traceback.print_exc()
        say(
            command,
            f"a defect in convattn, please report it: {error!r} "
            "(set CONVATTN_TRACEBACK=1 to see where)",
        )
        return DEFECT


def _environment_problem(error: BaseException) -> str | None:
    """Why the machine or its variables, not this program, caused the error; None if they did not.

    >>> _environment_problem(MemoryError())
    'out of memory; free memory, or use smaller or fewer inputs'
    >>> _environment_problem(ValueError("anything else"))
    """
    cause: BaseException | None = error
    while cause is not None:
        text = str(cause).lower()
        if isinstance(cause, MemoryError) or any(words in text for words in OUT_OF_MEMORY):
            return "out of memory; free memory, or use smaller or fewer inputs"
        cause = cause.__cause__ or cause.__context__
    if os.environ.get("JAX_PLATFORMS"):
        import jax

        try:
            jax.devices()
        except Exception:  # an AssertionError where a plugin is missing, else a RuntimeError
            return _platform_message()
    return None


def require_platform() -> None:
    """Raise `UsageError` if JAX cannot start on the platform of JAX_PLATFORMS.

    Another process tries it: one that has started JAX would keep a TPU from its workers.
    """
    if os.environ.get("JAX_PLATFORMS"):
        probe = [sys.executable, "-c", "import jax; jax.devices()"]
        if subprocess.run(probe, capture_output=True).returncode:
            raise UsageError(_platform_message())


def _platform_message() -> str:
    """What to do where JAX cannot start on the platform of JAX_PLATFORMS."""
    return (
        f"JAX_PLATFORMS={os.environ['JAX_PLATFORMS']!r}, but expected platforms that JAX can start "
        "on this machine; unset the variable, or set JAX_PLATFORMS=cpu"
    )


@contextmanager
def termination_raises() -> Iterator[None]:
    """Raise `SystemExit` on SIGTERM and SIGHUP meanwhile, as SIGINT raises `KeyboardInterrupt`.

    So a command that has started processes can end them first. A signal that is ignored or handled
    already is left so; outside the main thread, all are.
    """
    numbers = [getattr(signal, name) for name in ("SIGTERM", "SIGHUP") if hasattr(signal, name)]
    if threading.current_thread() is not threading.main_thread():
        numbers = []
    changed = [number for number in numbers if signal.getsignal(number) == signal.SIG_DFL]
    try:
        for number in changed:
            signal.signal(number, _end)
        yield
    finally:
        for number in changed:
            signal.signal(number, signal.SIG_DFL)


def _end(number: int, frame: FrameType | None) -> None:
    raise SystemExit(128 + number)
