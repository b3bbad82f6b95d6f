"""A causal language model of bytes: `python experiments/language.py`; `--help` says what else.

Repeats    nothing of the paper, which trains nothing; B19 §5 describes the model
Text       the reference of the Python language, bundled with Python
Hardware   two CPU cores, no network
Command    python experiments/language.py [--scales 1 2 3] [--output-dir DIR]
"""

import sys

from language_model.command import main

if __name__ == "__main__":
    sys.exit(main())
