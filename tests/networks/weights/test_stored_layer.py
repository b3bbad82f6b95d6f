"""Layers in files: what was saved is restored, and what is no layer is refused."""

import dataclasses
import hashlib
import json
from pathlib import Path

import hypothesis.strategies as st
import jax
import jax.numpy as jnp
import numpy as np
import pytest
from hypothesis import given
from strategies import seeds

import convattn as ca
from convattn import encodings
from convattn.encodings.layer import AttentionLayer, ContentScores
from convattn.networks.weights.files import WeightsFile, parse_weights, read_weights
from convattn.networks.weights.formats import WeightsRefused
from convattn.networks.weights.stored_layer import (
    encode,
    layer_arrays,
    layer_metadata,
    restore_layer,
)

HEADS, FEATURES, HEAD, WIDE, AXES = 4, 8, 3, 12, 2
DTYPES = ("float64", "float32", "bfloat16", "float16")


def numbers(generator: np.random.Generator, dtype: str):
    return lambda *shape: jnp.asarray(generator.standard_normal(shape), dtype)


def make_encoding(name: str, draw):
    offsets = ((0, 0), (-1, 2), (3, -1))
    return {
        "absolute": lambda: encodings.AbsoluteEncoding(draw(HEADS, 4, 2), draw(HEADS, 4, 2)),
        "absolute table": lambda: encodings.AbsoluteEncoding(
            draw(HEADS, 5, 2), draw(HEADS, 5, 2), draw(6, 7, 5)
        ),
        "axial": lambda: encodings.AxialEncoding(
            (draw(HEADS, 2, 3), draw(HEADS, 4, 1)), (draw(HEADS, 2, 3), draw(HEADS, 4, 1))
        ),
        "axial table": lambda: encodings.AxialEncoding(
            (draw(HEADS, 5, 2), draw(HEADS, 3, 1)),
            (draw(HEADS, 5, 2), draw(HEADS, 3, 1)),
            (draw(6, 5), draw(7, 3)),
        ),
        "axial rotary": lambda: encodings.AxialRotaryEncoding(
            *((draw(HEADS, 3), draw(HEADS, 2)) for _ in range(3)), (1000, 20)
        ),
        "bias": lambda: encodings.BiasEncoding(draw(HEADS, 3), None, offsets),
        "bias with a leak": lambda: encodings.BiasEncoding(
            draw(HEADS, 3), jnp.asarray(0.25, draw(1).dtype), offsets
        ),
        "enumerated": lambda: encodings.EnumeratedEncoding(
            draw(HEADS), draw(HEADS), offsets, (0, 1, 5), 7
        ),
        "gaussian": lambda: encodings.GaussianEncoding(draw(HEADS, AXES), draw(HEADS, AXES, AXES)),
        "learned": lambda: encodings.LearnedEncoding(draw(HEADS, 5), (draw(11, 2), draw(13, 3))),
        "mixture": lambda: encodings.MixtureEncoding(draw(HEADS, 3) ** 2, offsets),
        "polygon": lambda: encodings.PolygonEncoding(draw(HEADS, 2), offsets),
        "quadratic grid": lambda: encodings.QuadraticGridEncoding(
            (draw(2), draw(3)), (draw(2), draw(3)), ((1, 0), (0, 2), (1, 1), (1, 0))
        ),
        "quadratic": lambda: encodings.QuadraticEncoding(draw(HEADS), draw(HEADS, AXES)),
        "relative": lambda: encodings.RelativeEncoding(draw(HEADS, 3), draw(HEADS, 4, 3)),
        "relative table": lambda: encodings.RelativeEncoding(
            draw(HEADS, 3), draw(HEADS, 5, 3), draw(11, 13, 5)
        ),
        "rotary": lambda: encodings.RotaryEncoding(
            draw(HEADS, 3, AXES), draw(HEADS, 3), draw(HEADS, 3), (1000, 20)
        ),
        "scalar": lambda: encodings.ScalarEncoding(draw(HEADS), draw(3), None, offsets),
        "scalar limit": lambda: encodings.ScalarEncoding(
            draw(HEADS), draw(3), jnp.asarray(8, draw(1).dtype), offsets
        ),
    }[name]()


