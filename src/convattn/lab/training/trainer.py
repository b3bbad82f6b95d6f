"""`train`: from a model and examples to a trained model, through interruptions.

A run is a folder. Whatever ends the process, calling `train` again with the same model, examples
and settings goes on from the newest whole checkpoint and ends with the same bits: the state holds
everything that the next step depends on, and what was logged after the checkpoint is dropped.
"""

from contextlib import nullcontext
from pathlib import Path

from flax import nnx
from rich.console import Console

from convattn.files import hold_folder
from convattn.lab.training.examples import TrainingExamples
from convattn.lab.training.hosts import is_first
from convattn.lab.training.session import Outcome as Outcome
from convattn.lab.training.session import Session
from convattn.lab.training.settings import TrainingSettings
from convattn.lab.training.snapshots import Snapshot


def train(
    model: nnx.Module,
    examples: TrainingExamples,
    settings: TrainingSettings,
    *,
    folder: Path,
    console: Console | None = None,
    snapshot: Snapshot | None = None,
    held: bool = False,
) -> Outcome:
    """Train a model, or go on training it.

    After `jax.distributed.initialize`, all processes call it alike, and train one model over the
    devices of all. The first alone reads and writes the folder and shows progress.

    Args:
        model: Called as `model(inputs, training=…, dropout_key=…)`, giving logits; it is left as it
            is.
        folder: Of the run; checkpoints, metrics and snapshots go there.
        console: Where progress is shown; nowhere if not given.
        snapshot: A small summary of the model, kept at some epochs.
        held: Whether the caller holds the lock of the folder already.

    Raises:
        ValueError: `NonFiniteLoss`; `OtherModel` if the folder holds checkpoints of another model,
            of other settings or of other examples; `NoWholeCheckpoint` if all that it holds are
            damaged; `InUse` if another process trains there; `ProcessesDiffer` among several
            processes; `ValueError` if the best parameters are damaged, for a batch that is larger
            than the set or that the devices do not divide, and for `select="best"` without
            validation examples.
    """
    check_examples(examples, settings)
    if console is None or not is_first():
        console = Console(quiet=True)
    with nullcontext() if held or not is_first() else hold_folder(folder):
        return Session(model, examples, settings, folder, console, snapshot).run()


def check_examples(examples: TrainingExamples, settings: TrainingSettings) -> None:
    """Refuse settings that these examples do not serve.

    Raises:
        ValueError: As described above.
    """
    noun = examples.noun
    if len(examples.train) < settings.batch_size:
        raise ValueError(
            f"--training.batch-size {settings.batch_size}, but there are only "
            f"{len(examples.train)} training {noun}; take a smaller batch"
        )
    for name, part in examples.judged.items():
        if not len(part):
            raise ValueError(f"there are no {name} {noun}, but expected at least one to judge by")
    if settings.select == "best" and "validation" not in examples.judged:
        raise ValueError(
            f"--training.select best chooses by validation {noun}, and none are split off; give "
            f"--{'text' if noun == 'windows' else noun}.validation 0.1, or select last. Nothing is "
            f"chosen by the test {noun}"
        )
