"""What a verification has done, so that one that was killed goes on where it was.

Each piece of evidence that passes is a line of a file of the user's cache. The file's name is a
digest of all that the result depends on: the sources of the package and of the checker, the proofs,
the certificates, the report of `convattn prove`, the versions, the machine, the settings of JAX and
the seed. So nothing of another state of the sources is taken over. What failed or was not run is
run again, and so is one piece at least. A verification that ends by itself removes the file.
"""

import hashlib
import importlib.metadata
import json
import os
import sys
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path

from convattn.files import open_inside, read_file
from convattn.ledger.environment import host_environment
from convattn.ledger.worker import Result

SETTINGS = ("JAX_", "XLA_", "CUDA_", "TPU_", "OPENBLAS_", "OMP_")
CONTINUED = "[from a verification that was ended] "


@dataclass(frozen=True)
class Journal:
    """The pieces of evidence that have passed, by claim and name.

    Attributes:
        path: The file.
    """

    path: Path

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
        source = Path(__file__).resolve().parents[2]
        for folder in (source / "convattn", source / "convattn_check", *folders):
            files = sorted(folder.rglob("*")) if folder.is_dir() else [folder]
            for file in files:
                if file.is_file() and "__pycache__" not in file.parts:
                    digest.update(f"\n{file}\n".encode())
                    digest.update(hashlib.sha256(file.read_bytes()).digest())
        cache = Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache")
        return cls(cache / "convattn" / f"verify-{digest.hexdigest()[:32]}.jsonl")

    def read(self) -> dict[tuple[str, str], Result]:
        """The results that are kept; a line that a kill has cut is passed over."""
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
        """Keep a result that passed; where the cache cannot be written, nothing is kept."""
        if not result.passed:
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
