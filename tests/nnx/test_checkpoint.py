"""State dicts by name: against PyTorch's own networks where it is installed, and by hand."""

from functools import partial

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from comparison import assert_equal
from flax import nnx
from torch_packages import torch_package

from convattn.files import write_file
from convattn.networks.weights.convolution_layout import arrange
from convattn.networks.weights.formats import write_safetensors
from convattn.nnx import checkpoint, load_checkpoint, to_attention
from convattn.nnx.architectures import ARCHITECTURES, ConvNeXt, MobileNetV2, ResNet, pooled

SMALL = {  # the same classes in a size for tests
    "small/resnet": partial(ResNet, (1, 1, 1, 1), True),
    "small/convnext": partial(ConvNeXt, (1, 1), (8, 16)),
}


@pytest.fixture(autouse=True)
def _small_ones(monkeypatch):
    for name, made in SMALL.items():
        monkeypatch.setitem(ARCHITECTURES, name, made)


def state_dict(name: str, classes: int = 10) -> dict[str, np.ndarray]:
    """Random tensors under PyTorch's names and in its shapes."""
    made = ARCHITECTURES[name]
    model = nnx.eval_shape(lambda: made(classes=classes, rngs=nnx.Rngs(0)))
    rng, found = np.random.default_rng(0), {}
    for key, tensor in checkpoint.tensors(model):
        scale = 1 / np.sqrt(max(1, np.prod(tensor.shape[1:], dtype=float)))
        found[key] = scale * rng.normal(size=tensor.shape)
        if key.endswith("running_var"):
            found[key] = rng.uniform(0.5, 2, tensor.shape)
    return found


@pytest.mark.slow
@pytest.mark.parametrize(
    "name",
    [
        *("torchvision/resnet18", "torchvision/resnet50", "torchvision/vgg16_bn"),
        *("torchvision/mobilenet_v2", "timm/mobilenetv2_100", "timm/convnext_tiny"),
        "timm/resnet18",
    ],
)
def test_the_logits_are_pytorchs(name):
    library, _, model = name.partition("/")
    torch, package = torch_package(library)
    torch.manual_seed(0)
    if library == "timm":
        theirs = package.create_model(model, pretrained=False).double().eval()
    else:
        theirs = package.models.get_model(model, weights=None).double().eval()
    for key, value in theirs.state_dict().items():
        if key.endswith("running_var"):
            value.copy_(0.5 + 1.5 * torch.rand_like(value))
        elif key.endswith(("running_mean", "bias")):
            value.copy_(0.1 * torch.randn_like(value))
        elif value.ndim == 1:  # of norms, and ConvNeXt's scales
            value.copy_(0.75 + 0.5 * torch.rand_like(value))
        elif value.ndim == 4:
            value.copy_((2 / value[0].numel()) ** 0.5 * torch.randn_like(value))
    images = np.random.default_rng(0).normal(size=(2, 65, 64, 3))
    with torch.no_grad():
        expected = theirs(torch.from_numpy(images.transpose(0, 3, 1, 2))).numpy()
    largest = np.abs(expected).max()
    assert np.abs(expected[0] - expected[1]).max() > 0.01 * largest  # no dead features
    arrays = {key: value.numpy() for key, value in theirs.state_dict().items()}
    ours = checkpoint.from_state_dict(arrays, name)
    found = np.asarray(jax.jit(lambda images: ours(images))(images))
    difference = np.abs(found - expected).max() / largest
    print(f"{name}: {difference:.1e}")  # the table of docs/networks.md
    assert difference <= 1e-10


@pytest.mark.slow
@pytest.mark.parametrize("name", [n for n in ARCHITECTURES if not n.startswith("timm/resnet")])
def test_every_architecture_has_its_shapes(name):
    made = ARCHITECTURES[name]
    model = nnx.eval_shape(lambda: made(classes=7, rngs=nnx.Rngs(0)))
    images = jax.ShapeDtypeStruct((2, 64, 64, 3), jnp.float32)
    assert nnx.eval_shape(lambda model, images: model(images), model, images).shape == (2, 7)


