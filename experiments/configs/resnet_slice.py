"""ResNet18 at an eighth of its width on the bundled slice: what a whole network is converted from.

Repeats    nothing of the papers; small enough to be trained and converted in a few minutes
Images     2,000 training and 500 test images of CIFAR-10, lossless, bundled
Expected   more than 30 % of the test images (chance: 10 %); 43.8 % seen
Hardware   two CPU cores, no network
Time       about 1 minute of both cores (1 min 50 s of processor time seen)
Command    python experiments/cifar.py --config resnet_slice
"""

from convattn_lab.models.settings import ResNetSettings
from convattn_lab.runs.settings import ImageSettings, RunSettings
from convattn_lab.training.settings import TrainingSettings

CONFIG = RunSettings(
    model=ResNetSettings(channels=(8, 16, 32, 64), blocks=(2, 2, 2, 2)),
    images=ImageSettings(crop=4, flip=True),
    training=TrainingSettings(
        epochs=12, batch_size=50, optimizer="adamw", learning_rate=4e-3, weight_decay=0.05
    ),
)
