"""Files of weights: what is there is read as it is, and every kind of damage is named."""

import contextlib
import io
import json
import pickle
import zipfile

import jax.numpy as jnp
import numpy as np
import pytest
from strategies import FLOATS

from convattn.networks.weights.files import WeightsFile, parse_weights, read_weights, refuse
from convattn.networks.weights.formats import WeightsRefused, write_npz, write_safetensors

DTYPES = (*FLOATS, "int64", "int8", "uint16", "uint32", "uint64")


def npy(array: np.ndarray, **options) -> bytes:
    buffer = io.BytesIO()
    np.save(buffer, array, **options)
    return buffer.getvalue()


def claiming(shape: tuple[int, ...], numbers: bytes = b"") -> bytes:
    """A `.npy` file whose header says so, before these bytes."""
    buffer = io.BytesIO()
    header = {"descr": "<f4", "fortran_order": False, "shape": shape}
    np.lib.format.write_array_header_1_0(buffer, header)
    return buffer.getvalue() + numbers


def archive(method: int = zipfile.ZIP_STORED, **members: bytes) -> bytes:
    buffer = io.BytesIO()
    with zipfile.ZipFile(buffer, "w", method) as file:
        for name, content in members.items():
            file.writestr(name.replace("__", "."), content)
    return buffer.getvalue()


def tensors(header: object, data: bytes) -> bytes:
    text = header if isinstance(header, bytes) else json.dumps(header).encode()
    return len(text).to_bytes(8, "little") + text + data


def entry(dtype: str = "F32", shape: tuple[int, ...] = (1,), span: tuple[int, int] = (0, 4)):
    return {"dtype": dtype, "shape": list(shape), "data_offsets": list(span)}


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("write", [write_npz, write_safetensors])
def test_arrays_and_text_come_back_bit_for_bit(write, dtype):
    arrays = {
        "a.b": np.asarray(jnp.arange(6).reshape(2, 3), jnp.dtype(dtype)),
        "scalar": np.array(3, jnp.dtype(dtype)),
        "fortran": np.asfortranarray(np.arange(6).reshape(2, 3).astype(jnp.dtype(dtype))),
    }
    file = parse_weights(write(arrays, {"who": "δ"}), "file")
    assert file.metadata == {"who": "δ"}
    assert sorted(file.arrays) == sorted(arrays)
    for name, array in arrays.items():
        assert file[name].dtype == array.dtype
        assert file[name].shape == array.shape
        assert file[name].tobytes() == array.tobytes()
    with pytest.raises(ValueError, match="an array may not be called"):
        write_npz({"metadata": np.ones(2)}, {})


def test_the_first_bytes_tell_what_a_file_is(tmp_path):
    path = tmp_path / "kernel.safetensors"
    path.write_bytes(npy(np.arange(3, dtype=">f4")))
    file = read_weights(path)
    assert file[""].tolist() == [0, 1, 2]
    assert file[""].dtype == np.float32


PICKLE = pickle.dumps({"weight": [1.0]})
TWICE = (
    b'{"a":{"dtype":"F32","shape":[1],"data_offsets":[4,8]},'
    b'"a":{"dtype":"F32","shape":[1],"data_offsets":[0,4]}}'
)
GOOD_NPY, GOOD_NPZ = npy(np.ones((3, 3))), write_npz({"x": np.ones((3, 3))}, {})
GOOD_TENSORS = write_safetensors({"x": np.ones((3, 3))}, {})
BAD_CRC = bytearray(GOOD_NPZ)
BAD_CRC[GOOD_NPZ.index(b"\x93NUMPY") + 130] ^= 1

