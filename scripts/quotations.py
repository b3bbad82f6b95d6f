"""Write the digests with which tests/proofs/test_quotations.py knows the papers.

Command   python scripts/quotations.py PAPER.txt ... --output tests/proofs/quotations.npy
"""

import argparse
from pathlib import Path

import numpy as np

from convattn_ledger.quotations import digests


def main() -> None:
    """Read the texts, write their digests."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("papers", nargs="+", type=Path, help="their texts")
    parser.add_argument("--output", type=Path, required=True, help="the file of digests")
    arguments = parser.parse_args()
    hashes = digests([paper.read_text("utf-8") for paper in arguments.papers])
    np.save(arguments.output, hashes)
    print(f"{hashes.size} runs of words of {len(arguments.papers)} papers")


if __name__ == "__main__":
    main()
