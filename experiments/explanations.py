"""What six methods of explanation say of vision transformers whose workings are known.

Repeats    nothing of a paper; docs/known-answers.md has the plan and the results
Models     the suite of `convattn.known_answers`, which is written if it is missing
Hardware   two CPU cores, no network
Command    python experiments/explanations.py --suite build/suite --output-dir build/explanations
"""

import sys

from explanation_methods.command import main

if __name__ == "__main__":
    sys.exit(main())
