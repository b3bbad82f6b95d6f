"""CMHSA-3 in both phases at the size of the paper.

Repeats    L21, Table 1, "CMHSA-3 (ours)"
Images     all 60,000 of CIFAR-100, enlarged: --data PATH, or --download cifar100-binary
Expected   76.72 % of the test images (L21, Table 1)
Hardware   one GPU
Time       not measured: no run of this size has been made
Command    python experiments/two_phase.py --config cmhsa3 --download cifar100-binary

Peak rates are from the printed sets. On CIFAR-10 it runs as well, and says so. L21's attention has
no ring of zero tokens: --conversion.border mean.
"""

from convattn_lab.records.experiments import paper_pipeline

CONFIG = paper_pipeline(3)
