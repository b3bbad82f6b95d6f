"""What a verification has done, so that one that was killed goes on where it was.

Each piece of evidence that passes is a line of a file of the user's cache. The file's name is a
digest of all that the result depends on: the sources of the package and of the checker, the proofs,
the certificates, the report of `convattn prove`, the versions, the machine, the settings of JAX and
the seed. So nothing of another state of the sources is taken over, and from the moment that one of
these files is written nothing more is kept, also if it is then put back: a worker may have loaded
it in between. What failed or was not run is run again, and so is one piece at least. A verification
that ends by itself removes the file.
"""

import hashlib
import importlib.metadata
import json
import os
import stat
import sys
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from pathlib import Path

from convattn.files import open_inside, read_file
from convattn_ledger.environment import host_environment
from convattn_ledger.worker import Result

PACKAGES = ("convattn", "convattn_check", "convattn_ledger", "convattn_lab")
SETTINGS = ("JAX_", "XLA_", "CUDA_", "TPU_", "OPENBLAS_", "OMP_")
CONTINUED = "[from a verification that was ended] "


@dataclass
class Journal:
    """The pieces of evidence that have passed, by claim and name.

    Attributes:
        path: The file.
        folders: What the results depend on, each a folder or a file.
        files: The files in them when the journal was named, as `_files` tells them.
        changed: One of them that has changed since: the journal has ended.
    """

    path: Path
    folders: tuple[Path, ...] = ()
    files: Mapping[str, tuple[int, ...]] = field(default_factory=dict)
    changed: str = ""

    @classmethod
    def of(cls, folders: Iterable[Path], settings: object) -> "Journal":
        """The journal of this state of the sources and settings.

        Args:
            folders: Proofs, certificates, and what else is read; each is a folder or a file.
            settings: What else the results depend on, such as the seed.
        """
        digest = hashlib.sha256(repr((settings, host_environment(), sys.version)).encode())
        for variable in sorted(name for name in os.environ if name.startswith(SETTINGS)):
            digest.update(f"{variable}={os.environ[variable]}\n".encode())
        packages = {f"{each.name}=={each.version}" for each in importlib.metadata.distributions()}
        digest.update("\n".join(sorted(packages)).encode())
        source = Path(__file__).resolve().parents[1]
        folders = (*(source / package for package in PACKAGES), *folders)
        files = _files(folders)  # before they are read
        for file in sorted(files):
            digest.update(f"\n{file}\n".encode())
            digest.update(hashlib.sha256(Path(file).read_bytes()).digest())
        cache = Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache")
        path = cache / "convattn" / f"verify-{digest.hexdigest()[:32]}.jsonl"
        return cls(path, folders, files)

    def read(self) -> dict[tuple[str, str], Result]:
        """The results that are kept, if no file has changed; a line that a kill cut is left out."""
        if self._has_ended():
            return {}
        try:
            lines = read_file(self.path).decode("utf-8", "replace").splitlines()
        except OSError:
            return {}
        results = {}
        for line in lines:
            try:
                claim, name, detail, seconds = json.loads(line)
                result = Result(True, CONTINUED + detail, float(seconds))
            except (ValueError, TypeError):
                continue
            results[claim, name] = result
        return results

    def add(self, claim: str, name: str, result: Result) -> None:
        """Keep a result that passed, if no file has changed and the cache can be written."""
        if not result.passed or self._has_ended():
            return
        line = json.dumps([claim, name, result.detail, result.seconds]) + "\n"
        try:
            self.path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
            descriptor = open_inside(self.path)
        except (OSError, ValueError):
            return
        try:
            os.write(descriptor, line.encode("utf-8"))
        except OSError:
            pass
        finally:
            os.close(descriptor)

    def remove(self) -> None:
        """Forget everything."""
        self.path.unlink(missing_ok=True)

    def _has_ended(self) -> bool:
        if not self.changed:
            differing = _files(self.folders).items() ^ self.files.items()
            self.changed = min((path for path, _ in differing), default="")
        return bool(self.changed)


def _files(folders: Iterable[Path]) -> dict[str, tuple[int, ...]]:
    """Each file with its size and times, which tell that it was written even if it reads as before.

    Python's caches are left out.
    """
    paths = [str(folder) for folder in folders]
    for folder in tuple(paths):
        for directory, directories, names in os.walk(folder):
            directories[:] = set(directories) - {"__pycache__"}
            paths += [os.path.join(directory, name) for name in names]
    files: dict[str, tuple[int, ...]] = {}
    for path in paths:
        try:
            at = os.stat(path)
        except OSError:
            continue
        if stat.S_ISREG(at.st_mode):
            files[path] = (at.st_size, at.st_mtime_ns, at.st_ctime_ns)
    return files
