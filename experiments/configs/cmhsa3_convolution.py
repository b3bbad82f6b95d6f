"""The convolution phase of CMHSA-3 alone, for the epochs of both.

    Repeats    L21, Table 1, "CMHSA-3 (1st phase)"
    Images     all 60,000 of CIFAR-100, enlarged: --data PATH, or --download cifar100-binary
    Expected   76.07 % of the test images (L21, Table 1)
    Hardware   one GPU
    Time       not measured: no run of this size has been made
    Command    python experiments/cifar.py --config cmhsa3_convolution --download cifar100-binary

The peak rate is from the printed set of the convolution phase.
"""

from convattn_lab.records.experiments import CONVOLUTION, paper_runs

CONFIG = paper_runs(3)[CONVOLUTION]
