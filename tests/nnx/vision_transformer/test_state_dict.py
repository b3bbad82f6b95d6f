"""Our vision transformer by timm's names: the same function, there and back, refusals."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from flax import nnx
from torch_packages import torch_package

from convattn.diagnosis.transformers import attention_layers
from convattn.fast.application import attention_maps
from convattn.initialization import Rotary, convolutional
from convattn.networks.vision_transformer.state_dicts import read_transformer
from convattn.networks.weights.files import WeightsFile
from convattn.nnx.vision_transformer.model import VisionTransformer
from convattn.nnx.vision_transformer.settings import VisionTransformerSettings
from convattn.nnx.vision_transformer.state_dict import load_state_dict, state_dict

SIZES = {"depth": 2, "width": 12, "inner": 20, "heads": 3, "head_width": 4, "patch_size": 4}
NAMED = {"projection": "learned", "position": "absolute"}


def model_of(seed=0, **options):
    settings = VisionTransformerSettings(**(SIZES | NAMED | options))
    return VisionTransformer(settings, classes=5, image_size=(8, 12), rngs=nnx.Rngs(seed))


def random_like(arrays):
    rng = np.random.default_rng(0)
    return {n: rng.normal(size=a.shape).astype(np.float32) / 3 for n, a in arrays.items()}


@pytest.mark.parametrize("options", [{}, {"pooling": "class"}, {"position": "rotary"}], ids=str)
@pytest.mark.quick(1)
def test_there_and_back(options):
    model, other = model_of(**options), model_of(1, **options)
    arrays = random_like(state_dict(model))
    for each in (model, other):
        load_state_dict(each, arrays)
        assert all(np.array_equal(array, arrays[n]) for n, array in state_dict(each).items())
    parts = (nnx.state(each, nnx.Param) for each in (model, other))
    same = jax.tree.map(lambda *pair: np.array_equal(*pair), *parts)
    assert all(jax.tree.leaves(same)), same  # no parameter is left out


@pytest.mark.slow
def test_parameters_of_64_bits():
    settings = VisionTransformerSettings(**SIZES, **NAMED)
    options = {"classes": 5, "image_size": (8, 12), "rngs": nnx.Rngs(0)}
    model = VisionTransformer(settings, dtype="float64", **options)
    arrays = {
        name: array.astype(float) + 2**-40 for name, array in random_like(state_dict(model)).items()
    }
    load_state_dict(model, arrays)
    assert all(np.array_equal(array, arrays[n]) for n, array in state_dict(model).items())
    assert nnx.eval_shape(model, jnp.ones((1, 8, 12, 3))).dtype == jnp.float64


@pytest.mark.quick(1)
@pytest.mark.parametrize("pooling", ["mean", "class"])
def test_the_names_mean_what_they_mean_in_timm(pooling):
    """The attention of each layer, as the reader of timm's names works it out in float64."""
    model = model_of(pooling=pooling)
    arrays = random_like(state_dict(model))
    load_state_dict(model, arrays)
    images = np.random.default_rng(1).normal(size=(2, 8, 12, 3))
    read = read_transformer(WeightsFile("model", arrays, {}), 3)
    tokens = model.embedded(jnp.asarray(images, jnp.float32))
    for layer, observed in zip(model.layers, attention_layers(read, images), strict=True):
        inputs = layer.mixing_inputs(tokens)
        weights = np.asarray(attention_maps(layer.mixing.layer(), inputs).weights)
        assert np.abs(weights.reshape(observed.attention.shape) - observed.attention).max() < 1e-5
        tokens = layer(tokens)


@pytest.mark.parametrize("position", ["absolute", "rotary"])
def test_logits_are_those_of_timm(position):
    torch, timm = torch_package("timm")
    model = model_of(pooling="class" if position == "absolute" else "mean", position=position)
    arrays = random_like(state_dict(model))
    load_state_dict(model, arrays)
    how = {"img_size": (8, 12), "patch_size": 4, "embed_dim": 12, "depth": 2, "num_heads": 3}
    how |= {"mlp_ratio": 20 / 12, "num_classes": 5}
    turned = {"attn_type": "rope", "rope_temperature": 100.0, "use_abs_pos_emb": False}
    turned |= {"use_rot_pos_emb": True, "class_token": False, "use_fc_norm": False}
    if position == "absolute":
        theirs = timm.models.VisionTransformer(**how).eval()
    else:
        theirs = timm.models.eva.Eva(**how, **turned).eval()
    theirs.load_state_dict({name: torch.from_numpy(array) for name, array in arrays.items()})
    images = np.random.default_rng(1).normal(size=(2, 8, 12, 3)).astype(np.float32)
    with torch.no_grad():
        expected = theirs(torch.from_numpy(images).permute(0, 3, 1, 2)).numpy()
    assert np.abs(np.asarray(model(images)) - expected).max() < 1e-4 * np.abs(expected).max()


@pytest.mark.parametrize(
    "options",
    [
        {"position": "relative"},
        {"projection": "identity", "width": 48},
        {"mixing": "convolution", "projection": "learned", "width": 16},
    ],
    ids=["relative", "identity", "convolution"],
)
@pytest.mark.quick(1)
def test_models_that_timm_does_not_have(options):
    with pytest.raises(ValueError, match="as timm's vision transformers have"):
        state_dict(model_of(**options))


@pytest.mark.parametrize("columns_first", [False, True], ids=["its own", "others"])
@pytest.mark.quick(1)
def test_a_model_with_rotary_positions_starts_as_convolutions(columns_first):
    """Its mixing of tokens, with the nearest token outside the grid; not by other frequencies."""
    model, rotary = model_of(position="rotary", head_width=8), Rotary.axial(8)
    if columns_first:
        rotary = Rotary.axial(8, columns_first=True)
    how = {"heads": 3, "image_size": (8, 12), "kernel_size": (2, 3), "leak": 1e-5}
    initialization = convolutional(random_like(state_dict(model)), "filters", rotary=rotary, **how)
    load_state_dict(model, initialization.parameters)
    images = np.random.default_rng(1).normal(size=(2, 8, 12, 3))
    tokens = model.embedded(jnp.asarray(images, jnp.float32))
    for layer, start in zip(model.layers, initialization.layers, strict=True):
        inputs = layer.mixing_inputs(tokens)
        padded = np.pad(np.asarray(inputs), ((0, 0), (1, 1), (1, 1), (0, 0)), mode="edge")
        taps = [
            padded[:, 1 + a : 3 + a, b : 3 + b] @ start.kernel[a, b] for a, b in np.ndindex(2, 3)
        ]
        expected = sum(taps) + np.asarray(layer.mixing.bias[...])
        gap = np.linalg.norm(np.asarray(layer.mixing(inputs)) - expected, axis=-1).max()
        assert start.distance < 1e-3 * start.largest
        assert gap > 100 * start.distance if columns_first else gap <= start.distance
        tokens = layer(tokens)


def test_attention_layers_do_not_turn():
    with pytest.raises(ValueError, match="does not turn queries and keys"):
        model_of(position="rotary").attention_layers()


def test_refused_parameters():
    model = model_of()
    arrays = state_dict(model)
    wrong = {n: a for n, a in arrays.items() if n != "pos_embed"}
    wrong |= {"cls_token": np.ones(3), "norm.bias": np.ones(3)}
    with pytest.raises(ValueError, match=r"pos_embed is missing; cls_token is unexpected; norm\.b"):
        load_state_dict(model, wrong)