REFUSED = {
    "empty": (b"", "is empty"),
    "text": (b"no weights here", "neither .npy, .npz nor .safetensors"),
    "pickle": (PICKLE, "is a pickle, and reading one runs the program"),
    "pickled list": (pickle.dumps([], protocol=0), "is a pickle"),
    "pickled dictionary": (pickle.dumps({}, protocol=0), "is a pickle"),
    "pickled instance": (b"cimport", "is a pickle"),
    "keras": (b"\x89HDF\r\n\x1a\n", "HDF5"),
    "git lfs": (b"version https://git-lfs.github.com/spec/v1", "git lfs pull"),
    "npy of objects": (npy(np.array([{}]), allow_pickle=True), "holds pickled objects"),
    "npz of objects": (archive(x__npy=npy(np.array([{}]), allow_pickle=True)), "pickled objects"),
    "npz with a wrong checksum": (bytes(BAD_CRC), "damaged"),
    "npz in npz": (archive(x__npy=GOOD_NPZ), "not a valid .npy file"),
    "npz of another compression": (archive(zipfile.ZIP_LZMA, x__npy=GOOD_NPY), "method 14"),
    "npy of more than there is": (claiming((10**10,)), "expected those of float32"),
    "npy of sizes beyond 64 bits": (claiming((10**23,)), "expected those of float32"),
    "npy of sizes with thousands of digits": (claiming((10**4000,) * 2), "not a valid .npy"),
    "npy of nothing, too often": (claiming((10**23, 0)), "not a valid .npy file"),
    "npy of negative sizes": (claiming((-1, -1), bytes(4)), "not a valid .npy file"),
    "npy of arrays": (GOOD_NPY.replace(b"'<f8'", b"'2f4'", 1), "arrays within an array"),
    "npy and more": (GOOD_NPY + b"?", "bytes of numbers"),
    "npy of another version": (GOOD_NPY[:6] + b"\3" + GOOD_NPY[7:], "not a valid .npy file"),
    "npz of text": (archive(readme__txt=b"hello"), "which is no array"),
    "safetensors twice": (tensors(TWICE, bytes(4)), "holds 'a' twice"),
    "safetensors of many axes": (
        tensors({"a": entry(shape=(1,) * 65)}, bytes(4)),
        "'a' has 65 axes, but expected at most 64",
    ),
    "safetensors overlap": (
        tensors({"a": entry(), "b": entry()}, bytes(4)),
        "not a valid safetensors file",
    ),
    "safetensors too short for its shape": (
        tensors({"a": entry(shape=(2,))}, bytes(4)),
        "not a valid safetensors file",
    ),
}


@pytest.mark.parametrize(("content", "message"), REFUSED.values(), ids=REFUSED)
def test_damage_is_named(content, message):
    with pytest.raises(WeightsRefused, match=rf"(?s)^net.*{message}"):
        parse_weights(content, "net")


@pytest.mark.filterwarnings("ignore:Duplicate name")
def test_a_name_that_occurs_twice_in_an_archive_is_refused():
    buffer = io.BytesIO()
    with zipfile.ZipFile(buffer, "w") as file:
        file.writestr("x.npy", GOOD_NPY)
        file.writestr("x.npy", npy(np.zeros((3, 3))))
    with pytest.raises(WeightsRefused, match=r"holds 'x\.npy' twice"):
        parse_weights(buffer.getvalue(), "net")


def test_an_archive_that_unpacks_to_many_times_its_size_is_refused(monkeypatch):
    content = archive(zipfile.ZIP_DEFLATED, x__npy=npy(np.zeros(2**18)))
    assert parse_weights(content, "net")["x"].shape == (2**18,)
    monkeypatch.setattr("convattn.files.UNSUSPICIOUS", 2**20)
    with pytest.raises(WeightsRefused, match=r"^net unpacks to 2,097,280 bytes, but .* 1,048,576"):
        parse_weights(content, "net")


def test_an_archive_gives_no_more_than_it_claims():
    """The size in the directory is a lie: what is behind it is cut off, and has another sum."""
    content = archive(zipfile.ZIP_DEFLATED, x__npy=GOOD_NPY + bytes(2**20))
    true, claimed = (len(GOOD_NPY) + extra for extra in (2**20, 0))
    lying = content.replace(true.to_bytes(4, "little"), claimed.to_bytes(4, "little"))
    with pytest.raises(WeightsRefused, match=r"x\.npy is damaged \(Bad CRC"):
        parse_weights(lying, "net")


@pytest.mark.filterwarnings("ignore")  # of what the changed text of a header would mean
@pytest.mark.parametrize("good", [GOOD_NPY, GOOD_NPZ], ids=["npy", "npz"])
@pytest.mark.quick(1)
def test_every_changed_byte_is_read_or_refused(good):
    """Headers are parsed as Python, directories of archives by zipfile: both raise anything."""
    for index in range(len(good)):
        for value in (0, 0x28, 0x2D, 0x5C, 0xFF, good[index] ^ 1, good[index] ^ 0x80):
            changed = good[:index] + bytes([value]) + good[index + 1 :]
            with contextlib.suppress(WeightsRefused):
                parse_weights(changed, "net")


