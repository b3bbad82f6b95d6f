import os

import jax
import jax.numpy as jnp
import numpy as np
import pytest
import torch
from torch import nn

import convattn as ca
from convattn.torch import function_of, functions


class Network(nn.Module):
    """Buffers that are not saved, plain tensors, weight norm, attention, several outputs."""

    def __init__(self) -> None:
        super().__init__()
        self.conv = nn.utils.parametrizations.weight_norm(nn.Conv2d(3, 4, 3))
        self.norm = nn.BatchNorm2d(4)
        self.block = nn.TransformerEncoderLayer(4, 2, 8, batch_first=True)
        self.register_buffer("shift", torch.rand(4), persistent=False)
        self.plain = torch.rand(3, dtype=torch.float64)

    def forward(self, images):
        features = self.norm(self.conv(images)).flatten(2).mT + self.shift
        return {"tokens": self.block(features), "mean": images.mean((0, 2, 3)) + self.plain}


@pytest.fixture
def network():
    return Network().double().eval()


IMAGES = np.random.default_rng(0).normal(size=(2, 3, 7, 6))


def test_it_is_the_module_and_leaves_it_as_it_is(network) -> None:
    with torch.no_grad():
        expected = network(torch.from_numpy(IMAGES))
    outputs = function_of(network)(IMAGES)
    for name, value in expected.items():
        assert isinstance(outputs[name], jax.Array)
        assert outputs[name].dtype == jnp.float64
        assert abs(outputs[name] - value.numpy()).max() <= 2**-44 * float(abs(value).max())
    with torch.no_grad():
        again = network(torch.from_numpy(IMAGES))
    assert all(torch.equal(again[name], value) for name, value in expected.items())


def test_its_derivative_is_pytorchs() -> None:
    module = nn.Sequential(nn.Conv2d(3, 4, 3), nn.Tanh(), nn.Flatten(), nn.Linear(80, 2))
    module = module.double().eval()
    function = function_of(module)
    slopes = jax.jit(jax.grad(lambda p: (function.apply(p, IMAGES) ** 2).sum()))(
        function.parameters
    )
    (module(torch.from_numpy(IMAGES)) ** 2).sum().backward()
    for name, parameter in module.named_parameters():
        assert abs(slopes[name] - parameter.grad.numpy()).max() <= 2**-44 * abs(slopes[name]).max()


def test_its_convolutions_become_attention_by_name(network) -> None:
    module = nn.Sequential(nn.Sequential(nn.Conv2d(3, 4, 3, stride=2)), nn.Conv2d(4, 4, 2))
    module.append(module[1])
    function = function_of(module.double().eval())
    layers, _, report = ca.attention_of(function, jnp.asarray(IMAGES[:, :, :6]))
    assert [name.partition("aten")[0] for name in layers] == ["0/0/", "1/"]
    assert report.passed
    assert report.difference < 1e-13


def test_it_can_be_compiled_and_batched(network) -> None:
    function = function_of(network)
    one = jax.jit(function)(IMAGES)
    many = jax.vmap(function)(IMAGES[None])
    for name, value in one.items():
        assert abs(many[name][0] - value).max() <= 2**-44 * abs(value).max()


def test_later_changes_of_the_module_change_nothing() -> None:
    module = nn.Linear(2, 2).double().eval()
    function = function_of(module)
    before = function(np.ones(2))
    with torch.no_grad():
        module.weight.zero_()
    assert (function(np.ones(2)) == before).all()


