"""Which arrays of a file are a convolution, and in which order their axes stand."""

import numpy as np
import pytest

from convattn.networks.weights.convolution_layout import arrange, find_convolution
from convattn.networks.weights.files import WeightsFile
from convattn.networks.weights.formats import WeightsRefused

OUT, IN, ROWS, COLUMNS = 8, 3, 5, 7
KERNEL = np.arange(OUT * IN * ROWS * COLUMNS, dtype=np.float32).reshape(ROWS, COLUMNS, IN, OUT)
OHWI = np.einsum("hwio->ohwi", KERNEL)
OIHW, BIAS = np.einsum("hwio->oihw", KERNEL), np.arange(OUT, dtype=np.float32)


def file(metadata=None, **arrays) -> WeightsFile:
    named = {name.replace("__", ".").replace("_S_", "/"): a for name, a in arrays.items()}
    return WeightsFile("net", named, metadata or {})


ORDERS_OF_IMAGES = (
    r"--layout hwio for \[K, K, in, out\] .Flax, Keras. or --layout oihw for \[out, in, K, K\] "
)


def keras(kernel: np.ndarray, head: str) -> WeightsFile:
    return WeightsFile("net", {f"{head}kernel:0": kernel, f"{head}bias:0": BIAS}, {})


@pytest.mark.parametrize(
    ("weights", "layer", "options"),
    [
        (file(conv__weight=OIHW, conv__bias=BIAS), "conv", {}),
        (file(conv__weight=OIHW, conv__bias=BIAS), "conv.weight", {}),
        (file(conv_S_kernel=KERNEL, conv_S_bias=BIAS), "conv", {}),
        (file(a_S_b__kernel=KERNEL, a_S_b__bias=BIAS), "a/b", {}),
        (file(kernel=KERNEL, bias=BIAS), None, {}),
        (file(weight=OIHW, bias=BIAS), None, {}),
        (file(conv=KERNEL, conv__bias=BIAS), "conv", {"layout": "hwio"}),
        (file(conv=OIHW, conv_S_bias=BIAS), "conv", {"layout": "oihw"}),
        (file({"format": "pt"}, conv=OIHW, conv__bias=BIAS), "conv", {}),
        (file({"format": "flax"}, conv=KERNEL, conv__bias=BIAS), "conv", {}),
        (file({"format": "mlx"}, conv__weight=OHWI, conv__bias=BIAS), "conv", {}),
        (file(conv__weight=OHWI, conv__bias=BIAS), "conv", {"layout": "ohwi"}),
        (keras(KERNEL, "conv2d/"), "conv2d", {}),
        (keras(KERNEL, "conv2d/"), "conv2d/kernel:0", {"layout": "hwio"}),
        (keras(KERNEL, ""), None, {}),
    ],
)
def test_the_kernel_and_its_bias_are_found(weights, layer, options):
    convolution = find_convolution(weights, layer, **options)
    np.testing.assert_array_equal(convolution.kernel, KERNEL, strict=True)
    np.testing.assert_array_equal(convolution.bias, BIAS)
    assert convolution.kernel_name in weights.arrays
    assert convolution.bias_name in weights.arrays


def test_a_kernel_of_one_axis_is_found_alone_and_among_matrices():
    """PyTorch's `[out, in, K]`; what has two axes is no kernel."""
    kernel = np.arange(24, dtype=np.float32).reshape(2, 3, 4)
    for more in ({}, {"fc__matrix": OIHW[0, 0]}):
        convolution = find_convolution(file(conv__weight=kernel, **more))
        np.testing.assert_array_equal(convolution.kernel, kernel.transpose(2, 1, 0), strict=True)
        np.testing.assert_array_equal(arrange(convolution.kernel, "oihw"), kernel, strict=True)
        assert (convolution.kernel_name, convolution.bias_name) == ("conv.weight", None)
    assert (convolution.layout, convolution.inferred_from) == (
        "oihw",
        "told from the name 'weight'",
    )


