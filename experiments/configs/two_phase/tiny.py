"""Both phases at a small scale on the bundled slice of CIFAR-10: the default.

Repeats    L21 §4 at a small scale: 32 × 32 pixels, P = 4, two layers, K = 5; the exact conversion
Images     2,000 training and 500 test images of CIFAR-10, lossless, bundled
Expected   more than 28 % of the test images (chance: 10 %)
Hardware   two CPU cores, no network
Time       under 5 minutes
Command    python experiments/two_phase.py
"""

from convattn.nnx.vision_transformer.settings import VisionTransformerSettings
from convattn_lab.runs.settings import ImageSettings
from convattn_lab.training.settings import TrainingSettings
from convattn_lab.two_phase.settings import ConversionSettings, TwoPhaseSettings

CONFIG = TwoPhaseSettings(
    model=VisionTransformerSettings(
        "convolution",
        depth=2,
        width=48,
        inner=192,
        patch_size=4,
        kernel_size=5,
        stochastic_depth=0.0,
    ),
    images=ImageSettings(crop=4, flip=True),
    training_one=TrainingSettings(
        epochs=20,
        batch_size=50,
        optimizer="adamw",
        learning_rate=5e-3,
        weight_decay=0.05,
        warmup=0.1,
    ),
    training_two=TrainingSettings(
        epochs=4,
        batch_size=50,
        optimizer="adamw",
        learning_rate=5e-4,
        weight_decay=0.05,
        warmup=0.25,
    ),
    conversion=ConversionSettings("exact", leak=0.5),
)
