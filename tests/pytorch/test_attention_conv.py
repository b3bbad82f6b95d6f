import copy
import subprocess
import sys
from itertools import pairwise

import numpy as np
import pytest
import torch
from torch import nn

import convattn as ca
from convattn.diagnosis import diagnose
from convattn.torch import AttentionConv, to_multihead_attention
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


@pytest.mark.parametrize("dtype", [torch.float16, torch.bfloat16])
def test_under_autocast_it_is_as_near_as_the_convolution(dtype) -> None:
    conv, images = nn.Conv2d(3, 8, 3, padding=1), 4 * torch.rand(1, 3, 256, 256)
    layer, exact = AttentionConv.from_conv(conv), conv(images)
    with torch.no_grad(), torch.autocast("cpu", dtype):
        off, own = ((each(images).float() - exact).abs().max() for each in (layer, conv))
    assert off <= 4 * own  # the sum of a channel is beyond float16


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
        (lambda: AttentionConv(torch.ones(1, 1, 3, 3), border="register"), "border='register'"),
        (lambda: AttentionConv(torch.ones(1, 1, 3, 3), padding_mode="mean"), "padding_mode='mean'"),
        (lambda: AttentionConv(torch.ones(1, 1, 3, 3), uniform_weight=1), "uniform_weight=1"),
        (lambda: AttentionConv(torch.ones(1, 1, 3, 3), padding=((1, 1),)), "expected 2 pairs"),
        (lambda: AttentionConv(torch.ones(1, 1, 3, 3), padding=1), "padding=1, but"),
        (lambda: AttentionConv(torch.ones(1, 1, 3, 3), padding="same"), "padding='same', but"),
        (lambda: AttentionConv(torch.ones(3, 1, 3, 3), groups=2), "a multiple of groups"),
        (lambda: AttentionConv(torch.ones(3, 1, 3, 3), torch.ones(1)), "a bias for each"),
        (lambda: AttentionConv(torch.ones(1, 1, 3, 3))(torch.ones(1, 2, 5, 5)), r"\(1, 2, 5, 5\)"),
        (lambda: AttentionConv(torch.ones(1, 1, 3, 3))(torch.ones(1, 1, 2, 5)), "larger images"),
    ],
)
def test_what_it_refuses(make, name) -> None:
    with pytest.raises(ValueError, match=name):
        make()


def test_it_has_no_weight() -> None:
    layer = AttentionConv(torch.ones(1, 1, 3, 3))
    assert (layer.weight.dtype, layer.weight.device.type) == (torch.float32, "cpu")
    for read in (lambda: layer.weight.shape, lambda: nn.functional.relu(layer.weight)):
        with pytest.raises(AttributeError, match="has no weight"):
            read()
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


def test_options_that_the_heads_are_made_for_cannot_be_set() -> None:
    layer = AttentionConv(torch.ones(2, 1, 3), torch.ones(2))
    names = ["stride", "padding", "dilation", "groups", "padding_mode", "kernel_size", "transposed"]
    for name in names:
        with pytest.raises(AttributeError, match=f"{name} of an AttentionConv cannot be set"):
            setattr(layer, name, 1)
    with pytest.raises(AttributeError, match="AttentionConv has no weight"):
        layer.weight = torch.nn.Parameter(torch.ones(2, 1, 3))
    with pytest.raises(ValueError, match="backend='none', but expected one of shift, dense, flex"):
        layer.backend = "none"
    layer.bias = None
    assert layer(torch.ones(1, 1, 3)).abs().max() > 1


@pytest.mark.parametrize(
    ("options", "later"),
    [
        ({"kernel_size": 4, "stride": 4}, {"padding": (1, 1)}),
        ({"kernel_size": 3, "padding": 1}, {"padding": (2, 2), "dilation": (2, 2)}),
        ({"kernel_size": 3, "padding": "same"}, {"dilation": (3, 3)}),
        ({"kernel_size": 2, "padding": "valid"}, {}),
        ({"kernel_size": 3, "padding": 1, "padding_mode": "reflect"}, {"padding": (0, 0)}),
    ],
)
def test_options_that_are_set_later_count_as_pytorch_reads_them(options, later) -> None:
    conv, images = nn.Conv2d(3, 4, **options), torch.randn(1, 3, 12, 12)
    for name, value in later.items():
        setattr(conv, name, value)
    assert torch.allclose(AttentionConv.from_conv(conv)(images), conv(images), atol=1e-5)


class Scaled(torch.nn.Conv2d):
    def forward(self, images):
        return super().forward(images) / 2