# The start of the SHA-256 of the .npz file of `layer_to_hold`.
DIGESTS = {
    "absolute": "f84813e1e13e",
    "absolute table": "6fceb9643e3b",
    "axial": "6ba436d4b6fc",
    "axial table": "613c3eef91f3",
    "axial rotary": "791752b83c08",
    "bias": "71e2e5593915",
    "bias with a leak": "aa99858d16a6",
    "enumerated": "b2588409b24a",
    "gaussian": "457b714b3f37",
    "learned": "c2a7cf64caad",
    "mixture": "d8ba6da7a655",
    "polygon": "5ff0a84e2c9a",
    "quadratic": "ff2aa9d6364c",
    "quadratic grid": "2ec4e482409c",
    "relative": "372497c3c06b",
    "relative table": "3cd0cf8a08ed",
    "rotary": "88189332b41e",
    "scalar": "7f5ec4da92d4",
    "scalar limit": "5d4a2026a145",
}


@st.composite
def layers(draw: st.DrawFn) -> AttentionLayer:
    """A layer of any encoding, with and without content, maps and bias, in any format."""
    numbers_of = numbers(np.random.default_rng(draw(seeds())), draw(st.sampled_from(DTYPES)))
    content = None
    if draw(st.booleans()):
        biases = [numbers_of(HEADS, 5), numbers_of(HEADS, 5)] if draw(st.booleans()) else [None] * 2
        maps = [numbers_of(HEADS, FEATURES, 5), numbers_of(HEADS, FEATURES, 5)]
        content = ContentScores(*maps, *biases, scaled=draw(st.booleans()))
    value, output = numbers_of(HEADS, FEATURES, HEAD), numbers_of(HEADS, HEAD, WIDE)
    stored_maps = draw(st.sampled_from(["both", "value", "output"]))
    if stored_maps == "output":
        value, output = None, numbers_of(HEADS, FEATURES, WIDE)
    if stored_maps == "value":
        value, output = numbers_of(HEADS, FEATURES, WIDE), None
    return AttentionLayer(
        encoding=make_encoding(draw(st.sampled_from(sorted(DIGESTS))), numbers_of),
        value=value,
        output=output,
        bias=numbers_of(WIDE) if draw(st.booleans()) else None,
        content=content,
        patch_size=(2, 1),
        stride=draw(st.sampled_from([(1, 1), (2, 1), (3, 2)])),
        dilation=draw(st.sampled_from([(1, 1), (1, 2)])),
        ring=draw(st.sampled_from([((0, 0), (0, 0)), ((1, 0), (2, 1))])),
    )


def assert_same_layer(actual: AttentionLayer, expected: AttentionLayer) -> None:
    assert jax.tree.structure(actual) == jax.tree.structure(expected)
    for array, other in zip(jax.tree.leaves(actual), jax.tree.leaves(expected), strict=True):
        assert array.dtype == other.dtype
        assert array.shape == other.shape
        assert np.asarray(array).tobytes() == np.asarray(other).tobytes()


@given(layer=layers(), suffix=st.sampled_from([".npz", ".safetensors"]))
@pytest.mark.slow
def test_a_layer_is_restored_bit_for_bit(layer, suffix, tmp_path_factory):
    path = tmp_path_factory.mktemp("layers") / f"layer{suffix}"
    ca.save_layer(layer, path)
    assert_same_layer(ca.load_layer(path), layer)
    assert [entry.name for entry in path.parent.iterdir()] == [path.name]


def layer_to_hold(name: str) -> AttentionLayer:
    def draw(*shape):
        return jnp.arange(1.0, 1 + np.prod(shape), dtype="float32").reshape(shape)

    content = ContentScores(draw(4, 8, 5), draw(4, 8, 5)) if name == "bias" else None
    maps = draw(4, 8, 3), draw(4, 3, 12)
    return AttentionLayer(
        make_encoding(name, draw), *maps, None, content, (2, 1), ring=((1, 0), (2, 1))
    )


@pytest.mark.slow
@pytest.mark.parametrize("name", DIGESTS)
def test_the_bytes_of_a_file_are_those_of_the_first_version(name):
    """Files that users hold stay readable: the format is that of the hashes above."""
    layer = layer_to_hold(name)
    content = encode(layer_arrays(layer), layer_metadata(layer), ".npz")
    assert hashlib.sha256(content).hexdigest()[:12] == DIGESTS[name]
    assert_same_layer(restore_layer(parse_weights(content, "held")), layer)


KERNEL = np.ones((3, 2, 1, 2), np.float32)
LAYER = ca.conv_to_attention(KERNEL, np.ones(2, np.float32))
TWO = ca.conv_to_two_layers(KERNEL, np.ones(2, np.float32))


