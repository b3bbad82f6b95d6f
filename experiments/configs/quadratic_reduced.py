"""The quadratic model at a size that two cores train on all images.

Repeats    nothing printed; C20, Figs. 3 and 4: do centres of attention spread into a grid?
Images     all 60,000 of CIFAR-10: --data PATH, or --download cifar10-binary
Expected   no figure of the paper: a quarter of its width, half of its layers; docs/results.md
Hardware   two CPU cores
Time       docs/results.md
Command    python experiments/cifar.py --config quadratic_reduced --download cifar10-binary
"""

from convattn_lab.models.settings import EncoderSettings
from convattn_lab.runs.settings import ImageSettings, RunSettings
from convattn_lab.training.settings import TrainingSettings

CONFIG = RunSettings(
    model=EncoderSettings(heads=(9, 9, 9), width=100, inner=128),
    images=ImageSettings(crop=4, flip=True),
    training=TrainingSettings(
        epochs=30, batch_size=100, optimizer="adamw", learning_rate=2e-3, weight_decay=0.05
    ),
)
