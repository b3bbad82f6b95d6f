"""Convolution, then attention: `python experiments/two_phase.py`; `--help` says what else."""

import sys
from pathlib import Path

from two_phase_comparison.command import main

if __name__ == "__main__":
    sys.exit(main(configs=Path(__file__).parent / "configs" / "two_phase"))
