"""Whether a network is the one that its user means: its outputs against PyTorch's and others."""

import re
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

if TYPE_CHECKING:  # it loads JAX, which --help does without
    from convattn.cli.named_network import NamedNetwork

BLURRED = {  # timm's ResNets that differ in how they sample down alone: resnet18, resnetblur18
    "18": ("", "blur"),
    "34d": ("", "aa"),
    "50": ("", "aa", "blur"),
    "50d": ("", "aa", "blur"),
    "101d": ("", "aa", "blur"),
}


def same_tensors(network: str) -> list[str]:
    """timm's other networks whose tensors have the same names and shapes, as far as known.

    Those that begin with tf_ pad as TensorFlow does.

    >>> same_tensors("timm/resnetblur50.bt_in1k"), same_tensors("timm/tf_efficientnet_b0")
    (['resnet50', 'resnetaa50'], ['efficientnet_b0'])
    >>> same_tensors("timm/mixnet_s"), same_tensors("torchvision/vgg11")
    (['tf_mixnet_s'], [])
    """
    name = network.rpartition("/")[2].partition(".")[0]
    if match := re.fullmatch(r"resnet(aa|blur|)(\d+d?)", name):
        kinds = BLURRED.get(match[2], ())
        return [f"resnet{kind}{match[2]}" for kind in kinds if kind != match[1]]
    plain = name.removeprefix("tf_")
    if re.match(r"efficientnet_(b[0-8]|lite\d|e[sml])|mobilenetv3_(large|small)|mixnet_", plain):
        return [plain if name != plain else f"tf_{plain}"]
    return []


def unchecked(network: str) -> str:
    """What a comparison with the network's own outputs alone can tell."""
    same = " and ".join(same_tensors(network))
    return (
        "of the weights only names and shapes were checked: another network with the same tensors"
        f"{f', such as {same} of timm,' if same else ''} would be read the same; --images FILE "
        "--expected FILE compares with its own outputs"
    )


class Origin(NamedTuple):
    """What tells whether a network is the one that its user means.

    Attributes:
        notes: What a user should know.
        lines: The comparison with --expected.
        numbers: The same for JSON.
        passed: Whether that comparison passed, or there was none.
    """

    notes: list[str]
    lines: list[str]
    numbers: dict[str, Any]
    passed: bool


def check_origin(
    name: str,
    network: "NamedNetwork",
    images: Any,
    outputs: Sequence[Any],
    *,
    weights: Path | None,
    expected: Any,
) -> Origin:
    """Compare a network's outputs with those of PyTorch, and with those that it should have.

    Args:
        name: Of the network, as the user gave it.
        network: From `named_network`.
        images: That the outputs are of.
        outputs: The arrays that the network as a function of JAX gives.
        weights: The file of its weights.
        expected: The first output that the network has where it comes from, or None.

    Raises:
        ValueError: If PyTorch computes the module otherwise.
    """
    import numpy as np

    own = [] if network.in_pytorch is None else network.in_pytorch(np.array(images))
    if own and len(own) != len(outputs):
        raise ValueError(
            f"{name} has {len(own)} outputs in PyTorch and {len(outputs)} by torchax, but expected "
            "as many; take convattn.torch.to_attention, which stays in PyTorch"
        )
    for ours, theirs in zip(outputs, own, strict=False):
        comparison = compared(ours, theirs, "an output of the module in PyTorch")
        if not comparison["passed"]:
            raise ValueError(
                f"torchax computes {name} otherwise than PyTorch, by "
                f"{comparison['difference']:.3g} of {comparison['largest']:.3g}; take "
                "convattn.torch.to_attention, which stays in PyTorch"
            )
    if expected is not None:
        comparison = compared(outputs[0], expected)
        numbers = {"expected": comparison | {"outputs": len(outputs)}}
        line = expected_line(comparison, len(outputs))
        return Origin([], [line], numbers, comparison["passed"])
    return Origin([] if weights is None else [unchecked(name)], [], {}, True)


def compared(outputs: Any, expected: Any, whose: str = "--expected") -> dict[str, Any]:
    """The outputs of the network as it was built against those that it should have.

    The tolerance is √ε times the largest, ε of the coarser dtype; 0 of integers.

    Raises:
        ValueError: For another shape.

    >>> import numpy as np
    >>> compared(np.array([[1.0, 2.0]]), np.array([[1.0, 2.5]]))["passed"]
    False
    """
    import jax.numpy as jnp
    import numpy as np

    if outputs.shape != expected.shape:
        raise ValueError(
            f"{whose} has shape {expected.shape}, but expected {outputs.shape}, that of the "
            "outputs of the network for --images"
        )
    difference = np.abs(outputs.astype(np.float64) - expected.astype(np.float64)).max()
    largest = np.abs(outputs).max()
    floats = [each.dtype for each in (outputs, expected) if jnp.issubdtype(each.dtype, np.floating)]
    coarser = max((float(jnp.finfo(dtype).eps) for dtype in floats), default=0.0)
    allowed = coarser**0.5 * float(largest)
    return {
        "difference": float(difference),
        "largest": float(largest),
        "tolerance": allowed,
        "passed": bool(difference <= allowed),
    }


def expected_line(comparison: dict[str, Any], outputs: int = 1) -> str:
    """What a comparison of the first of so many outputs with --expected showed."""
    verdict = (
        f"(at most {comparison['tolerance']:.2g})"
        if comparison["passed"]
        else f"(MORE THAN {comparison['tolerance']:.2g}): ANOTHER NETWORK, or other images"
    )
    return (
        f"{'the network' if outputs == 1 else f'the first of {outputs} outputs of the network'} as "
        "it was built against --expected: largest difference "
        f"{comparison['difference']:.3g} of {comparison['largest']:.3g} {verdict}"
    )


def only_array(path: Path, name: str) -> Any:
    """The one array of a file."""
    from convattn.networks.weights.files import read_weights

    file = read_weights(path)
    arrays = list(file.tensors().values())
    one = len(arrays) == 1 and arrays[0].dtype.kind not in "iu" and arrays[0].dtype.itemsize >= 4
    if not one or not arrays[0].ndim or not len(arrays[0]):
        raise ValueError(
            f"{name} got {path}, but expected one array of floats [batch, ...], float32 or float64,"
            " with the network's own axes (mostly [batch, rows, columns, channels] in JAX, [batch, "
            f"channels, rows, columns] in PyTorch) and range: {file.listing()}; scale bytes as in "
            "the training of the network, for example images.astype('float32') / 255"
        )
    return arrays[0]
