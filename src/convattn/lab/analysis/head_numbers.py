"""Under which numbers a run's heads are drawn."""

from pathlib import Path

from convattn.lab.analysis.pruning_file import read_pruning
from convattn.lab.analysis.snapshot_layers import encoder_settings

Numbers = tuple[int, ...]


def head_numbers(path: Path) -> list[Numbers]:
    """For each layer the numbers of its heads, counted from 1.

    The heads of a pruned run have the numbers, and so the colours, that they had before.

    Raises:
        ValueError: If it is not the folder of a run of an encoder.
    """
    stored = read_pruning(path)
    if stored is not None:
        return [tuple(layer) for layer in stored.kept]
    return [tuple(range(1, heads + 1)) for heads in encoder_settings(path).heads]