class Called(torch.nn.Conv2d):
    def _call_impl(self, *images):
        return super()._call_impl(*images) / 2


def hooked(conv=None):
    conv = conv or torch.nn.Conv2d(2, 3, 3)
    conv.register_forward_hook(lambda *args: 2 * args[2])
    return conv


def replaced(name, kind=torch.nn.Conv2d):
    conv = kind(2, 3, 3)
    setattr(conv, name, lambda *args, **named: 2 * getattr(kind, name)(conv, *args, **named))
    return conv


def normed():
    return torch.nn.utils.parametrizations.weight_norm(torch.nn.Conv2d(2, 3, 3))


@pytest.mark.parametrize(
    ("build", "word"),
    [
        (lambda: Scaled(2, 3, 3), "forward of its own"),
        (lambda: Called(2, 3, 3), "_call_impl of its own"),
        *((lambda n=n: replaced(n), f"its {n} was") for n in ("_conv_forward", "_call_impl")),
        (
            lambda: replaced("_output_padding", torch.nn.ConvTranspose2d),
            "its _output_padding was replaced",
        ),
        (hooked, "hook"),
        (lambda: hooked(normed()), "hook"),
        (
            lambda: torch.nn.utils.prune.l1_unstructured(normed(), "bias", 1),
            r"prune\.remove\(layer, 'bias'\)",
        ),
        (
            lambda: torch.nn.utils.prune.l1_unstructured(torch.nn.Conv2d(2, 3, 3), "weight", 4),
            "prun",
        ),
        (lambda: torch.nn.Linear(2, 3), "Linear"),
    ],
)
def test_what_computes_otherwise_than_its_weight_says_is_refused(build, word):
    with pytest.raises(ValueError, match=word):
        AttentionConv.from_conv(build())


def test_a_parametrised_weight_is_read_as_it_is_now():
    conv, images = normed(), torch.randn(1, 2, 6, 5)
    conv(images)
    with torch.no_grad():
        conv.parametrizations.weight.original0.mul_(3)
    assert torch.allclose(AttentionConv.from_conv(conv)(images), conv(images), atol=1e-5)


# (K, dilation, stride, groups), and the zeros (before, after); r = d(K - 1).
CAUSAL = [
    ((3, 1, 1, 1), (2, 0)), ((4, 2, 1, 1), (6, 0)), ((3, 2, 2, 2), (4, 0)), ((1, 1, 1, 1), (0, 0)),
    ((3, 1, 2, 1), (0, 0)), ((3, 2, 1, 2), (4, 4)),
]  # fmt: skip


@pytest.mark.parametrize("backend", BACK_ENDS)
@pytest.mark.parametrize(("sizes", "widths"), CAUSAL, ids=str)
def test_causal_layers_are_the_convolution_and_see_nothing_later(sizes, widths, backend):
    taps, dilation, stride, groups = sizes
    options = {"dilation": dilation, "stride": stride, "groups": groups}
    conv = nn.Conv1d(4, 6, taps, **options).double()
    layer = AttentionConv(
        conv.weight, conv.bias, padding=(widths,), causal=True, backend=backend, **options
    )
    inputs = torch.randn(2, 4, 11, dtype=torch.float64)
    padded = nn.functional.pad(inputs, widths)
    with torch.no_grad():
        outputs = layer(inputs)
        torch.testing.assert_close(outputs, conv(padded), rtol=0, atol=1e-12)
        spoiled = inputs.clone()
        spoiled[..., 7:], spoiled[0, 1, -1] = torch.nan, torch.inf
        result = layer(spoiled)
    last = torch.arange(outputs.shape[-1]) * stride + dilation * (taps - 1) - widths[0]
    assert torch.equal(result[..., last < 7], outputs[..., last < 7])
    assert result[..., last >= 7].isnan().all()


def test_what_is_not_finite_stays_in_its_group_of_channels():
    layer = AttentionConv(torch.randn(4, 1, 3), groups=2, padding=((2, 0),), causal=True)
    inputs = torch.randn(1, 2, 5)
    inputs[0, 1, 2] = torch.nan
    assert layer(inputs).isnan()[0].tolist() == [[False] * 5] * 2 + [[False] * 2 + [True] * 3] * 2