def content(*shapes: tuple[int, ...], **options) -> ContentScores:
    return ContentScores(*(jnp.ones(shape, jnp.float32) for shape in shapes), **options)


TABLES = jnp.ones((3, 1), jnp.float32), jnp.ones((5, 2), jnp.float32)
MAPS = ((7, 1, 3),) * 2  # query and key maps of three features
ONE_AXIS = ca.conv_to_attention(np.ones((3, 1, 2), np.float32), np.ones(2, np.float32))
RESTORED = {
    **{
        padding: ca.conv_to_attention(KERNEL, patch_size=2, padding=padding)
        for padding in ("EDGE", "SAME", "SAME_LOWER", "VALID")
    },
    "one axis": ONE_AXIS,
    "a bias alone": dataclasses.replace(ONE_AXIS, output=None),  # tokens stay what they are
    "nothing at all": dataclasses.replace(ONE_AXIS, output=None, bias=None),
    "tables of content": dataclasses.replace(LAYER, content=content(*MAPS, tables=TABLES)),
    "two layers": ca.conv_to_two_layers(KERNEL, np.ones(2, np.float32), form="limit", stride=2),
}


@pytest.mark.parametrize("suffix", [".npz", ".safetensors"])
@pytest.mark.parametrize("layer", RESTORED.values(), ids=RESTORED)
def test_every_part_is_restored(layer, suffix, tmp_path):
    ca.save_layer(layer, tmp_path / f"layer{suffix}")
    assert_same_layer(ca.load_layer(tmp_path / f"layer{suffix}"), layer)


def test_what_older_files_do_not_have_is_left_out():
    assert "padding" not in layer_metadata(LAYER)["layer"]
    layer = dataclasses.replace(LAYER, content=content(*MAPS))
    metadata = layer_metadata(layer)
    description = json.loads(metadata["layer"])
    assert description["content"].pop("tables") is None
    file = WeightsFile("net", layer_arrays(layer), {**metadata, "layer": json.dumps(description)})
    assert_same_layer(restore_layer(file), layer)


def stored(source=LAYER, described=None, arrays=None, **changed) -> WeightsFile:
    """A file of a layer with something of it changed, its path written with __."""
    metadata, held = layer_metadata(source), layer_arrays(source)
    description = json.loads(metadata["layer"])
    for key, value in (described or {}).items():
        *path, last = key.split("__")
        node = description
        for part in path:
            node = node[part]
        node[last] = value
    held |= {key.replace("__", "."): value for key, value in (arrays or {}).items()}
    held = {name: array for name, array in held.items() if array is not None}
    return WeightsFile("net", held, {**metadata, "layer": json.dumps(description), **changed})


