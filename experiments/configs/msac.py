"""A small ResNet whose blocks are multiscale self-attentive convolutions, 1 × 1 and 3 × 3.

Repeats    nothing of the paper, which trains nothing; B19 §4 describes the operator
Images     2,000 training and 500 test images of CIFAR-10, lossless, bundled
Expected   no figure is printed; docs/results.md has what was measured
Hardware   two CPU cores, no network
Time       under 4 minutes
Command    python experiments/cifar.py --config msac
"""

from convattn_lab.models.settings import SelfAttentiveResNetSettings
from convattn_lab.runs.settings import ImageSettings, RunSettings
from convattn_lab.training.settings import TrainingSettings

CONFIG = RunSettings(
    model=SelfAttentiveResNetSettings(operator="msac", channels=(15, 30)),
    images=ImageSettings(crop=4, flip=True),
    training=TrainingSettings(
        epochs=40, batch_size=50, optimizer="adamw", learning_rate=2e-3, weight_decay=0.05
    ),
)
