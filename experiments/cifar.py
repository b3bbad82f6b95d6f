"""Train on CIFAR-10: `python experiments/cifar.py`; `--help` and `--list` say what else."""

import sys
from pathlib import Path

from convattn_lab.commands.cifar import main

if __name__ == "__main__":
    sys.exit(main(configs=Path(__file__).parent / "configs"))
