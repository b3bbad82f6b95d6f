"""The attention phase of CMHSA alone, from random parameters, for the epochs of both.

    Repeats    L21, Table 1, "CMHSA (2nd phase)"
    Images     all 60,000 of CIFAR-100, enlarged: --data PATH, or --download cifar100-binary
    Expected   69.83 % of the test images (L21, Table 1)
    Hardware   one GPU
    Time       not measured: no run of this size has been made
    Command    python experiments/cifar.py --config cmhsa3_attention --download cifar100-binary

L21 does not say at which rate it was trained alone; here it is that of the first phase.
"""

from convattn_lab.records.experiments import ATTENTION, paper_runs

CONFIG = paper_runs(3)[ATTENTION]
