"""A trained ResNet as attention with fewer heads: `python experiments/compress.py --help`."""

import sys

from convattn.cli.experiments.compress import main

if __name__ == "__main__":
    sys.exit(main())
