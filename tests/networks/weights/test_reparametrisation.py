"""Re-parametrised kernels of state dicts, computed as PyTorch computes them."""

import numpy as np
import pytest

from convattn.networks.weights.convolution_layout import find_convolution
from convattn.networks.weights.files import WeightsFile
from convattn.networks.weights.formats import WeightsRefused
from convattn.networks.weights.reparametrisation import computed

STORED = np.array([-3, 2, 0, -2, 3, 1, -1, -3, 2, 0, -2, 3], np.float32).reshape(3, 2, 1, 2)
MASK = np.array([1, 1, 0, 1, 1, 0, 0, 1, 0, 0, 1, 1], np.float32).reshape(STORED.shape)


def array(*numbers: float, shape: tuple[int, ...] = (-1,)) -> np.ndarray:
    return np.array(numbers, np.float32).reshape(shape)


def normed(factor: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """g of a weight norm, for each index of the axis where it has several, and g v/|v|."""
    others = tuple(axis for axis, size in enumerate(factor.shape) if size == 1) or None
    lengths = np.sqrt((STORED**2).sum(others, keepdims=others is not None))
    return np.asarray(factor * lengths, np.float32), STORED * factor


def stepped(axis: int, last: str = "u") -> tuple[np.ndarray, np.ndarray, float]:
    """u along Wv, v and σ = uᵀWv, W's rows by an axis: as a step of a spectral norm leaves them.

    A step of the parametrization leaves v along Wᵀu.
    """
    matrix = np.moveaxis(STORED, axis, 0).reshape(STORED.shape[axis], -1)
    matrix = matrix if last == "u" else matrix.T
    given = np.arange(1.0, 1 + matrix.shape[1])
    given /= np.linalg.norm(given)
    value = np.linalg.norm(matrix @ given)
    pair = np.float32(matrix @ given / value), np.float32(given)
    return *(pair if last == "u" else pair[::-1]), value


NORMS = [  # of torch.nn.utils.weight_norm at dim 0, 1, 3 and None
    normed(array(1.5, 3, 4.5, shape=(3, 1, 1, 1))),
    normed(array(1.5, 3, shape=(1, 2, 1, 1))),
    normed(array(1.5, 3, shape=(1, 1, 1, 2))),
    normed(array(1.5, shape=())),
]
SPECTRAL = [*(stepped(axis) for axis in (0, 1)), stepped(0, "v"), stepped(1, "v")]
(U0, V0, _), (U1, V1, _) = SPECTRAL[:2]
OLD = {
    "g": "weight_g",
    "v": "weight_v",
    "orig": "weight_orig",
    "u": "weight_u",
    "mask": "weight_mask",
}
NEW = {
    "g": "parametrizations.weight.original0",
    "v": "parametrizations.weight.original1",
    "orig": "parametrizations.weight.original",
    "u": "parametrizations.weight.0._u",
}


def state(names: dict[str, str], **parts: np.ndarray) -> dict[str, np.ndarray]:
    names = names | ({"v": "parametrizations.weight.0._v"} if names is NEW and "u" in parts else {})
    return {f"net.{names[part]}": array for part, array in parts.items()}


KERNELS = [
    *((state(names, g=g, v=STORED), kernel) for names in (OLD, NEW) for g, kernel in NORMS),
    *(
        (state(names, orig=STORED, u=u, v=v), STORED / value)
        for names in (OLD, NEW)
        for u, v, value in SPECTRAL
    ),
    (state(OLD, orig=STORED, mask=MASK), [-3, 2, 0, -2, 3, 0, 0, -3, 0, 0, -2, 3]),
    (
        {
            "net.weight_g": array(17**0.5, 20**0.5, 17**0.5, shape=(3, 1, 1, 1)),
            "net.weight_v_orig": STORED,
            "net.weight_v_mask": MASK,
        },
        [-3, 2, 0, -2, 3.162278, 0, 0, -3.162278, 0, 0, -2.287087, 3.430631],
    ),
]


@pytest.mark.parametrize(("stored", "kernel"), KERNELS)
def test_a_kernel_is_computed_from_its_parts(stored, kernel):
    file = WeightsFile("net", {**stored, "net.bias": np.ones(3, np.float32)}, {})
    for layer in ("net", "net.weight", None):
        result = find_convolution(file, layer)
        expected = np.reshape(kernel, STORED.shape).transpose(2, 3, 1, 0)
        np.testing.assert_allclose(result.kernel, expected, rtol=3e-6, atol=0)
        assert result.kernel.dtype == np.float32
        assert result.bias_name == "net.bias"
        assert result.parts
    for part in stored:
        with pytest.raises(WeightsRefused, match=r"is a part of .*'net\.weight'"):
            find_convolution(file, part, "oihw")


@pytest.mark.parametrize("axis", [0, 1])
def test_of_two_axes_that_fit_a_spectral_norm_takes_that_of_its_vectors(axis):
    """u is along Wv, as at every step; σ = uᵀWv is 5, and on the other axis it would be 11.

    u and the result are rounded to float32.
    """
    matrix = np.array([[4, 13], [3, 0]], np.float32).reshape(2, 2, 1, 1)
    stored = state(OLD, orig=np.moveaxis(matrix, 0, axis), u=array(0.8, 0.6), v=array(1, 0))
    kernel = computed(stored).arrays["net.weight"]
    np.testing.assert_allclose(kernel, stored["net.weight_orig"] / 5, rtol=2.0**-22, atol=0)


def test_a_spectral_norm_that_was_never_run_is_along_the_first_axis():
    """Wv is (1, -1/2) or, along the second axis, (1, 0), which is nearer to u, but not near it."""
    stored = np.array([[1, 0], [-0.5, 1]], np.float32).reshape(2, 2, 1, 1)
    result = computed(state(OLD, orig=stored, u=array(0.6, 0.8), v=array(1, 0)))
    np.testing.assert_allclose(result.arrays["net.weight"], 5 * stored, rtol=4 * 2.0**-23)


def test_a_spectral_norm_of_no_certain_axis_is_refused():
    """u is near (3, 4)/5, Wv along the second axis, as if the weights had gone a step further."""
    stored = np.array([[3, 4], [-1, 0]], np.float32).reshape(2, 2, 1, 1)
    result = computed(state(OLD, orig=stored, u=array(0.8, 0.6), v=array(1, 0)))
    assert result.refused.keys() == {"net.weight"}


@pytest.mark.parametrize("joined", ["net,{}", "net|{}", "['net']['{}']"])
def test_parts_are_known_however_their_names_are_joined(joined):
    g, kernel = NORMS[0]
    stored = {joined.format("weight_g"): g, joined.format("weight_v"): STORED}
    convolution = find_convolution(WeightsFile("net", stored, {}), "net")
    expected = np.reshape(kernel, STORED.shape).transpose(2, 3, 1, 0)
    np.testing.assert_allclose(convolution.kernel, expected, rtol=3e-6, atol=0)
    assert len(convolution.parts) == 2
    del stored[joined.format("weight_g")]
    for layer in ("net", joined.format("weight_v")):
        with pytest.raises(WeightsRefused, match=r"net.weight is re-parametrised"):
            find_convolution(WeightsFile("net", stored, {}), layer)


WEIGHT, GAIN = STORED, np.ones((3, 1, 1, 1), np.float32)
REFUSED = [
    {"net.weight_g": np.ones((3, 2, 1, 1), np.float32), "net.weight_v": STORED},
    {"net.weight_v": STORED},
    {"net.weight_orig": STORED},
    {"net.weight_orig": STORED, "net.weight_u": U0, "net.weight": STORED},
    {"net.weight_orig": STORED, "net.weight_mask": MASK, "net.weight": STORED},
    {"net.weight_orig": STORED, "net.weight_u": U0, "net.weight_v": V1},
    {"net.weight_orig": STORED, "net.weight_mask": MASK[:2]},
    {"net.parametrizations.weight.original": STORED},
    {"net.parametrizations.weight.original": STORED, "net.parametrizations.weight.0.base": STORED},
    {
        "net.parametrizations.weight.original0": STORED,
        "net.parametrizations.weight.original1": MASK,
    },
    {"net.weight": WEIGHT, "net.weight_u": U0},
    {"net.weight": WEIGHT, "net.gain": GAIN},
    {"net.weight": WEIGHT, "net.mask": MASK},
    {"net.weight": WEIGHT, "net.lora_A.weight": STORED, "net.lora_B.weight": STORED},
    {"net.base_layer.weight": WEIGHT, "net.lora_A.default.weight": STORED},
    {"net.base_layer.weight": WEIGHT, "net.ia3_l.default": np.ones((1, 3), np.float32)},
    {"net.original_module.weight": WEIGHT, "net.modules_to_save.default.weight": -STORED},
    {"net.layer_instance.kernel": WEIGHT, "net.scales.('kernel',)": np.ones(3, np.float32)},
    {"net.weight": np.ones((3, 2, 2, 1), np.int8), "net.scale": np.ones((), np.float32)},
    {"net.weight": WEIGHT, "net.weight_scale": np.ones(3, np.float32)},
]
FLAX = [  # the names of nn.WeightNorm and nn.SpectralNorm around nn.Conv, and of Haiku
    ("params/{}net/kernel", "params/{}WeightNorm_0/net/kernel/scale"),
    ("params.{}net.kernel", "params.{}mine.net/kernel/scale"),
    ("{}net/kernel", "{}WeightNorm_0/net/kernel/scale"),
    ("params/{}net/kernel", "batch_stats/{}SpectralNorm_0/net/kernel/sigma"),
    ("{}net/w", "sn_params_tree/{}net__w/u0"),  # of hk.SNParamsTree
    ("top/~/{}net/w", "top/sn_params_tree/top__~__{}net__w/sigma"),
]


@pytest.mark.parametrize("above", ["", "blocks_0/"])
@pytest.mark.parametrize(("kernel", "other"), FLAX)
def test_a_kernel_that_flax_normalises_is_refused(above, kernel, other):
    """Linen's names of the norm hold those of the kernel, without the norm's own module."""
    name = kernel.format(above)
    stored = {name: STORED, f"{name}_2": STORED, other.format(above): np.ones(3, np.float32)}
    for changed in ({}, {"params/norm/scale": np.ones(3)}):
        assert computed(stored | changed).refused.keys() == {name}
    left = computed({name: STORED, "params/norm/scale": np.ones(3), "net/scale": np.ones(3)})
    assert not left.refused


@pytest.mark.parametrize("stored", REFUSED)
def test_parts_of_another_kind_are_refused_and_never_suggested(stored):
    file = WeightsFile("net", stored, {"format": "pt"})
    layers = (None, "net", *(name for name in stored if stored[name].ndim == 4))
    for layer in layers:
        if layer is None or not any(word in layer for word in ("gain", "lora", "mask", "to_save")):
            with pytest.raises(
                WeightsRefused, match=r"re-parametrised|beside it|no layer"
            ) as error:
                find_convolution(file, layer, "oihw")
            assert "did you mean 'net.weight_" not in str(error.value)
    with pytest.raises(WeightsRefused, match=r"but expected"):
        file.require_computed()


def test_a_bias_that_cannot_be_computed_is_not_left_out():
    stored = {"net.weight": WEIGHT, "net.parametrizations.bias.original": np.ones(3, np.float32)}
    with pytest.raises(WeightsRefused, match=r"net\.bias is re-parametrised"):
        find_convolution(WeightsFile("net", stored, {}), "net")


def test_what_the_parts_do_not_say_is_said():
    square, right = np.arange(16.0).reshape(2, 2, 2, 2), np.eye(8)[0]
    left = square.reshape(2, 8) @ right + [0.5, 0]  # W has moved since the last step
    left /= np.linalg.norm(left)
    spectral = {"weight_orig": square, "weight_u": left, "weight_v": right}
    first = computed({f"net.{name}": array for name, array in spectral.items()})
    assert "taken along the first axis" in first.assumed["net.weight"]
    scaled = {"original0": np.ones((2, 1, 1, 1)), "original1": square + 1}
    numbered = computed({f"net.parametrizations.weight.{k}": v for k, v in scaled.items()})
    assert "taken for a weight norm alone" in numbered.assumed["net.weight"]
    named = computed({"net.weight_g": scaled["original0"], "net.weight_v": square + 1})
    assert named.assumed == {}
    iterated = {"original": square, "0._u": left, "0._v": right}
    stepped = computed({f"net.parametrizations.weight.{k}": v for k, v in iterated.items()})
    assert "first axis" in stepped.assumed["net.weight"]
    assert "taken for a spectral norm alone" in stepped.assumed["net.weight"]
    np.testing.assert_array_equal(named.arrays["net.weight"], numbered.arrays["net.weight"])


def test_other_tensors_with_such_names_stay():
    matrix = np.eye(3, dtype=np.float32)
    names = (
        "a.weight_q",
        "a.weight_k",
        "a.weight_v",
        "a.bias_k",
        "a.bias_v",
        "pos_bias_u",
        "pos_bias_v",
    )
    stored = dict.fromkeys(names, matrix)
    stored |= {"conv.weight": STORED * MASK, "conv.mask": MASK, "proj_g": matrix, "proj_v": matrix}
    assert computed(stored) == (stored, {}, {}, {})


def test_torch_computes_the_same():
    torch = pytest.importorskip("torch")
    pytest.importorskip("torch.nn.utils.prune")
    utils, rng = torch.nn.utils, np.random.default_rng(0)
    makers = [
        *(lambda m, d=d: utils.weight_norm(m, dim=d) for d in (0, 1, None)),
        *(lambda m, d=d: utils.parametrizations.weight_norm(m, dim=d) for d in (0, 2)),
        *(lambda m, d=d: utils.spectral_norm(m, dim=d) for d in (0, 1)),
        *(lambda m, d=d: utils.parametrizations.spectral_norm(m, dim=d) for d in (0, 1)),
        lambda m: utils.prune.l1_unstructured(m, "weight", 20),
    ]
    image = torch.from_numpy(rng.normal(size=(1, 4, 5, 5)).astype(np.float32))
    for make in makers:  # as many channels in as out: u alone does not tell the axis
        module = make(torch.nn.Conv2d(4, 4, 3))
        module(image)
        module.eval()
        module(image)
        stored = {name: value.numpy() for name, value in module.state_dict().items()}
        value = computed(stored).arrays["weight"]
        np.testing.assert_allclose(value, module.weight.detach().numpy(), rtol=1e-5, atol=1e-6)
