"""The processes of ``coqc``: one for each file, and none of them outlives the run."""

import subprocess
import threading
import time
from pathlib import Path

from convattn.ledger.coq.project import Project
from convattn.ledger.coq.toolchain import Coq

LIMIT = 600.0  # seconds for one file; the slowest takes a tenth of that


class Compilers:
    """Compiles files of one folder, from as many threads as there are.

    Whatever this process lets its children inherit, such as the lock on the folder, ``coqc`` holds
    for as long as it runs.
    """

    def __init__(self, coq: Coq, project: Project, tree: Path) -> None:
        """Compile what stands in ``tree`` with the options of the project."""
        self._words = [coq.coqc, "-q", *project.options]
        self._tree = tree
        self._guard = threading.Lock()
        self._running: set[subprocess.Popen[str]] = set()
        self._stopped = False

    def compile(self, file: str) -> tuple[float, str]:
        """Compile a file.

        Args:
            file: Its path under the folder.

        Returns:
            Seconds, and what Coq says against the file.
        """
        started = time.perf_counter()
        with self._guard:
            if self._stopped:
                return 0.0, "the run was ended"
            process = subprocess.Popen(
                [*self._words, file],
                cwd=self._tree,
                stdin=subprocess.DEVNULL,
                stdout=subprocess.PIPE,
                stderr=subprocess.PIPE,
                encoding="utf-8",
                errors="replace",
                close_fds=False,
            )
            self._running.add(process)
        try:
            _, said = process.communicate(timeout=LIMIT)
        except subprocess.TimeoutExpired:
            process.kill()
            process.communicate()
            return LIMIT, f"it does not compile within {LIMIT:g} s"
        finally:
            with self._guard:
                self._running.discard(process)
        taken = round(time.perf_counter() - started, 2)
        if process.returncode:
            return taken, said.strip() or f"coqc ended with exit code {process.returncode}"
        if not (self._tree / file).with_suffix(".vo").is_file():
            return taken, "coqc says nothing against it, but leaves no compiled file"
        return taken, ""

    def stop(self) -> None:
        """Kill what runs, and start nothing more."""
        with self._guard:
            self._stopped = True
            for process in self._running:
                process.kill()
