"""The quadratic model of C20 in PyTorch, as its authors' code has it, and its step of training.

Scores v·r_δ of all queries with all keys, softmax, the mixtures of the heads side by side, one
linear map over heads × width, a dense map, dropout and LayerNorm; then 400 → 512 → 400 with the
exact gelu, dropout and LayerNorm; the mean of the tokens and a classifier. SGD with momentum,
weight decay on linear maps alone, as in our own step.

There are three ways to write the mixing, `MIXINGS`, and the benchmark takes the fastest; nothing
else is left to choose but what PyTorch does by itself.

Source: C20 §4, eqs. 9 and 19, appendix B.
"""

import importlib
import importlib.util
import os
from collections.abc import Callable, Mapping
from typing import Any, NamedTuple

import numpy as np

from benchmarks.plain_layer import steps
from benchmarks.torch_layer import relative_features
from convattn_lab.models.encoder import Encoder
from convattn_lab.training.settings import TrainingSettings


def einsum(weights: Any, tokens: Any, torch: Any) -> Any:
    """As the authors write it: `[heads, queries, keys]` with `[batch, keys, width]`."""
    batch, keys, _ = tokens.shape
    return torch.einsum("hqk,bkd->bqhd", weights, tokens).reshape(batch, keys, -1)


def matmul(weights: Any, tokens: Any, torch: Any) -> Any:
    """Queries outermost and heads inside, so that the product of an image is what the map reads."""
    batch, keys, _ = tokens.shape
    beside = weights.transpose(0, 1).reshape(-1, keys)
    return torch.matmul(beside, tokens).reshape(batch, keys, -1)


def batched(weights: Any, tokens: Any, torch: Any) -> Any:
    """The same as a product for each image, which `matmul` may do otherwise."""
    batch, keys, _ = tokens.shape
    beside = weights.transpose(0, 1).reshape(1, -1, keys).expand(batch, -1, -1)
    return torch.bmm(beside, tokens).reshape(batch, keys, -1)


MIXINGS: Mapping[str, Callable[[Any, Any, Any], Any]] = {
    "einsum": einsum,
    "matmul": matmul,
    "bmm": batched,
}


class TorchModel(NamedTuple):
    """Attributes:
    logits: (images `[batch, height, width, channels]`, training) → `[batch, classes]`.
    parameters: Leaves by the names that `our_names` gives them in our model.
    """

    logits: Callable[[Any, bool], Any]
    parameters: dict[str, Any]


def import_torch() -> Any:
    """PyTorch, on all cores."""
    torch: Any = importlib.import_module("torch")
    torch.set_num_threads(os.cpu_count() or 1)
    return torch


