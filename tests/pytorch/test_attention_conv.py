import copy
import subprocess
import sys
from itertools import pairwise

import jax.numpy as jnp
import numpy as np
import pytest
import torch
from torch import nn

import convattn as ca
from convattn.encodings.bias import BiasEncoding
from convattn.encodings.layer import AttentionLayer
from convattn.torch import AttentionConv
from convattn.torch.attention_conv import BACK_ENDS, score_dtype
from convattn.torch.surgery import _bound

# Sides and channels all differ, so that no swapped axis can hide.
CONVOLUTIONS = {
    "padding": lambda: nn.Conv2d(3, 8, 3, padding=1),
    "stride": lambda: nn.Conv2d(3, 4, (3, 2), stride=(2, 1), padding=(2, 0)),
    "groups": lambda: nn.Conv2d(6, 4, 3, groups=2, bias=False),
    "depthwise": lambda: nn.Conv2d(3, 6, 3, groups=3, padding="same"),
    "dilation": lambda: nn.Conv2d(3, 4, (3, 4), dilation=(2, 3), padding="same"),
    "pointwise": lambda: nn.Conv2d(3, 4, 1, stride=2),
    "patches": lambda: nn.Conv2d(3, 5, 4, stride=4),
    "reflect": lambda: nn.Conv2d(3, 5, 3, padding=(1, 2), padding_mode="reflect"),
    "replicate": lambda: nn.Conv2d(3, 5, 3, stride=2, padding=2, padding_mode="replicate"),
    "circular": lambda: nn.Conv2d(3, 5, 4, padding="same", padding_mode="circular"),
    "wide padding": lambda: nn.Conv2d(3, 5, 3, padding=4),
    "sequence": lambda: nn.Conv1d(3, 4, 5, padding=4, dilation=2, stride=3),
    "transposed": lambda: nn.ConvTranspose2d(6, 4, 3, 2, 1, output_padding=1, groups=2),
    "cropped": lambda: nn.ConvTranspose2d(3, 4, (3, 1), (3, 2), (2, 1), dilation=(2, 1)),
    "transposed sequence": lambda: nn.ConvTranspose1d(3, 5, 4, stride=2, padding=1),
}


def images_of(conv, dtype=torch.float64):
    return torch.randn(2, conv.in_channels, *(9, 11)[: len(conv.kernel_size)], dtype=dtype)


@pytest.mark.parametrize("backend", BACK_ENDS)
@pytest.mark.parametrize("kind", CONVOLUTIONS)
def test_it_is_the_convolution(kind, backend) -> None:
    conv = CONVOLUTIONS[kind]().double()
    layer = AttentionConv.from_conv(conv, backend=backend, uniform_weight=0.3)
    images = images_of(conv)
    with torch.no_grad():
        expected, outputs = conv(images), layer(images)
    assert outputs.shape == expected.shape
    bound = _bound(conv, layer, images, None, 0.3)
    assert (outputs - expected).abs().max() <= bound < 1e-10


def test_the_bound_can_be_exceeded() -> None:
    conv = nn.Conv2d(3, 8, 3).double()
    layer, images = AttentionConv.from_conv(conv), images_of(conv)
    bound = _bound(conv, layer, images, None, 0.5)
    with torch.no_grad():
        layer.output[4, 1, 2] += 1e-9
        assert (layer(images) - conv(images)).abs().max() > bound


@pytest.mark.parametrize("kind", ["stride", "depthwise", "sequence", "transposed"])
def test_after_training_all_back_ends_are_one_function_with_one_gradient(kind) -> None:
    layer = AttentionConv.from_conv(CONVOLUTIONS[kind]().double())
    images = torch.randn(2, layer.in_channels, *(7, 6)[: layer.axes], dtype=torch.float64)
    with torch.no_grad():
        for parameter in layer.parameters():
            parameter += 0.3 * torch.randn_like(parameter)
    results = []
    for layer.backend in BACK_ENDS:
        layer.zero_grad()
        outputs = layer(images)
        (outputs**2).sum().backward()
        results.append([outputs.detach(), *(each.grad.clone() for each in layer.parameters())])
    for one, other in pairwise(results):
        for left, right in zip(one, other, strict=True):
            # 2⁻⁵³ times some 10³ operations of one sign or the other
            assert (left - right).abs().max() <= 2**-40 * left.abs().max()
            assert left.abs().max() > 0


def test_a_trained_layer_is_what_the_layer_of_jax_is() -> None:
    layer = AttentionConv.from_conv(nn.Conv2d(3, 4, 3, padding=1).double(), backend="dense")
    with torch.no_grad():
        for parameter in layer.parameters():
            parameter += 0.3 * torch.randn_like(parameter)
    images = images_of(layer)
    parts = [each.detach().numpy() for each in (layer.scores, layer.uniform_weight, layer.output)]
    scores, epsilon, output = map(jnp.asarray, parts)
    offsets = tuple((row, column) for row in (-1, 0, 1) for column in (-1, 0, 1))
    same = AttentionLayer(
        BiasEncoding(scores, epsilon, offsets),
        None,
        output,
        jnp.asarray(layer.bias.detach().numpy()),
        ring=((1, 1), (1, 1)),
    )
    expected = ca.apply_attention(same, np.moveaxis(images.numpy(), 1, -1), backend="dense")
    outputs = np.moveaxis(layer(images).detach().numpy(), 1, -1)
    assert abs(outputs - expected).max() <= 2**-40 * abs(outputs).max()