def test_any_causal_parameters_give_the_same_values_and_gradients_in_every_back_end():
    weight = torch.randn(6, 2, 3, dtype=torch.float64)
    layer = AttentionConv(weight, groups=2, padding=((4, 0),), dilation=2, causal=True)
    inputs = torch.randn(2, 4, 9, dtype=torch.float64, requires_grad=True)
    with torch.no_grad():
        layer.scores.add_(torch.randn_like(layer.scores))
        layer.uniform_logit.add_(0.4)
    layer.requires_grad_(True)
    results = {}
    for backend in ("shift", "dense"):
        layer.backend = backend
        result = layer(inputs)
        leaves = [inputs, *layer.parameters()]
        results[backend] = [result, *torch.autograd.grad((result**2).sum(), leaves)]
    for one, two in zip(results["shift"], results["dense"], strict=True):
        torch.testing.assert_close(one, two, rtol=1e-9, atol=1e-9)
    layer.backend = "flex"
    with torch.no_grad():
        torch.testing.assert_close(layer(inputs), results["dense"][0], rtol=1e-9, atol=1e-9)


@pytest.mark.parametrize(
    "options",
    [
        {"padding": ((1, 1),)},
        {"padding_mode": "circular"},
        {"upsampling": 2},
        {"padding": "same_xla"},
    ],
)
def test_causal_layers_ask_for_zeros_before(options):
    with pytest.raises(ValueError, match=r"pass padding=\(\(2, 0\),\)"):
        AttentionConv(torch.ones(1, 1, 3), causal=True, **{"padding": ((2, 0),), **options})
    with pytest.raises(ValueError, match="2 axes"):
        AttentionConv(torch.ones(1, 1, 3, 3), causal=True)


def test_a_causal_layer_of_a_convolution_is_exported():
    conv = nn.Conv1d(2, 3, 3, padding=2)
    layer, inputs = AttentionConv.from_conv(conv, causal=True), torch.randn(1, 2, 9)
    program = torch.export.export(layer, (inputs,)).module()
    torch.testing.assert_close(program(inputs), conv(inputs), rtol=0, atol=1e-5)
    assert layer.bfloat16()(inputs.bfloat16()).dtype == torch.bfloat16


LAYERS = {
    "zeros": nn.Conv2d(2, 4, 3, padding=1, groups=2, bias=False),
    "no padding, stride 2": nn.Conv2d(2, 4, (3, 2), stride=2, bias=False),
    "reflected, dilated": nn.Conv2d(
        2, 4, 3, padding=2, dilation=2, padding_mode="reflect", bias=False
    ),
    "sequences": nn.Conv1d(2, 4, 5, padding="same", padding_mode="circular", bias=False),
}


@pytest.mark.parametrize("kind", LAYERS)
def test_the_layer_of_a_group_attends_as_the_module_does(kind):
    module = AttentionConv.from_conv(LAYERS[kind].double())
    with torch.no_grad():
        module.scores.add_(torch.randn_like(module.scores) / 4)
        module.output.add_(torch.randn_like(module.output) / 4)
        module.uniform_logit.add_(0.5)
    sides = (9, 8)[: module.axes]  # the last taps read the last pixels
    images = torch.randn(2, 2, *sides, dtype=torch.float64)
    inputs = np.moveaxis(images.numpy(), 1, -1)
    layer, groups = module.group_layer(), module.groups
    outputs = [ca.apply_attention(layer, each) for each in np.split(inputs, groups, -1)]
    parts = [np.split(each, groups, -1)[group] for group, each in enumerate(outputs)]
    expected = np.moveaxis(module(images).detach().numpy(), 1, -1)
    assert np.abs(np.concatenate(parts, -1) - expected).max() <= 2**-40 * np.abs(expected).max()


def test_the_module_itself_is_drawn_measured_and_made_stock():
    module = AttentionConv.from_conv(nn.Conv2d(2, 4, 3, padding=1, bias=False))
    weights = ca.attention_maps(module, (4, 5)).weights
    assert weights.shape == (10, 4, 5, 6, 7)
    assert diagnose(module, image_size=(4, 5)).layers[0].as_dict()["heads"][0]["shift"] == [-1, -1]
    images = torch.randn(1, 2, 4, 5)
    difference = to_multihead_attention(module, (4, 5))(images) - module(images)
    assert difference.abs().max() < 1e-5


def test_layers_without_such_a_layer_are_refused():
    transposed = AttentionConv.from_conv(nn.ConvTranspose1d(1, 1, 3, stride=2))
    with pytest.raises(ValueError, match=r"upsampling=\(2,\), but expected no transposed"):
        transposed.group_layer()
    uneven = AttentionConv(torch.ones(1, 1, 3), padding=((1, 0),), padding_mode="circular")
    with pytest.raises(ValueError, match=r"padding=\(\(1, 0\),\) of circular with causal=False"):
        ca.attention_maps(uneven, (5,))