def torch_model(model: Encoder, mixing: str = "einsum", *, double: bool = False) -> TorchModel:
    """The PyTorch form with the weights of one of our models, which it does not share.

    Args:
        model: With the quadratic encoding, and heads in every layer.
        mixing: A key of `MIXINGS`.
        double: In float64, else in float32.
    """
    torch = import_torch()
    functional, settings = torch.nn.functional, model.settings
    dtype = torch.float64 if double else torch.float32
    parameters = {
        name: torch.tensor(array, dtype=dtype).requires_grad_()
        for name, array in torch_arrays(model).items()
    }
    width, side = settings.width, settings.downsampling
    relative: dict[tuple[int, int], Any] = {}

    def linear(name: str, inputs: Any) -> Any:
        return functional.linear(inputs, parameters[f"{name}.kernel"], parameters[f"{name}.bias"])

    def norm(name: str, inputs: Any) -> Any:
        scale, bias = parameters[f"{name}.scale"], parameters[f"{name}.bias"]
        return functional.layer_norm(inputs, (width,), scale, bias, settings.norm_epsilon)

    def attention(name: str, tokens: Any, features: Any) -> Any:
        centers, spreads = (parameters[f"{name}.{field}"] for field in ("centers", "spreads"))
        ones = torch.ones_like(centers[:, :1])
        target = -(spreads[:, None] ** 2) / 2 * torch.cat([ones, -2 * centers], dim=1)
        weights = torch.softmax(torch.einsum("hp,qkp->hqk", target, features), dim=-1)
        mixtures = MIXINGS[mixing](weights, tokens, torch)
        return functional.linear(mixtures, parameters[f"{name}.value"], parameters[f"{name}.bias"])

    def logits(images: Any, training: bool) -> Any:
        batch, height, across, channels = images.shape
        rows, columns = height // side, across // side
        if (rows, columns) not in relative:
            down, along = (torch.tensor(np.asarray(steps(n))) for n in (rows, columns))
            features = relative_features(down, along, torch).to(dtype)
            relative[rows, columns] = features.reshape(rows * columns, rows * columns, 3)
        squares = images.reshape(batch, rows, side, columns, side, channels)
        tokens = linear("embedding", squares.transpose(2, 3).reshape(batch, rows * columns, -1))
        for number in range(settings.depth):
            name = f"layers.{number}"
            attended = attention(f"{name}.attention", tokens, relative[rows, columns])
            attended = functional.dropout(
                linear(f"{name}.dense", attended), settings.dropout, training
            )
            tokens = norm(f"{name}.attention_norm", tokens + attended)
            hidden = functional.gelu(linear(f"{name}.inner", tokens))
            outputs = functional.dropout(
                linear(f"{name}.outer", hidden), settings.dropout, training
            )
            tokens = norm(f"{name}.outer_norm", tokens + outputs)
        return linear("classifier", tokens.mean(dim=1))

    return TorchModel(logits, parameters)


def torch_arrays(model: Encoder) -> dict[str, np.ndarray]:
    """Our parameters, as `[outputs, inputs]` where they are linear maps of PyTorch."""
    return {name: as_torch(name, array) for name, array in our_arrays(model).items()}


def as_torch(name: str, array: np.ndarray) -> np.ndarray:
    """One of our parameters, or its gradient, as PyTorch holds it.

    >>> as_torch("layers.0.attention.value", np.zeros((3, 4, 5))).shape
    (5, 12)
    """
    if name.endswith("value"):
        return array.reshape(-1, array.shape[-1]).T
    return array.T if name.endswith("kernel") else array


def our_arrays(state: Any) -> dict[str, np.ndarray]:
    """The parameters of a model of ours, or gradients of its shape, by name."""
    from flax import nnx

    from convattn_lab.training.state import named_arrays

    parameters = state if isinstance(state, nnx.State) else nnx.state(state, nnx.Param)
    return {name.removesuffix(".value"): array for name, array in named_arrays(parameters).items()}


def torch_optimizer(parameters: dict[str, Any], settings: TrainingSettings) -> Any:
    """SGD as the settings have it, at the highest learning rate; only linear maps decay."""
    torch = import_torch()
    decayed = [
        parameter
        for name, parameter in parameters.items()
        if name.endswith(("kernel", "attention.value"))
    ]
    others = [
        parameter
        for name, parameter in parameters.items()
        if not name.endswith(("kernel", "attention.value"))
    ]
    groups = [
        {"params": decayed, "weight_decay": settings.weight_decay},
        {"params": others, "weight_decay": 0.0},
    ]
    return torch.optim.SGD(groups, lr=settings.learning_rate, momentum=settings.momentum)


def torch_step(
    model: TorchModel, settings: TrainingSettings, images: np.ndarray, labels: np.ndarray
) -> Callable[[], None]:
    """A step on a batch that is there: forward, backward, update.

    Args:
        images: Normalised, `[batch, height, width, channels]`.
    """
    torch = import_torch()
    optimizer = torch_optimizer(model.parameters, settings)
    inputs, classes = torch.tensor(images), torch.tensor(labels, dtype=torch.int64)

    def step() -> None:
        optimizer.zero_grad(set_to_none=True)
        torch.nn.functional.cross_entropy(model.logits(inputs, True), classes).backward()
        optimizer.step()

    return step