def test_nothing_of_torchax_stays(network) -> None:
    functions.load_torchax.cache_clear()
    numbers, fast = torch.get_rng_state(), torch.backends.mha.get_fastpath_enabled()
    assert fast
    function_of(network)(IMAGES)
    with pytest.raises(ValueError, match="feature dimension"):
        function_of(network)(IMAGES[:, :2])  # channels that do not fit
    assert torch.backends.mha.get_fastpath_enabled() == fast
    assert torch.equal(torch.get_rng_state(), numbers)
    assert functions.TELEMETRY not in os.environ
    assert type(torch.ones(2) + torch.ones(2)) is torch.Tensor
    assert torch.ones(2).device.type == "cpu"
    assert not torch.accelerator.is_available() or torch.cuda.is_available()
    assert torch.compile(torch.sin, backend="eager")(torch.zeros(2)).tolist() == [0, 0]
    assert not any(module._forward_hooks for module in network.modules())
    assert not any(module._forward_pre_hooks for module in network.modules())


def test_bfloat16_and_compiled_modules() -> None:
    module = torch.compile(nn.Linear(2, 3).bfloat16().eval())
    function = function_of(module)
    assert set(function.parameters) == {"weight", "bias"}
    assert function(jnp.ones((1, 2), "bfloat16")).dtype == jnp.bfloat16


def test_float64_needs_64_bit_types(network) -> None:
    with jax.enable_x64(False), pytest.raises(ValueError, match="jax_enable_x64"):
        function_of(network)


@pytest.mark.parametrize(
    ("module", "match"),
    [
        (nn.Conv2d(1, 1, 1), "training mode"),
        (nn.Conv2d, "Conv2d, but expected .* call the class"),
        (torch.sin, "give the model itself"),
        (torch.jit.script(nn.ReLU()), "in Python"),
    ],
)
@pytest.mark.filterwarnings("ignore::DeprecationWarning")
def test_what_it_refuses(module, match) -> None:
    with pytest.raises(ValueError, match=match):
        function_of(module)


def test_a_missing_parameter_and_a_missing_operator_are_named() -> None:
    function = function_of(nn.Linear(2, 2).double().eval())
    with pytest.raises(ValueError, match="no 'bias'"):
        function.apply({"weight": jnp.ones((2, 2))}, np.ones(2))

    class Sampled(nn.Module):
        def forward(self, x):
            return nn.functional.adaptive_max_pool3d(x, 2)

    with pytest.raises(NotImplementedError, match="adaptive_max_pool3d"):
        function_of(Sampled().eval())(IMAGES)

    class Listed(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.kernels = [torch.ones(2, 3, 1, 1)]

        def forward(self, x):
            return torch.conv2d(x, self.kernels[0])

    with pytest.raises(ValueError, match="such as one in a list; register it"):
        function_of(Listed().eval())(IMAGES)


OTHERWISE = {  # in torchax 0.0.13
    "groups of a transposed convolution": nn.ConvTranspose2d(4, 6, 3, stride=2, groups=2),
    "in one axis": nn.ConvTranspose1d(6, 3, 2, stride=2, padding=1, output_padding=1, groups=3),
    "depthwise": nn.ConvTranspose2d(4, 8, 2, groups=4),
    "a window beyond the image": nn.AvgPool2d(2, 2, ceil_mode=True),
    "padded": nn.AvgPool2d((3, 2), (2, 3), (1, 0), ceil_mode=True),
    "three axes": nn.AvgPool3d(2, 2, ceil_mode=True),
    "padding not counted": nn.AvgPool2d(3, 2, 1, ceil_mode=True, count_include_pad=False),
    "a divisor": nn.AvgPool2d(2, ceil_mode=True, divisor_override=3),
}


@pytest.mark.parametrize("what", OTHERWISE)
def test_operators_are_pytorchs(what) -> None:
    module = OTHERWISE[what].double().eval()
    axes = 3 if "3d" in type(module).__name__ else 1 if "1d" in type(module).__name__ else 2
    channels = getattr(module, "in_channels", 2)
    images = np.random.default_rng(0).normal(size=(2, channels, *(7, 8, 5)[:axes]))
    with torch.no_grad():
        expected = module(torch.from_numpy(images)).numpy()
    assert np.abs(np.asarray(function_of(module)(images)) - expected).max() < 1e-12
