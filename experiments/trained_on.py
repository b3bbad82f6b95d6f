"""A small CNN, compiled into a vision transformer and trained on, beside other initialisations.

Repeats    nothing of a paper; docs/known-answers.md has the plan and the results
Images     the bundled slice of CIFAR-10, and --data PATH with CIFAR-10
Hardware   one CPU core, no network
Command    python experiments/trained_on.py --data PATH --output-dir DIR
"""

import sys

from trained_on_comparison.command import main

if __name__ == "__main__":
    sys.exit(main())
