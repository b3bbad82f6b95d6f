"""Conversions compared on a tenth of CIFAR-10, at a size between the tiny one and the paper's.

Repeats    L21 §4 at a small scale: 32 × 32 pixels, P = 4, six layers, K = 5
Images     5,000 training and 10,000 test images of CIFAR-10: --data PATH, or --download
Expected   not known: no paper has this comparison
Hardware   one GPU
Time       not measured: no run of this size has been made
Command    python experiments/two_phase.py compare --config low_data --download cifar10-binary
"""

from convattn.nnx.vision_transformer.settings import VisionTransformerSettings
from convattn_lab.runs.settings import ImageSettings
from convattn_lab.training.settings import TrainingSettings
from convattn_lab.two_phase.settings import ConversionSettings, TwoPhaseSettings

CONFIG = TwoPhaseSettings(
    model=VisionTransformerSettings(
        "convolution", depth=6, width=48, inner=192, patch_size=4, kernel_size=5
    ),
    images=ImageSettings(crop=4, flip=True, share=0.1),
    training_one=TrainingSettings(
        epochs=100,
        batch_size=128,
        optimizer="adamw",
        learning_rate=5e-3,
        weight_decay=0.05,
        warmup=0.05,
        label_smoothing=0.1,
    ),
    training_two=TrainingSettings(
        epochs=100,
        batch_size=128,
        optimizer="adamw",
        learning_rate=5e-4,
        weight_decay=0.05,
        warmup=0.05,
        label_smoothing=0.1,
    ),
    conversion=ConversionSettings("exact", leak=0.5),
)