def test_the_name_of_a_npy_file_tells_its_layout():
    alone = WeightsFile("x.npy", {"": OIHW}, {})
    assert find_convolution(alone, stem="conv1.weight").layout == "oihw"
    assert find_convolution(WeightsFile("x", {"": KERNEL}, {}), stem="kernel").layout == "hwio"
    with pytest.raises(WeightsRefused, match="nothing tells the order of the axes"):
        find_convolution(alone, stem="conv1")


@pytest.mark.parametrize(
    ("weights", "layer", "options", "message"),
    [
        (file(conv=KERNEL), "conv", {}, ORDERS_OF_IMAGES),
        (file(conv=KERNEL[0]), "conv", {}, r"hwio for \[K, in, out\] .* \[out, in, K\]"),
        (file(conv=KERNEL), "conv", {"layout": "nchw"}, "layout='nchw', but expected auto, hwio"),
        (file(conv__weight=OIHW), "cnov", {}, "no layer 'cnov'.*did you mean 'conv.weight'"),
        (
            file(fc__weight=np.ones((3, 4))),
            "fc",
            {},
            r"net: 'fc.weight' has shape \(3, 4\), but .*a dense layer",
        ),
        (file(c__weight=np.ones((1,) * 5)), "c", {}, "has 4 axes .images. or 3"),
        (file(c__weight=np.ones((1, 0, 3))), "c", {}, "none of them empty"),
        (file(c__weight=np.ones((3, 4))), None, {}, r"'c.weight' has shape \(3, 4\)"),
        (file(a__weight=OIHW, b__weight=OIHW), None, {}, "several kernels; name the layer"),
        (file(a=BIAS, b=BIAS), None, {}, "no kernel; name the layer"),
        (
            file(c__weight=OIHW, c__kernel=KERNEL),
            "c",
            {},
            "holds c.weight and c.kernel|holds c.kernel and c.weight",
        ),
        (file(c__weight=KERNEL, c__bias=BIAS), "c", {}, "read as oihw has 5 output.*layout hwio"),
        (file(c__weight=OIHW, c__bias=BIAS[None]), "c", {}, r"'c.bias' has shape \(1, 8\)"),
        (file(c__weight=OIHW * np.nan), "c", {}, "non-finite"),
        (file(c__weight=OIHW, c__bias=BIAS + np.inf), "c", {}, "c.bias has .* non-finite"),
    ],
)
def test_what_is_no_convolution_is_refused(weights, layer, options, message):
    with pytest.raises(WeightsRefused, match=message):
        find_convolution(weights, layer, **options)


@pytest.mark.parametrize(
    ("kernel", "bias"),
    [
        *(("conv.w", "conv.b"), ("conv.weight", "conv.b"), ("conv/kernel:0", "conv/bias")),
        *(("conv/kernel", "conv/bias:0"), ("conv/kernel", "conv/Bias:1"), ("w", "b")),
        *(("conv1_kernel", "conv1_bias"), ("conv1", "conv1_b"), ("conv1-w", "conv1-biases")),
        *(("w1", "b1"), ("W1", "b1"), ("W_conv1", "b_conv1"), ("kernel1", "bias1")),
        *(("conv1w", "conv1b"), ("convKernel", "convBias"), ("weights.0", "biases.0")),
        *(("weights/wc1", "biases/bc1"), ("0/0", "0/1"), ("arr_0", "arr_1"), ("c.wgt", "c.bs")),
    ],
)
def test_a_bias_under_an_unknown_name_is_not_left_out(kernel, bias):
    """Its name differs by a word or by a number."""
    alone = {kernel: KERNEL, bias: BIAS}
    for stored in (alone, alone | {"w2": KERNEL, "b2": BIAS}):
        net = WeightsFile("net", stored, {})
        with pytest.raises(WeightsRefused, match=f"^net holds '{bias}' .* beside '{kernel}', whic"):
            find_convolution(net, kernel, "hwio")
    net = WeightsFile("net", alone, {})
    assert find_convolution(net, kernel, "hwio", with_bias=False).bias is None


