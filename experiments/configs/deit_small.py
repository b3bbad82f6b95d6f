"""DeiT-S from random parameters.

    Repeats    L21, Table 1, "DeiT-small"
    Images     all 60,000 of CIFAR-100, enlarged: --data PATH, or --download cifar100-binary
    Expected   71.83 % of the test images (L21, Table 1)
    Hardware   one GPU
    Time       not measured: no run of this size has been made
    Command    python experiments/cifar.py --config deit_small --download cifar100-binary

Without distillation. L21 says neither rate nor schedule of its baselines: those of CMHSA.
"""

from convattn_lab.models.presets import deit_small
from convattn_lab.records.experiments import EPOCHS, deit_images, deit_training
from convattn_lab.runs.settings import RunSettings

CONFIG = RunSettings(
    model=deit_small(), images=deit_images(), training=deit_training(3e-4, 2 * EPOCHS)
)
