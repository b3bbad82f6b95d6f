"""`python -m convattn_ledger.certificates --output DIR`: write every certificate anew."""

import argparse
import sys
from pathlib import Path

from convattn.files import write_file
from convattn_ledger.certificates.canonical import SCHEMA, write
from convattn_ledger.certificates.catalogue import certificates
from convattn_ledger.certificates.stated import table_text


def main(arguments: list[str] | None = None) -> int:
    """Write the catalogue into a folder; certificates that are no longer in it are removed."""
    parser = argparse.ArgumentParser(
        prog="python -m convattn_ledger.certificates", description="Write every certificate anew."
    )
    parser.add_argument("--output", type=Path, required=True, help="the folder to write to")
    parser.add_argument("--stated", type=Path, help="the file for what they state")
    options = parser.parse_args(arguments)
    output = options.output
    output.mkdir(parents=True, exist_ok=True)
    by_name = {}
    for name, certificate in certificates():
        write(certificate, output / name)
        by_name[name] = certificate
    if options.stated is not None:
        write_file(options.stated, table_text(by_name.items()).encode("ascii"))
    for other in output.glob("*.json"):
        if other.name not in by_name and SCHEMA.encode() in other.read_bytes():
            other.unlink()
    print(f"{len(by_name)} certificates in {output}")
    return 0


if __name__ == "__main__":
    sys.exit(main())