@pytest.mark.parametrize(
    ("other", "ignored"),
    [
        *(("fc.b", False), ("bias", False), ("conv.scale", True), ("conv.beta", True)),
        *(("conv.x_bias", True), ("conv.we_bias", True)),
    ],
)
def test_what_is_no_bias_of_the_kernel_is_none(other, ignored):
    net = WeightsFile("net", {"conv.weight": OIHW, other: BIAS}, {})
    if ignored:
        with pytest.raises(WeightsRefused, match=f"has '{other}' beside it, which may change"):
            find_convolution(net, "conv")
    else:
        assert find_convolution(net, "conv").bias is None
    short = WeightsFile("net", {"conv.weight": OIHW, "conv.b": BIAS[:-1]}, {})
    with pytest.raises(WeightsRefused, match=r"has 'conv\.b' beside it, which may change"):
        find_convolution(short, "conv")
    assert find_convolution(short, "conv", with_bias=False).bias is None


@pytest.mark.parametrize("shape", [(OUT,), (OUT, 1, 1), (1, OUT, 1, 1), (1, 1, 1, OUT), (1, OUT)])
def test_a_bias_with_axes_of_one_is_not_left_out(shape):
    net = WeightsFile("net", {"conv/w": KERNEL, "conv/b": BIAS.reshape(shape)}, {})
    with pytest.raises(WeightsRefused, match=r"holds 'conv/b' .* may be its bias .* --bias FILE"):
        find_convolution(net, "conv/w", "hwio")


@pytest.mark.parametrize(
    ("shape", "layout", "other"),
    [
        ((64, 3, 3, 3), "hwio", "oihw"),
        ((64, 32, 1, 1), "hwio", "oihw"),
        ((3, 3, 32, 64), "oihw", "hwio"),
        ((64, 32, 3), "hwio", "oihw"),
        *((shape, "oihw", "ohwi") for shape in ((64, 7, 7, 3), (32, 3, 3, 16), (32, 3, 3, 1))),
        *((shape, "hwio", "ohwi") for shape in ((64, 7, 7, 3), (32, 3, 3, 16), (64, 3, 32))),
        *((shape, "ohwi", "oihw") for shape in ((64, 3, 7, 7), (32, 16, 3, 3), (64, 32, 3))),
        *(((64, 3, 32), "oihw", "ohwi"), ((64, 1, 1, 32), "oihw", "ohwi")),
        ((3, 3, 3, 64), "oihw", "hwio"),
    ],
)
def test_a_kernel_that_is_hardly_of_its_layout_is_named(shape, layout, other):
    convolution = find_convolution(file(conv=np.ones(shape, np.float32)), "conv", layout)
    assert convolution.warning is not None
    assert convolution.warning.startswith(f"warning: {shape} is read as {layout}: ")
    assert convolution.warning.endswith(f"then give --layout {other}")
    assert find_convolution(file(conv=np.ones(shape, np.float32)), "conv", other).warning is None


@pytest.mark.parametrize(
    ("shape", "layout"),
    [
        *((shape, "oihw") for shape in ((96, 1, 1, 11), (8, 1, 1, 64))),
        *((shape, "oihw") for shape in ((96, 1, 11, 1), (64, 64, 1, 7), (100, 1, 3, 300))),
        *((shape, "oihw") for shape in ((64, 3, 7), (64, 1, 80), (32, 16, 8), (64, 3, 1))),
        *((shape, "ohwi") for shape in ((96, 3, 3, 1), (64, 1, 7, 64), (96, 1, 11, 1))),
    ],
)
def test_a_usual_kernel_of_its_layout_has_no_warning(shape, layout):
    kernel = np.ones(shape, np.float32)
    assert find_convolution(file(conv=kernel), "conv", layout).warning is None


def test_the_weights_of_mlx_in_a_file_without_metadata_are_named():
    convolution = find_convolution(file(conv__weight=np.ones((64, 7, 7, 3), np.float32)), "conv")
    assert convolution.warning.endswith(
        "As ohwi it is 7 × 7 taps of 3 channels in and 64 out: then give --layout ohwi"
    )


def test_an_attention_layer_is_no_convolution():
    with pytest.raises(WeightsRefused, match=r"^net is an attention layer .* use convattn conv"):
        find_convolution(file({"format": "convattn"}, output=KERNEL[0]))
    with pytest.raises(WeightsRefused, match=r"^net is an attention layer for one image size"):
        find_convolution(file({"format": "pt", "convattn": "{}"}, attn_mask=KERNEL[0]))
