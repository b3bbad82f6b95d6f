"""`TrainingSettings`: how a model is trained."""

from typing import Annotated, Literal

from pydantic import Field

from convattn.settings import Count, Fraction, NonNegative, Rate, settings


@settings
class TrainingSettings:
    """How a model is trained: as in C20, Table 2, unless a config says otherwise."""

    epochs: Count = 300
    """Passes over the training images."""
    batch_size: Count = 100
    """Images in a step, over all devices; a last batch that is not full is left out."""
    optimizer: Literal["sgd", "adamw"] = "sgd"
    """SGD with momentum and weight decay in the gradient, or AdamW."""
    learning_rate: NonNegative = 0.1
    """Peak learning rate."""
    warmup: Fraction = 0.05
    """The fraction of all steps in which the learning rate rises linearly."""
    schedule: Literal["cosine", "constant"] = "cosine"
    """What follows the warm-up: half a cosine down to zero, or no change."""
    momentum: Rate = 0.9
    """Momentum of SGD."""
    beta1: Rate = 0.9
    """Of AdamW: the decay of the mean of the gradients."""
    beta2: Rate = 0.999
    """Of AdamW: the decay of the mean of their squares."""
    epsilon: NonNegative = 1e-8
    """Of AdamW: what is added to the root of that mean."""
    weight_decay: NonNegative = 1e-4
    """Not on centres, spreads, norms, biases, class tokens and added positions."""
    label_smoothing: Rate = 0.0
    """The fraction of the target that is spread over all classes."""
    compute_dtype: Literal["float32", "bfloat16"] = "float32"
    """Of the products; parameters, norms, softmax and loss are float32."""
    devices: Count | None = None
    """How many devices of each process share each batch; all of them if not given."""
    steps_per_call: Count | None = None
    """The most in one call of the program; by default as many as take half a minute."""
    evaluate_every: Count = 1
    """Epochs between evaluations."""
    snapshot_every: Count | None = None
    """Epochs between snapshots of the attention; by default about 60 over the run."""
    checkpoint_minutes: NonNegative = 5.0
    """Minutes between checkpoints; 0 writes one after each call of the compiled program."""
    keep_checkpoints: Count = 2
    """How many of the newest are kept."""
    select: Literal["last", "best"] = "last"
    """The parameters tested at the end: the last, or the best on the validation images."""
    seed: Annotated[int, Field(ge=0, lt=2**32)] = 0
    """Of everything that is drawn."""
