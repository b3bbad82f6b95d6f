"""Where the proofs and the certificates are: in the editable checkout, else installed with us."""

import tomllib
from pathlib import Path

_PACKAGE = Path(__file__).resolve().parent


def checkout(package: Path = _PACKAGE) -> Path | None:
    """The root of the checkout that holds the package as ``src/convattn_ledger``, if there is one.

    It is recognised by a ``pyproject.toml`` of the project ``convattn`` two levels up.

    Args:
        package: The directory of the package.
    """
    root = package.parent.parent
    try:
        project = tomllib.loads((root / "pyproject.toml").read_text("utf-8"))["project"]
        return root if project["name"] == "convattn" else None
    except (OSError, ValueError, KeyError, TypeError):
        return None


def proofs_directory(package: Path = _PACKAGE) -> Path:
    """``proofs/`` of the checkout, else the copy that was installed with the package."""
    root = checkout(package)
    return root / "proofs" if root else package / "_proofs"


def certificates_directory(package: Path = _PACKAGE) -> Path:
    """``certificates/`` of the checkout, else the copy that was installed with the package."""
    root = checkout(package)
    return root / "certificates" if root else package / "_certificates"


def coq_directory(package: Path = _PACKAGE) -> Path:
    """``proofs/coq/`` of the checkout, else the copy that was installed with the package."""
    return proofs_directory(package) / "coq"


def prove_report(package: Path = _PACKAGE) -> Path | None:
    """Where ``convattn prove`` writes its report in a checkout; ``None`` without one."""
    root = checkout(package)
    return root / "build" / "prove" / "report.json" if root else None
