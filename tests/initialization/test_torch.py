"""timm's networks, initialised by name, in PyTorch: their attention is the convolution."""

import numpy as np
import pytest
from torch_packages import torch_package

from convattn.initialization import Rotary, convolutional
from convattn.initialization.positions import CHANNELS

torch = pytest.importorskip("torch")
RANGE = (-1.0, 1.0)


GRID = (6, 8)
OFFSET = {"rope_rotate_half": True, "rope_grid_offset": 1.0}
COARSE = {"ref_feat_shape": (3, 3), "class_token": False, "global_pool": "avg"}
DINO = {"rope_type": "dinov3", "rope_rotate_half": True, "num_reg_tokens": 2}
TURNED = {
    "class token": ({"rope_grid_indexing": "xy"}, Rotary.axial(16, columns_first=True)),
    "added": ({"use_abs_pos_emb": True}, Rotary.axial(16)),
    "halves": (OFFSET, Rotary.axial(16, layout="halves", origin=(1.0, 1.0))),
    "reference grid": (COARSE, Rotary.axial(16, spacing=(3 / 6, 3 / 8))),
    "dinov3": (
        DINO,
        Rotary.axial(
            16, layout="halves", spacing=(4 * np.pi / 6, 4 * np.pi / 8), origin=(-5 / 2, -7 / 2)
        ),
    ),
}


@pytest.fixture(scope="module")
def timm():
    torch.manual_seed(0)
    return torch_package("timm")[1]


def test_the_first_layer_of_timms_network_is_the_convolution(timm):
    network = timm.create_model("vit_tiny_patch16_224").eval()
    initialization = convolutional(network.state_dict(), "filters", image_range=RANGE)
    arrays = {name: torch.from_numpy(array) for name, array in initialization.parameters.items()}
    network.load_state_dict(arrays)
    rng = np.random.default_rng(0)
    images = rng.uniform(*RANGE, (2, 3, 224, 224)).astype(np.float32)
    images[1, :, :100] = RANGE[1]
    activations = {}
    block = network.blocks[0]
    block.norm1.register_forward_hook(
        lambda module, inputs, output: activations.update(normal=output)
    )
    block.attn.register_forward_hook(
        lambda module, inputs, output: activations.update(branch=output)
    )
    with torch.no_grad():
        network(torch.from_numpy(images))
    start, channels = initialization.layers[0], block.norm1.normalized_shape[0] - CHANNELS
    tokens = (
        activations["normal"][:, 1:, :channels].reshape(2, 14, 14, channels).permute(0, 3, 1, 2)
    )
    kernel = torch.from_numpy(start.kernel.astype(np.float32)).permute(3, 2, 0, 1)
    expected = torch.nn.functional.conv2d(tokens, kernel, padding=1).permute(0, 2, 3, 1)
    branch = activations["branch"][:, 1:, :channels].reshape(2, 14, 14, channels)
    gap = (branch - expected).norm(dim=-1).max().item()
    assert 0 < gap <= start.distance
    assert start.distance < start.largest
    assert start.leak <= 0.1
    assert not activations["branch"][..., channels:].any()


def turned(timm, options):
    """A small network with rotary positions, as those of RoPE-ViT and DINOv3."""
    usual = {
        **{"img_size": (24, 32), "patch_size": 4, "embed_dim": 48, "depth": 2, "num_heads": 3},
        **{"attn_type": "rope", "init_values": 1e-5, "rope_temperature": 100.0},
        **{"use_abs_pos_emb": False, "use_rot_pos_emb": True, "num_classes": 5},
    }
    return timm.models.eva.Eva(**(usual | options)).eval()


def gaps(network, initialization):
    """`[layers]`: how far each branch is from the convolution with the edge repeated."""
    activations = [{} for _ in network.blocks]
    for block, recorded in zip(network.blocks, activations, strict=True):
        block.norm1.register_forward_hook(
            lambda *call, recorded=recorded: recorded.update(normal=call[-1])
        )
        block.attn.register_forward_hook(
            lambda *call, recorded=recorded: recorded.update(branch=call[-1])
        )
    images = np.random.default_rng(0).uniform(*RANGE, (3, 3, 24, 32)).astype(np.float32)
    images[1, :, :, :16] = 100 * RANGE[1]
    with torch.no_grad():
        network(torch.from_numpy(images))
    distances = []
    for recorded, start in zip(activations, initialization.layers, strict=True):
        channels = start.kernel.shape[2]
        tokens, branch = (
            recorded[part][:, network.num_prefix_tokens :, :channels].reshape(3, *GRID, channels)
            for part in ("normal", "branch")
        )
        kernel = torch.from_numpy(start.kernel.astype(np.float32)).permute(3, 2, 0, 1)
        padded = torch.nn.functional.pad(tokens.permute(0, 3, 1, 2), (1,) * 4, mode="replicate")
        expected = torch.nn.functional.conv2d(padded, kernel).permute(0, 2, 3, 1)
        distances.append((branch - expected).norm(dim=-1).max().item())
    return np.array(distances)


@pytest.mark.parametrize("kind", TURNED)
def test_timms_networks_with_rotary_positions_are_convolutions(timm, kind):
    """With so small a leak that float32 is nearly all that is between; other angles are far."""
    options, rotary = TURNED[kind]
    network = turned(timm, options)
    how = {"heads": 3, "image_size": (24, 32), "every_layer": True, "leak": 1e-5}
    initialization = convolutional(network.state_dict(), "filters", rotary=rotary, **how)
    arrays = {name: torch.from_numpy(array) for name, array in initialization.parameters.items()}
    network.load_state_dict(arrays)
    distances = np.array([layer.distance for layer in initialization.layers])
    assert (gaps(network, initialization) <= distances).all()
    assert (distances < 1e-3 * np.array([layer.largest for layer in initialization.layers])).all()
    wrong = Rotary(rotary.turns[::-1], rotary.layout, rotary.origin)
    other = convolutional(network.state_dict(), "filters", rotary=wrong, **how)
    network.load_state_dict({n: torch.from_numpy(a) for n, a in other.parameters.items()})
    assert (gaps(network, other) > 100 * distances).all()


def test_timms_networks_without_biases_of_keys_are_refused(timm):
    arrays = turned(timm, {"attn_type": "eva"}).state_dict()
    with pytest.raises(ValueError, match="attn_type='rope'"):
        convolutional(arrays, heads=3, image_size=(24, 32), rotary=Rotary.axial(16))
