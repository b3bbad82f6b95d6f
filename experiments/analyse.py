"""Numbers, tables and pictures from runs: `python experiments/analyse.py --help`."""

import sys

from convattn_lab.commands.analyse import main

if __name__ == "__main__":
    sys.exit(main())
