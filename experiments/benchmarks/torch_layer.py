"""The layer in PyTorch as C20 describes it, on the CPU: features, softmax, one linear map.

C20 eq. 9: the score is v·r_δ with r_δ = (|δ|², δ_1, δ_2) and v = -α(1, -2Δ_1, -2Δ_2). The heads'
results stand side by side and go through one linear map (C20 §2.1).
"""

import importlib
import importlib.util
import os
from collections.abc import Callable
from typing import Any

import numpy as np

from benchmarks.measurement import Runner
from benchmarks.plain_layer import steps
from convattn.encodings import QuadraticEncoding
from convattn.encodings.layer import AttentionLayer


def torch_is_there() -> bool:
    """Whether torch can be imported."""
    return importlib.util.find_spec("torch") is not None


def torch_layer(layer: AttentionLayer, images: Any) -> tuple[Callable[[Any], Any], list[Any], Any]:
    """The layer as a function of a tensor of images, its parameters, and the images as a tensor."""
    torch: Any = importlib.import_module("torch")
    torch.set_num_threads(os.cpu_count() or 1)
    encoding, output = layer.encoding, layer.output
    assert isinstance(encoding, QuadraticEncoding)
    assert output is not None
    dtype = torch.bfloat16 if output.dtype.name == "bfloat16" else torch.float32

    def tensor(array: Any) -> Any:
        return torch.tensor(np.asarray(array, np.float32))

    alpha, centers = (
        tensor(values).requires_grad_() for values in (encoding.alpha, encoding.centers)
    )
    heads, features, out = output.shape
    linear = torch.nn.Linear(heads * features, out, bias=False).to(dtype)
    with torch.no_grad():
        linear.weight.copy_(tensor(output).reshape(heads * features, out).T)
    tokens = tensor(images).to(dtype).requires_grad_()
    batch, height, width = tokens.shape[:3]
    relative = relative_features(tensor(steps(height)), tensor(steps(width)), torch)

    def apply(images: Any) -> Any:
        ones = torch.ones(heads, 1)
        target = -alpha[:, None] * torch.cat([ones, -2 * centers], dim=1)
        weights = torch.softmax(torch.einsum("hp,qkp->hqk", target, relative), dim=-1)
        keys = images.reshape(batch, height * width, features)
        mixed = torch.einsum("hqk,bkd->bqhd", weights.to(dtype), keys)
        mixed = linear(mixed.reshape(batch, height * width, heads * features))
        return mixed.reshape(batch, height, width, out)

    return apply, [alpha, centers, linear.weight], tokens


def relative_features(rows: Any, columns: Any, torch: Any) -> Any:
    """r_δ for every query and key, `[queries, keys, 3]`."""
    height, width = len(rows), len(columns)
    shape = (height, width, height, width)
    row = rows[:, None, :, None].expand(shape).reshape(height * width, height * width)
    column = columns[None, :, None, :].expand(shape).reshape(height * width, height * width)
    return torch.stack([row**2 + column**2, row, column], dim=-1)


def torch_runner(layer: AttentionLayer, images: Any) -> Runner:
    """The PyTorch layer, forward without a graph, and forward and backward."""
    torch: Any = importlib.import_module("torch")
    apply, parameters, tokens = torch_layer(layer, images)
    cotangent = torch.randn(*tokens.shape[:3], parameters[-1].shape[0]).to(tokens.dtype)

    def forward(times: int) -> None:
        with torch.no_grad():
            for _ in range(times):
                apply(tokens)

    def backward(times: int) -> None:
        for _ in range(times):
            torch.autograd.grad(apply(tokens), [*parameters, tokens], cotangent)

    return Runner(forward, backward, None)