@pytest.mark.slow
@pytest.mark.parametrize("name", ["small/convnext", "small/resnet"])
def test_a_file_is_read_by_its_names_and_becomes_attention(name, tmp_path):
    arrays = state_dict(name)
    counted = arrays | {"bn1.num_batches_tracked": np.array(3.0)}
    write_file(tmp_path / "net.safetensors", write_safetensors(counted, {}))
    model = load_checkpoint(tmp_path / "net.safetensors", name)
    images = jnp.asarray(np.random.default_rng(1).normal(size=(2, 33, 32, 3)))
    assert model(images).shape == (2, 10)
    held = dict(checkpoint.tensors(model))
    for key, tensor in held.items():
        found = np.asarray(getattr(tensor.module, tensor.attribute)[...])
        assert_equal(arrange(found, tensor.layout), arrays[key])
    _, report = to_attention(model, images)
    assert report.same_class
    assert report.difference < 1e-12 * report.largest


@pytest.mark.slow
def test_timm_names_mobilenets_modules_otherwise():
    theirs = checkpoint.TIMM_MOBILE
    ours = {key.rpartition(".")[0] for key in state_dict("torchvision/mobilenet_v2")}
    assert ours == set(theirs.values())
    assert theirs["blocks.1.0.conv_dw"] == "features.2.conv.1.0"
    assert isinstance(nnx.eval_shape(lambda: MobileNetV2(rngs=nnx.Rngs(0))), MobileNetV2)


@pytest.mark.slow
def test_what_does_not_fit_is_listed():
    arrays = state_dict("small/resnet")
    arrays["layer9.weight"] = arrays.pop("layer1.0.conv1.weight")
    arrays["conv1.weight"] = np.moveaxis(arrays["conv1.weight"], 0, -1)
    with pytest.raises(ValueError, match="not those of small/resnet") as caught:
        checkpoint.from_state_dict(arrays, "small/resnet")
    said = str(caught.value)
    assert "layer1.0.conv1.weight is missing; layer9.weight is unexpected" in said
    assert "conv1.weight has shape (3, 7, 7, 64), expected (64, 3, 7, 7)" in said
    with pytest.raises(ValueError, match=r"look like a ResNet of bottleneck blocks .*269 differ: "):
        checkpoint.from_state_dict(arrays, "timm/convnext_tiny")
    backbone = {f"backbone.{name}": value for name, value in arrays.items()} | {"head": np.ones(1)}
    other = {name.replace("layer", "stage"): value for name, value in backbone.items()}
    for stored in (backbone, other):
        with pytest.raises(ValueError, match=r"not those of small/resnet") as caught:
            checkpoint.from_state_dict(stored, "small/resnet")
        assert len(str(caught.value)) < 3500
    assert "some stand below 'backbone.': give these alone" in str(caught.value)


@pytest.mark.parametrize("prefix", ["module.", "_orig_mod.", "model.backbone."])
def test_a_prefix_of_all_names_is_left_out(prefix):
    arrays = {prefix + name: value for name, value in state_dict("small/resnet").items()}
    model = checkpoint.from_state_dict(arrays, "small/resnet")
    expected = np.moveaxis(arrays[f"{prefix}conv1.weight"], (0, 1), (-1, -2))
    np.testing.assert_array_equal(model.conv1.kernel[...], expected)


def test_a_weight_norm_in_a_network_is_computed():
    arrays = state_dict("small/resnet")
    v = arrays.pop("layer1.0.conv1.weight")
    expected = np.stack([3 * kernel / np.sqrt(np.square(kernel).sum()) for kernel in v])
    above = "layer1.0.conv1.parametrizations.weight.original"
    arrays |= {f"{above}0": np.full((len(v), 1, 1, 1), 3.0), f"{above}1": v}
    kernel = checkpoint.from_state_dict(arrays, "small/resnet").layer1[0].conv1.kernel[...]
    np.testing.assert_allclose(np.moveaxis(kernel, (-1, -2), (0, 1)), expected, rtol=1e-6)


def test_other_files_and_names_are_refused(tmp_path):
    with pytest.raises(
        ValueError, match="architecture='resnet50', but expected one of torchvision"
    ):
        load_checkpoint(tmp_path / "net.safetensors", "resnet50")
    (tmp_path / "net.pt").write_bytes(b"\x80\x02}q\x00.")
    with pytest.raises(ValueError, match=r"net\.pt"):
        load_checkpoint(tmp_path / "net.pt", "torchvision/resnet50")
    with pytest.raises(OSError, match="none"):
        load_checkpoint(tmp_path / "none.safetensors", "torchvision/resnet50")


def test_bins_may_overlap():
    images = jnp.arange(5.0).reshape(1, 5, 1, 1)
    assert pooled(images, 3)[0, :, 0, 0].tolist() == [0.5, 2.0, 3.5]
