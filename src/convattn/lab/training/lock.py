"""One process at a time trains in a folder (`convattn.files`)."""

from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path

from convattn.files import FILE_NAME as FILE_NAME
from convattn.files import InUse, hold_folder
from convattn.lab.training.failures import FolderInUse


@contextmanager
def lock_folder(folder: Path) -> Iterator[None]:
    """Hold the folder of a run; it is made if it is missing.

    Raises:
        FolderInUse: If another process, or another call in this one, holds it.
    """
    folder.mkdir(parents=True, exist_ok=True)
    with ExitStack() as stack:
        try:
            stack.enter_context(hold_folder(folder))
        except InUse as process:
            raise FolderInUse(
                f"process {process} is training in {folder}; wait for its end, stop it, or take "
                "another folder"
            ) from process
        yield
