"""One small vision transformer from several initialisations: convolutional, and baselines.

Repeats    nothing of a paper; docs/initialization.md has the plan, the results and the attempts
Images     --data PATH with CIFAR-10; --quick: 2,000 + 500 of them, bundled
Hardware   two CPU cores, no network
Command    python experiments/initialization.py --quick
"""

import sys

from initialization_comparison.command import main

if __name__ == "__main__":
    sys.exit(main())