REACH = [[1, 1], [0, 1]]  # of that kernel, in pixels
BROKEN = [
    (stored(format="pt"), "holds no layer of this library"),
    (stored(version="9"), "has version '9'"),
    (stored(layer="{"), "is no JSON"),
    (stored(layer="[]"), "described as None, but expected AttentionLayer"),
    (stored(described={"class": "Path"}), "described as 'Path'"),
    (
        stored(described={"encoding__class": "ContentScores"}),
        "encoding is described as 'ContentScores', but expected AbsoluteEncoding",
    ),
    (stored(described={"evil": 1}), "unknown fields .'evil'."),
    (stored(arrays={"output": None}), "has no array 'output'"),
    (stored(arrays={"extra": np.ones(1)}), "holds 'extra', of which"),
    (stored(described={"output": None}), "holds 'output', of which"),
    (stored(described={"output": 3}), "described as 3, but expected an array"),
    (stored(described={"patch_size": ["1", 1]}), "'1', but expected integers"),
    (stored(described={"stride": None}), "stride=None"),
    (stored(described={"patch_size": 2}), "patch_size=2, but expected tup"),
    (stored(described={"ring": [[1, 1]]}), "ring="),
    (
        stored(described={"stride": [10**18, 1]}),
        "describes no layer that works: stride=10*, but expected at most 1048576",
    ),
    (stored(described={"encoding__offsets": 3}), "offsets=3, but expected"),
    (
        stored(described={"encoding__offsets": [[[], 0], *([0, at] for at in range(5))]}),
        "offsets=.*, but expected tuple",
    ),
    (stored(described={"encoding__offsets": [[0, True]] * 6}), "offsets=.*, but expected tuple"),
    (stored(described={"encoding__offsets": [[0, 0]] * 6}), "expected distinct shifts"),
    (stored(described={"encoding__offsets": [[0, 0]]}), "as many as entries"),
    *(
        (
            stored(arrays={"encoding__leak": np.array(weight, np.float32)}),
            f"encoding.uniform_weight={weight} in float32, but expected a number strictly",
        )
        for weight in (-0.5, 0.0, 1.0, 1.5)
    ),
    *(
        (stored(described={"padding": padding}), message)
        for padding, message in (
            (["MIRROR", REACH, REACH], "padding=.* but expected one of"),
            ([["EDGE"], REACH, REACH], "padding=.* but expected one of"),
            ("EDGE", "padding='EDGE', but expected one of"),
            (["EDGE", 1, REACH], "expected a fill, and"),
            (["EDGE", [], REACH], "without widths zeros"),
            (["EDGE", [[1, 1]], REACH], "ring="),
            (["EDGE", REACH, [[2, 2], [0, 1]]], "a kernel that reaches over"),
            (["ZEROS", [[2, 1], [0, 1]], REACH], "as far as the kernel reaches"),
        )
    ),
    (
        stored(described={"ring": [[10**9, 10**9]] * 2}),
        "describes no layer that works: ring=.* at most 1048576 are expected",
    ),
    (
        stored(described={"ring": [[2**19, 2**19], [0, 0]]}),
        "a single query 1048577 keys",
    ),
    (stored(TWO, {"exact": False}), "the layers' leak says otherwise"),
    (stored(TWO, {"first__ring": [[2, 1], [0, 0]]}), "the first layer's ring and offsets differ"),
    (
        stored(TWO, {"first__encoding__offsets": [[-1, 0], [0, 1], [1, 0]]}),
        "the first layer's ring and offsets differ",
    ),
    (
        stored(TWO, arrays={"second__output": np.ones((3, 1, 2), np.float32)}),
        "the features between two layers differ",
    ),
    (stored(TWO, {"stride": [1, 10**18]}), "stride=10*, but expected at most"),
    (stored(TWO, {"first__class": "TwoLayers"}), "'TwoLayers', but expected AttentionLayer"),
    (
        stored(TWO, arrays={"bias": np.ones(5, np.float32)}),
        "the shape of bias and the channels out differ",
    ),
]


@pytest.mark.parametrize(("file", "message"), BROKEN, ids=[said for _, said in BROKEN])
def test_a_file_that_is_no_layer_is_refused(file, message):
    with pytest.raises(WeightsRefused, match=f"^net.*{message}"):
        restore_layer(file)


ENCODING = LAYER.encoding
CONTRADICTIONS = [
    ({"bias": jnp.ones(3)}, "the length of bias"),
    ({"bias": jnp.ones((2, 1))}, r"bias.shape=\(2, 1\), but expected one axis"),
    ({"bias": jnp.ones(())}, r"bias.shape=\(\), but expected one axis"),
    ({"bias": jnp.array([1, jnp.inf])}, "bias has 1 non-finite"),
    ({"stride": (1,)}, "stride="),
    ({"dilation": (1, 0)}, "dilation="),
    ({"patch_size": (0, 1)}, "patch_size=0, but expected"),
    ({"patch_size": (1, 1, 1)}, "one or two axes"),
    ({"patch_size": (2, 2)}, "a patch has 4 pixels"),
    ({"output": jnp.ones((7, 2))}, r"output.shape=\(7, 2\), but expected 3 axes"),
    ({"output": jnp.ones((6, 1, 2))}, "the heads of output and of encoding differ: 6 and 7"),
    ({"value": jnp.ones((7, 1, 2))}, "the head dimension"),
    ({"value": jnp.ones((7, 1, 3)), "output": None}, "the length of bias"),
    ({"content": content((6, 1, 1), (6, 1, 1))}, "heads of content"),
    ({"content": content((7, 2, 1), (7, 2, 1))}, "features of content"),
    ({"content": content((7, 1, 3), (7, 3))}, r"content.key.shape=\(7, 3\), but expected 3 axes"),
    ({"content": content(*MAPS, (3,))}, r"content.query_bias.shape=\(3,\), but expected 2"),
    ({"content": content((7, 1, 3), (6, 1, 3))}, "one number of heads in all of content"),
    *(
        ({"content": content(*MAPS, tables=tables)}, message)
        for tables, message in (
            (TABLES[:1], "but expected one for each of 2 axes"),
            ((TABLES[0][:2], TABLES[1]), r"\[\(2, 1\), \(5, 2\)\], but expected one for each"),
            ((TABLES[0], TABLES[1][:, :0]), r"\[\(3, 1\), \(5, 0\)\], but expected one for each"),
            ((TABLES[0],) * 2, "the features of content's tables and of its queries differ: 2"),
        )
    ),
    (
        {"encoding": encodings.MixtureEncoding(-jnp.ones((7, 1)), ((0, 0),))},
        "nonnegative shares of a mixture",
    ),
    (
        {"encoding": dataclasses.replace(ENCODING, uniform_weight=jnp.full(2, 0.5))},
        r"uniform_weight.shape=\(2,\), but expected 0 axes",
    ),
]


