"""The folder in which ``convattn prove`` compiles: refused before the work if it will not do."""

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from convattn.cli.output import require_writable
from convattn.cli.running import UsageError
from convattn.files import InUse, hold_folder
from convattn.ledger.coq.build import ForeignFiles
from convattn.ledger.locations import checkout, coq_directory


def output_folder(output: Path | None, coq: Path | None) -> Path:
    """Where to compile; nothing is made yet.

    Args:
        output: What ``--output`` names.
        coq: What ``--coq`` names.

    Raises:
        UsageError: If it is no directory, or not apart from the sources.
    """
    root = checkout()
    if output is None and root is None:
        raise UsageError("outside a checkout, --output must say where to compile")
    target = output or Path(root or "", "build", "prove")
    if target.exists() and not target.is_dir():
        raise UsageError(f"--output got {target}, which is not a directory")
    try:
        sources, resolved = (coq or coq_directory()).resolve(), target.resolve()
        copies = (resolved / "coq").resolve()
    except (OSError, RuntimeError) as error:  # a loop of links
        raise UsageError(f"--output got {target}, which cannot be resolved: {error}") from error
    if sources in (resolved, copies, *resolved.parents, *copies.parents) or copies in (
        *sources.parents,
    ):
        raise UsageError(f"--output got {target}, but the sources {sources} must stand apart of it")
    return target


@contextmanager
def held(target: Path) -> Iterator[None]:
    """Make the folder, and hold it against other runs.

    Args:
        target: What `output_folder` returned.

    Raises:
        UsageError: If it cannot be made or written, is not ours, or another run is at work in it.
    """
    try:
        target.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        reason = f"which cannot be made: {error.strerror}; name another folder"
        raise UsageError(f"--output got {target}, {reason}") from error
    for name in ("lock", "compiled.json", "report.json"):
        require_writable(target / name, "--output")
    if (target / "lock").is_symlink():
        raise UsageError(f"--output got {target}, but its lock is a symbolic link; remove it")
    for name in ("coq", "assumptions"):
        path = target / name
        if (path.exists() or path.is_symlink()) and not path.is_dir():
            raise UsageError(f"--output got {target}, but {path} is not a directory; remove it")
    try:
        with hold_folder(target, inherited=True):
            yield
    except InUse as error:
        raise UsageError(
            f"--output got {target}, but another convattn prove is running in it (process "
            f"{error.process}, or a coqc that it has started); wait for its end, or name another "
            "folder"
        ) from error
    except ForeignFiles as error:
        raise UsageError(f"--output got {target}, but {error}; name another folder") from error
