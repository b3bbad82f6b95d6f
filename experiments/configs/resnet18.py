"""ResNet18, beside which the paper sets its models.

Repeats    C20, Table 1, "ResNet18"; Fig. 2
Images     all 60,000 of CIFAR-10: --data PATH, or --download cifar10-binary
Expected   93.8 % of the test images (C20, Table 1)
Hardware   one GPU
Time       not measured: no run of this size has been made
Command    python experiments/cifar.py --config resnet18 --download cifar10-binary
"""

from convattn_lab.models.settings import ResNetSettings
from convattn_lab.runs.settings import RunSettings
from convattn_lab.training.settings import TrainingSettings

CONFIG = RunSettings(model=ResNetSettings(), training=TrainingSettings(compute_dtype="bfloat16"))