@pytest.mark.parametrize(("change", "message"), CONTRADICTIONS)
def test_a_layer_that_does_not_fit_together_is_not_saved(change, message, tmp_path):
    with pytest.raises(ValueError, match=message):
        ca.save_layer(dataclasses.replace(LAYER, **change), tmp_path / "layer.npz")
    assert not list(tmp_path.iterdir())


RING = ((9, 9), (9, 9))
BARE = {"ring": RING, "padding": None}


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (
            {"first": dataclasses.replace(TWO.first, ring=RING)},
            "first layer's ring and offsets differ",
        ),
        (
            {"second": dataclasses.replace(TWO.second, **BARE)},
            "second layer's ring and offsets differ",
        ),
        ({"stride": (0, 1)}, "stride="),
        ({"bias": jnp.ones(3)}, "the shape of bias and the channels out differ"),
    ],
)
def test_two_layers_that_do_not_fit_together_are_not_saved(change, message, tmp_path):
    with pytest.raises(ValueError, match=message):
        ca.save_layer(dataclasses.replace(TWO, **change), tmp_path / "layers.npz")


def test_a_layer_is_not_saved_under_another_ending_and_not_when_it_is_traced(tmp_path):
    with pytest.raises(ValueError, match=r"ends in '\.pt', but weights are written as"):
        ca.save_layer(LAYER, tmp_path / "layer.pt")
    with pytest.raises(ValueError, match="traced"):
        jax.jit(lambda layer: ca.save_layer(layer, tmp_path / "layer.npz"))(LAYER)
    assert not list(tmp_path.iterdir())


@pytest.mark.usefixtures("unchecked")
def test_what_is_no_layer_is_not_saved(tmp_path):
    with pytest.raises(ValueError, match="layer=dict, but expected an AttentionLayer or TwoLayers"):
        ca.save_layer({}, tmp_path / "layer.npz")


def test_a_64_bit_layer_is_not_narrowed(tmp_path):
    path = tmp_path / "layer.safetensors"
    ca.save_layer(ca.conv_to_attention(np.ones((3, 1, 1))), path)
    with jax.enable_x64(False), pytest.raises(ValueError, match=r"float64, but 64-bit types are"):
        ca.load_layer(path)
    assert ca.load_layer(path).dtype == jnp.float64


OLD = Path(__file__).parent / "old"  # written before its fields had their names


@pytest.mark.parametrize("name", ["layer", "two_layers"])
@pytest.mark.quick(1)
def test_a_file_of_before_is_read_and_written_as_before(name, tmp_path):
    path, again = OLD / f"{name}.safetensors", tmp_path / "again.safetensors"
    layer = ca.load_layer(path)
    ca.save_layer(layer, again)
    files = read_weights(path), read_weights(again)
    assert files[0].metadata == files[1].metadata  # in whatever order the format keeps it
    assert files[0].arrays.keys() == files[1].arrays.keys()
    for key, array in files[0].arrays.items():
        np.testing.assert_array_equal(files[1][key], array, strict=True)
    kernel = jnp.arange(24, dtype=jnp.float32).reshape(3, 2, 2, 2) - 10
    images = jnp.arange(84, dtype=jnp.float32).reshape(1, 7, 6, 2) % 5
    if name == "layer":
        options = {"bias": jnp.ones(2, jnp.float32), "stride": 2}
        result = ca.apply_attention(layer, images)
    else:
        options, result = {}, layer(images)
    assert jnp.allclose(result, ca.conv(images, kernel, **options, padding="SAME_TORCH"), atol=1e-3)
