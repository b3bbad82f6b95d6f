import pickle

import numpy as np
import pytest
from lab.data.cifar_files import make_planes, python2, python2_array, python2_file

from convattn.lab.data import DataIntegrityError
from convattn.lab.data.restricted_pickle import MOST_TUPLES, load_dictionary

PLANES = make_planes(0, 2)
BATCH = python2_file({b"data": PLANES, b"labels": [7, 1000], b"name": b"x" * 300, b"none": None})


def test_a_pickle_of_python_2_is_read() -> None:
    trusted = pickle.loads(BATCH, encoding="bytes")
    assert np.array_equal(trusted[b"data"], PLANES), "the hand-written pickle is a real one"
    found = load_dictionary(BATCH, "batch")
    assert np.array_equal(found.pop("data"), PLANES)
    assert found == {"labels": [7, 1000], "name": b"x" * 300, "none": None}


@pytest.mark.parametrize("protocol", [0, 1, 2])
@pytest.mark.parametrize("order", ["C", "F"])
def test_a_pickle_of_this_numpy_is_read(protocol, order) -> None:
    planes = np.asarray(PLANES, order=order)
    found = load_dictionary(pickle.dumps({"data": planes, "labels": [1]}, protocol=protocol), "x")
    assert found["data"].dtype == np.uint8
    assert np.array_equal(found["data"], PLANES)
    assert found["labels"] == [1]


def test_an_array_by_columns_of_python_2_is_read() -> None:
    planes = np.asfortranarray(PLANES)
    assert np.array_equal(load_dictionary(python2_file({b"a": planes}), "x")["a"], PLANES)


def test_arrays_are_read_only() -> None:
    with pytest.raises(ValueError, match="read-only"):
        load_dictionary(BATCH, "batch")["data"][0, 0] = 1


def reduced(module: str, name: str, arguments: bytes = b")") -> bytes:
    """{"x": module.name(*arguments)}"""
    return b"\x80\x02}U\x01x" + f"c{module}\n{name}\n".encode() + arguments + b"Rs."


ATTACKS = {
    "os.system": reduced("os", "system", python2((b"touch PATH",))),
    "posix.system": reduced("posix", "system", python2((b"touch PATH",))),
    "subprocess.Popen": reduced("subprocess", "Popen", python2(([b"touch", b"PATH"],))),
    "builtins.eval": reduced("builtins", "eval", python2((b"open('PATH','w')",))),
    "__builtin__.eval": reduced("__builtin__", "eval", python2((b"open('PATH','w')",))),
    "builtins.getattr": reduced("builtins", "getattr"),
    "builtins.open": reduced("builtins", "open", python2((b"PATH", b"w"))),
    "numpy.load": reduced("numpy", "load"),
    "numpy.lib.npyio.open": reduced("numpy.lib.npyio", "open"),
    "numpy.ndarray.__class__": reduced("numpy", "ndarray.__class__"),
    "numpy.core.multiarray.scalar": reduced("numpy.core.multiarray", "scalar"),
    "_codecs.decode": reduced("_codecs", "decode"),
    "elsewhere.ndarray": reduced("elsewhere", "ndarray"),
    "copyreg.__newobj__": reduced("copyreg", "__newobj__"),
}


@pytest.mark.parametrize("name", ATTACKS)
def test_another_global_is_refused_by_name_and_not_called(tmp_path, monkeypatch, name) -> None:
    monkeypatch.chdir(tmp_path)
    with pytest.raises(DataIntegrityError, match=rf"batch: asks for {name.replace('.', '[.]')},"):
        load_dictionary(ATTACKS[name], "batch")
    assert not list(tmp_path.iterdir())


def test_a_name_put_together_at_run_time_is_refused() -> None:
    content = b"\x80\x04}\x8c\x01x\x8c\x02os\x8c\x06system\x93s."
    with pytest.raises(DataIntegrityError, match=r"asks for os\.system"):
        load_dictionary(content, "batch")


ARRAY = b"(cnumpy\nndarray\n"
MISUSES = {
    "_reconstruct": [
        b"(cnumpy\ndtype\n" + python2((0,)) + python2(b"b") + b"t",  # another class
        ARRAY + python2((10**9,)) + python2(b"b") + b"t",  # a large array
        ARRAY + python2((0,)) + python2(b"O") + b"t",  # of objects
        b")",
    ],
    "encode": [b"(X\x01\x00\x00\x00aU\x03rott", python2((b"a", b"latin1")), b")"],
    "dtype": [python2(([b"a", b"O"], 0, 1)), python2(({b"names": 1},)), b")"],
    "ndarray": [python2(((2**30,),)), b")"],
}
MODULES = {
    "_reconstruct": "numpy.core.multiarray",
    "encode": "_codecs",
    "dtype": "numpy",
    "ndarray": "numpy",
}


@pytest.mark.parametrize(
    ("name", "arguments"), [(name, each) for name, all_ in MISUSES.items() for each in all_]
)
def test_needed_globals_are_called_in_no_other_way(name, arguments) -> None:
    with pytest.raises(DataIntegrityError, match=f"batch: calls {name} with arguments"):
        load_dictionary(reduced(MODULES[name], name, arguments), "batch")


