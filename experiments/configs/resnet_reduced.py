"""A ResNet whose training step takes as long as that of `quadratic_reduced`, beside it.

Repeats    nothing printed; the ResNet beside the quadratic model (C20, Fig. 2), both small
Images     all 60,000 of CIFAR-10: --data PATH, or --download cifar10-binary
Expected   no figure of the paper; docs/results.md
Hardware   two CPU cores
Time       docs/results.md
Command    python experiments/cifar.py --config resnet_reduced --download cifar10-binary
"""

from convattn_lab.models.settings import ResNetSettings
from convattn_lab.runs.settings import ImageSettings, RunSettings
from convattn_lab.training.settings import TrainingSettings

CONFIG = RunSettings(
    model=ResNetSettings(channels=(32, 64, 128), blocks=(2, 2, 2)),
    images=ImageSettings(crop=4, flip=True),
    training=TrainingSettings(
        epochs=30, batch_size=100, optimizer="adamw", learning_rate=2e-3, weight_decay=0.05
    ),
)
