"""`python -m convattn.ledger.certificates --output DIR`: write every certificate anew."""

import argparse
import sys
from pathlib import Path

from convattn.ledger.certificates.canonical import SCHEMA, write
from convattn.ledger.certificates.catalogue import certificates


def main(arguments: list[str] | None = None) -> int:
    """Write the catalogue into a folder; certificates that are no longer in it are removed."""
    parser = argparse.ArgumentParser(
        prog="python -m convattn.ledger.certificates", description="Write every certificate anew."
    )
    parser.add_argument("--output", type=Path, required=True, help="the folder to write to")
    output = parser.parse_args(arguments).output
    output.mkdir(parents=True, exist_ok=True)
    names = set()
    for name, certificate in certificates():
        write(certificate, output / name)
        names.add(name)
    for other in output.glob("*.json"):
        if other.name not in names and SCHEMA.encode() in other.read_bytes():
            other.unlink()
    print(f"{len(names)} certificates in {output}")
    return 0


if __name__ == "__main__":
    sys.exit(main())