def test_a_needed_global_cannot_be_changed() -> None:
    content = b"\x80\x02}U\x01xcnumpy\nndarray\n}U\x01aK\x01sbs."
    with pytest.raises(DataIntegrityError, match="batch: changes ndarray"):
        load_dictionary(content, "batch")


@pytest.mark.parametrize(
    ("instruction", "content"),
    [
        ("INST", b"(ios\nsystem\n."),
        ("OBJ", b"(cnumpy\nndarray\no."),
        ("NEWOBJ", b"\x80\x02cnumpy\nndarray\n)\x81."),
        ("PERSID", b"Pname\n."),
        ("BINPERSID", b"N\x51."),
        ("EXT1", b"\x80\x02\x82\x01."),
        ("LONG4", b"\x80\x02\x8b\x01\x00\x00\x00\x01."),
        ("FROZENSET", b"\x80\x04(\x91."),
        ("NEXT_BUFFER", b"\x80\x05\x97."),
    ],
)
def test_other_instructions_are_refused(instruction, content) -> None:
    with pytest.raises(DataIntegrityError, match=f"the pickle instruction {instruction} at byte"):
        load_dictionary(content, "batch")


@pytest.mark.parametrize("put", [b"r\xff\xff\xff\x7f", b"p2000000000\n", b"p-5\n"])
def test_a_memo_larger_than_the_file_is_refused(put) -> None:
    with pytest.raises(DataIntegrityError, match="memo index"):
        load_dictionary(b"\x80\x02}" + put + b".", "batch")


def test_tuples_without_end_are_refused() -> None:
    assert load_dictionary(b"}U\x01x)" + b"\x85" * (MOST_TUPLES - 1) + b"s.", "batch")
    with pytest.raises(DataIntegrityError, match="makes more than 16 tuples"):
        load_dictionary(b"})" + b"\x85" * 100_000 + b"Ns.", "batch")


@pytest.mark.parametrize(("calls", "refused"), [(1, False), (30, True)])
def test_a_text_made_into_bytes_again_and_again_is_refused(calls, refused) -> None:
    text = b"x" * 1000
    content = (
        b"\x80\x02}U\x01xc_codecs\nencode\nq\x00X\xe8\x03\0\0"
        + text
        + b"X\x06\0\0\0latin1\x86q\x0200]("
        + b"h\x00h\x02R" * calls
        + b"es."
    )
    if refused:
        with pytest.raises(DataIntegrityError, match="makes more bytes of its texts than the who"):
            load_dictionary(content, "batch")
    else:
        assert load_dictionary(content, "batch") == {"x": [text]}


EMPTY = b"cnumpy.core.multiarray\n_reconstruct\n" + ARRAY + python2((0,)) + python2(b"b") + b"tR"


@pytest.mark.parametrize(
    ("array", "message"),
    [
        (python2_array(PLANES, code=b"O8"), "another type than uint8"),
        (python2_array(PLANES, code=b"i1"), "another type than uint8"),
        (python2_array(PLANES, code=b"f8", shape=(2, 384)), "another type than uint8"),
        (python2_array(PLANES, shape=(10**9, 3072)), r"has 6,144 bytes, but 3,072,000,000,000"),
        (python2_array(PLANES, shape=(2, 3071)), r"has 6,144 bytes, but 6,142"),
        (python2_array(PLANES, shape=(-2, -3072)), "sizes were expected"),
        (python2_array(PLANES, shape=(b"2", 3072)), "sizes were expected"),
        (EMPTY, "without its bytes"),
        (EMPTY + b"]b", "without its bytes"),
        (EMPTY + b")b", "without its bytes"),
        (EMPTY + b"K\x01a", "can't be read as a pickle"),
    ],
)
def test_other_arrays_are_refused(array, message) -> None:
    with pytest.raises(DataIntegrityError, match=message):
        load_dictionary(b"\x80\x02}U\x01x" + array + b"s.", "batch")


@pytest.mark.parametrize(
    ("value", "message"),
    [([1], "holds a list, but a dictionary"), ({1: 2}, "a key of the dictionary is a int")],
)
def test_what_is_no_dictionary_with_text_for_keys_is_refused(value, message) -> None:
    with pytest.raises(DataIntegrityError, match=message):
        load_dictionary(python2_file(value), "batch")


def test_a_truncated_pickle_is_refused_wherever_it_ends() -> None:
    for end in [*range(0, 60), *range(60, len(BATCH), 97), len(BATCH) - 1]:
        with pytest.raises(DataIntegrityError, match="batch: "):
            load_dictionary(BATCH[:end], "batch")


@pytest.mark.filterwarnings("ignore:invalid escape sequence:DeprecationWarning")
def test_a_damaged_pickle_is_refused_or_read_but_never_anything_else() -> None:
    small = python2_file({b"data": PLANES[:, :4].copy(), b"labels": [1, 2]})
    random = np.random.default_rng(0)
    refused = 0
    for _ in range(2000):
        damaged = bytearray(small)
        for position in random.integers(0, len(small), 2):
            damaged[position] = random.integers(0, 256)
        try:
            assert isinstance(load_dictionary(bytes(damaged), "batch"), dict)
        except DataIntegrityError:
            refused += 1
    assert 1000 < refused < 2000
