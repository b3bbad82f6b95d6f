"""A small quadratic model on the bundled slice of CIFAR-10: the default.

Repeats    nothing of the paper; a model of its kind (C20 §4.2) that trains in a few minutes
Images     2,000 training and 500 test images of CIFAR-10, lossless, bundled
Expected   more than 38 % of the test images (chance: 10 %)
Hardware   two CPU cores, no network
Time       under 4 minutes
Command    python experiments/cifar.py
"""

from convattn_lab.models.settings import EncoderSettings
from convattn_lab.runs.settings import ImageSettings, RunSettings
from convattn_lab.training.settings import TrainingSettings

CONFIG = RunSettings(
    model=EncoderSettings(heads=(9, 9, 9), width=64, inner=128, downsampling=4),
    images=ImageSettings(crop=4, flip=True),
    training=TrainingSettings(
        epochs=40, batch_size=50, optimizer="adamw", learning_rate=2e-3, weight_decay=0.05
    ),
)