@pytest.mark.parametrize("good", [GOOD_NPY, GOOD_NPZ, GOOD_TENSORS], ids=["npy", "npz", "st"])
def test_wherever_a_file_is_cut_it_is_refused(good):
    parse_weights(good, "net")
    for length in range(len(good)):
        with pytest.raises(WeightsRefused, match=r"^net"):
            parse_weights(good[:length], "net")


NUMBERS = {
    "truth values": (np.array([True]), "dtype=bool"),
    "text": (np.array(["a"]), "dtype=<U1"),
    "complex": (np.ones(1, complex), "dtype=complex128"),
    "longdouble": (np.ones(1, np.longdouble), "at most 64 bits"),
    "bfloat16 that numpy.save flattened": (np.ones(1, "V2"), "what NumPy makes of bfloat16"),
    "NaN": (np.array([1, np.nan]), r"1 non-finite entries, the first at index \(1,\)"),
    "infinity": (np.array([[1, 2], [-np.inf, 0]], np.float16), r"first at index \(1, 0\)"),
    "the first of several": (np.array([[1, 2], [np.nan, 0], [0, np.nan]]), r"2 .* \(1, 0\)"),
    "bfloat16 NaN": (np.asarray(jnp.array([jnp.nan], "bfloat16")), "1 non-finite"),
}


@pytest.mark.parametrize(("array", "message"), NUMBERS.values(), ids=NUMBERS)
def test_what_are_no_finite_real_numbers_is_refused_when_it_is_asked_for(array, message):
    file = WeightsFile("net", {"x": array, "good": np.ones(2)}, {})
    assert file["good"].tolist() == [1, 1]
    with pytest.raises(WeightsRefused, match=f"^net: x.*{message}"):
        file["x"]


def test_problems_are_listed_up_to_a_length():
    """Each cut at 200 characters, and all together at 3000, which is said where it is done."""
    problems = ["p" * 300] * 14 + ["q" * 172]  # with two characters between, 3000
    with pytest.raises(WeightsRefused) as caught:
        refuse(problems, "net")
    assert str(caught.value) == "net: " + "; ".join(["p" * 200] * 14 + ["q" * 172])
    with pytest.raises(WeightsRefused, match=r"net: p.*q… \(15 problems\)$") as caught:
        refuse([*problems[:-1], "q" * 173], "net")
    assert len(str(caught.value)) == len("net: … (15 problems)") + 3000
    refuse([], "net")


def test_a_missing_name_is_answered_with_those_that_are_there():
    file = WeightsFile("net", {"stem.conv.weight": np.ones((2, 3)), "head": np.ones(4)}, {})
    with pytest.raises(WeightsRefused, match=r"no array 'stem.cnv.weight'; did you mean") as caught:
        file["stem.cnv.weight"]
    assert "'stem.conv.weight'? it holds 'stem.conv.weight' (2, 3), 'head' (4,)" in str(
        caught.value
    )
    with pytest.raises(WeightsRefused, match="did you mean 'head'"):
        file["heed"]
    many = WeightsFile("net", {f"layer{i}": np.ones(1) for i in range(25)}, {})
    with pytest.raises(WeightsRefused, match="and 5 more"):
        many["x"]
    for unnamed, said in (("", "it holds one array of uint8 (2, 3)"), ("a", "it holds 'a' (2, 3)")):
        array = np.ones((2, 3), np.uint8)
        assert WeightsFile("net", {unnamed: array}, {}).listing() == said
    all_of_them = WeightsFile("net", {f"layer{i}": np.ones(1) for i in range(20)}, {}).listing()
    assert all_of_them.endswith("'layer19' (1,)")
    with pytest.raises(WeightsRefused, match="holds no arrays at all"):
        WeightsFile("net", {}, {})["x"]


@pytest.mark.parametrize(
    "text", ["{", "[]", '{"bfloat16 arrays": ["y"]}', '{"a": 1}', '{"bfloat16 arrays": ["x"]}']
)
def test_metadata_that_is_none_of_ours_is_refused(text):
    content = archive(x__npy=npy(np.ones(2)), metadata__npy=npy(np.array(text)))
    with pytest.raises(WeightsRefused, match=r"metadata|bits of bfloat16"):
        parse_weights(content, "net")
