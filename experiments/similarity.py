"""Whether two images show the same class: `python experiments/similarity.py`; see also `--help`.

Repeats    nothing of the paper, which trains nothing; B19 §6.1 describes the model
Images     pairs out of 2,000 training and 500 test images of CIFAR-10, bundled
Hardware   two CPU cores, no network
Command    python experiments/similarity.py [--attention own --segments none] [--output-dir DIR]
"""

import sys

from image_similarity.command import main

if __name__ == "__main__":
    sys.exit(main())
