"""The tests' own builder, cases and layer stand beside them and are imported by their names.

This folder is no package: as one it would stand in the way of the checker, whose name it has.
"""

import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parent))
