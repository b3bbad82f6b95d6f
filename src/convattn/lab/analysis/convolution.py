"""How close each trained layer and head is to a convolution, over training. Not in the papers."""

from dataclasses import dataclass
from pathlib import Path

import numpy as np

from convattn.lab.analysis.convolution_distance import ConvolutionDistance, convolution_distance
from convattn.lab.analysis.head_numbers import Numbers, head_numbers
from convattn.lab.analysis.score_tables import attention_matrix
from convattn.lab.analysis.snapshot_layers import encoder_settings, read_layers, spread_epochs
from convattn.lab.training.snapshots import snapshot_epochs


@dataclass(frozen=True)
class DistanceHistory:
    """The distances of a run's layers to the K × K convolutions.

    Attributes:
        kernel_size: K.
        linearised: Whether the layers have content, so that they are seen at X = 0.
        epochs: Of the snapshots.
        layers: For each epoch the distance of each layer.
        numbers: For each layer those of its heads.
    """

    kernel_size: int
    linearised: bool
    epochs: tuple[int, ...]
    layers: tuple[tuple[ConvolutionDistance, ...], ...]
    numbers: tuple[Numbers, ...]

    def relative(self) -> np.ndarray:
        """|L - C| / |L|, `[epochs, layers]`."""
        return np.array([[layer.relative for layer in layers] for layers in self.layers])

    def to_json(self) -> dict[str, object]:
        """All numbers as JSON holds them; null where a layer has no heads."""
        return {
            "kernel_size": self.kernel_size,
            "linearised": self.linearised,
            "epochs": list(self.epochs),
            "head_numbers": [list(layer) for layer in self.numbers],
            "layers": [
                [
                    {
                        "relative": at.relative if len(at.heads) else None,
                        "share": at.share if len(at.heads) else None,
                        "heads": at.heads.tolist(),
                    }
                    for at in layers
                ]
                for layers in self.layers
            ],
        }


def distance_history(
    path: Path, kernel_size: int = 3, most_epochs: int | None = None
) -> DistanceHistory:
    """The distances at the snapshots of a run.

    Args:
        kernel_size: K, in tokens.
        most_epochs: At most so many of the snapshots, closer at the beginning; all if not given.

    Raises:
        ValueError: For a run without attention or snapshots, and for a kernel that is larger than
            the image.
    """
    settings = encoder_settings(path)
    epochs = snapshot_epochs(path)
    if not epochs:
        read_layers(path)  # says why there is none
    if most_epochs is not None:
        epochs = spread_epochs(epochs, most_epochs)
    found = []
    for epoch in epochs:
        _, layers = read_layers(path, epoch)
        found.append(
            tuple(
                convolution_distance(
                    attention_matrix(layer["scores"]), layer["value_gram"], kernel_size
                )
                for layer in layers
            )
        )
    linearised = settings.encoding == "content"
    numbers = tuple(head_numbers(path))
    return DistanceHistory(kernel_size, linearised, tuple(epochs), tuple(found), numbers)