def test_what_pytorch_does_with_modules_works() -> None:
    layer = AttentionConv.from_conv(nn.Conv2d(3, 4, 3))
    other = AttentionConv.from_conv(nn.Conv2d(3, 4, 3))
    images = torch.randn(2, 3, 8, 7)
    other.load_state_dict(layer.state_dict(), strict=True)
    assert torch.equal(other(images), layer(images))
    assert torch.equal(copy.deepcopy(layer)(images), layer(images))
    assert layer(images[0]).shape == (4, 6, 5)
    assert (layer(images[0]) - layer(images)[0]).abs().max() <= 2**-18  # γ_31 of float32, twice
    assert set(dict(layer.named_parameters())) == {"scores", "output", "uniform_logit", "bias"}
    layer.double()
    assert layer(images.double()).dtype == torch.float64
    assert layer.to("meta")(images.double().to("meta")).shape == (2, 4, 6, 5)


def test_below_float32_scores_are_in_float32() -> None:
    conv = nn.Conv2d(3, 4, 3, padding=1).bfloat16()
    layer, images = AttentionConv.from_conv(conv), torch.randn(1, 3, 30, 30).bfloat16()
    assert layer.scores.dtype == torch.float32 == score_dtype(torch.bfloat16)
    outputs = layer(images)
    assert outputs.dtype == torch.bfloat16
    # γ_64 of bfloat16 (2⁻⁸ and less) of the majorant, which is at most 28 products
    wide, widest = conv(images).float(), 28 * images.abs().max().float() * conv.weight.abs().max()
    assert (outputs - wide).abs().max() <= 2**-2 * widest


def test_frozen_weights_stay_frozen() -> None:
    conv = nn.Conv2d(3, 4, 3)
    conv.weight.requires_grad_(False)
    layer = AttentionConv.from_conv(conv)
    assert [name for name, each in layer.named_parameters() if each.requires_grad] == ["bias"]


def test_a_transposed_convolution_takes_an_output_size() -> None:
    conv = nn.ConvTranspose2d(3, 4, 3, stride=2, padding=1).double()
    layer, images = AttentionConv.from_conv(conv), torch.randn(2, 3, 5, 6).double()
    expected = conv(images, output_size=(10, 11))
    assert layer(images, output_size=(10, 11)).shape == expected.shape
    assert (layer(images, (10, 11)) - expected).abs().max() < 1e-12


def test_timms_padding_of_tensorflow() -> None:
    same = pytest.importorskip("timm.layers.conv2d_same").Conv2dSame
    for stride, size in ((2, (8, 9)), (3, (10, 12))):
        conv = same(3, 4, 5, stride=stride).double()
        images = torch.randn(2, 3, *size).double()
        outputs = AttentionConv.from_conv(conv)(images)
        assert outputs.shape == conv(images).shape
        assert (outputs - conv(images)).abs().max() < 1e-12


@pytest.mark.parametrize(
    ("make", "name"),
    [
        (lambda: AttentionConv(torch.ones(1, 1, 3, 3, 3)), "5 axes"),
        (lambda: AttentionConv(torch.ones(1, 1, 3, 3, dtype=torch.int32)), "int32"),
        (lambda: AttentionConv(torch.ones(1, 1, 3, 3), backend="fast"), "backend='fast'"),
        (lambda: AttentionConv(torch.ones(1, 1, 3, 3), padding_mode="mean"), "padding_mode='mean'"),
        (lambda: AttentionConv(torch.ones(1, 1, 3, 3), uniform_weight=1), "uniform_weight=1"),
        (lambda: AttentionConv(torch.ones(1, 1, 3, 3))(torch.ones(1, 2, 5, 5)), r"\(1, 2, 5, 5\)"),
        (lambda: AttentionConv(torch.ones(1, 1, 3, 3))(torch.ones(1, 1, 2, 5)), "larger images"),
    ],
)
def test_what_it_refuses(make, name) -> None:
    with pytest.raises(ValueError, match=name):
        make()


def test_it_has_no_weight() -> None:
    layer = AttentionConv(torch.ones(1, 1, 3, 3))
    with pytest.raises(AttributeError, match="has no weight"):
        _ = layer.weight
    assert "heads=10" in repr(layer)


@pytest.mark.slow
def test_a_saved_model_runs_without_jax(tmp_path) -> None:
    layer, images = AttentionConv.from_conv(nn.Conv2d(3, 4, 3)), torch.randn(1, 3, 5, 6)
    torch.save((layer, images, layer(images)), tmp_path / "layer.pt")
    program = (
        "import sys; sys.modules['jax'] = None; import torch\n"
        f"layer, images, outputs = torch.load({str(tmp_path / 'layer.pt')!r}, weights_only=False)\n"
        "assert torch.equal(layer(images), outputs)"
    )
    subprocess.run([sys.executable, "-c", program], check=True)
