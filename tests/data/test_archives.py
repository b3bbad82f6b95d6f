import gzip
import io
import os
import tarfile
import time

import numpy as np
import pytest
from lab.data.cifar_files import write_folder, write_tar

from convattn.data import DataIntegrityError
from convattn.data.archives import DEPTH, open_files

NOISE = np.random.default_rng(0).integers(0, 256, 40_000, np.uint8).tobytes()
FILES = {"a.bin": NOISE[:7000], "sub/b.bin": NOISE[7000:30_000], "sub/c.bin": b""}


@pytest.mark.parametrize("suffix", [".tar", ".tar.gz", ".tar.xz", ".tar.bz2"])
@pytest.mark.parametrize("wrapper", ["", "wrapper/", "./outer/inner/"])
def test_a_tar_archive_gives_its_files(tmp_path, suffix, wrapper) -> None:
    assert dict(open_files(write_tar(tmp_path / f"x{suffix}", FILES, wrapper))) == FILES


def test_the_contents_and_not_the_name_say_how_it_is_compressed(tmp_path) -> None:
    write_tar(tmp_path / "x.tar.gz", FILES).rename(tmp_path / "data")
    assert dict(open_files(tmp_path / "data")) == FILES


@pytest.mark.parametrize("wrapper", ["", "outer/inner/"])
def test_a_folder_gives_its_files(tmp_path, wrapper) -> None:
    write_folder(tmp_path / wrapper, FILES)
    files = open_files(tmp_path)
    assert dict(files) == FILES
    assert len(files) == 3
    assert "sub" not in files
    with pytest.raises(KeyError):
        files["../x"]


def test_a_lone_split_keeps_its_name(tmp_path) -> None:
    files = {"train/a": b"1", "train/b": b"2"}
    assert dict(open_files(write_tar(tmp_path / "x.tar", files))) == files
    assert dict(open_files(write_folder(tmp_path / "folder", files))) == files


def test_hidden_files_are_left_out(tmp_path) -> None:
    files = {**FILES, ".DS_Store": b"x", "sub/._b.bin": b"x", ".git/a": b"x"}
    assert dict(open_files(write_tar(tmp_path / "x.tar", files))) == FILES
    assert dict(open_files(write_folder(tmp_path / "folder", files))) == FILES


def test_a_folder_that_holds_itself_is_refused(tmp_path) -> None:
    write_folder(tmp_path, {"a": b"1"})
    (tmp_path / "loop").symlink_to(tmp_path)
    with pytest.raises(DataIntegrityError, match=f"{'loop/' * (DEPTH - 1)}loop: is a folder 4 lev"):
        open_files(tmp_path)


def test_links_to_files_and_folders_are_followed(tmp_path) -> None:
    write_folder(tmp_path / "elsewhere", {"a": b"1"})
    write_folder(tmp_path / "set", {"b": b"2"})
    (tmp_path / "set" / "link").symlink_to(tmp_path / "elsewhere")
    assert dict(open_files(tmp_path / "set")) == {"b": b"2", "link/a": b"1"}


def test_files_below_the_depth_are_refused_rather_than_left_out(tmp_path) -> None:
    write_folder(tmp_path, {"a": b"1", "train/b/c/d": b"2"})
    assert len(open_files(tmp_path)) == 2
    write_folder(tmp_path, {"train/b/c/e/f": b"3"})
    with pytest.raises(DataIntegrityError, match="train/b/c/e: is a folder 4 levels down"):
        open_files(tmp_path)


@pytest.mark.parametrize("kind", ["link", "pipe"])
def test_what_is_no_file_is_refused_rather_than_left_out(tmp_path, kind) -> None:
    write_folder(tmp_path, FILES)
    if kind == "link":
        (tmp_path / "sub" / "d.bin").symlink_to(tmp_path / "nothing")
    else:
        os.mkfifo(tmp_path / "sub" / "d.bin")
    with pytest.raises(DataIntegrityError, match=r"sub/d\.bin: is a broken link, a pipe or"):
        open_files(tmp_path)


def test_a_pipe_for_an_archive_is_refused(tmp_path) -> None:
    os.mkfifo(tmp_path / "x.tar")
    with pytest.raises(DataIntegrityError, match=r"x\.tar: is a pipe or a device"):
        open_files(tmp_path / "x.tar")


@pytest.mark.parametrize("hidden", [False, True])
@pytest.mark.parametrize("packed", [False, True])
def test_an_empty_folder_is_refused(tmp_path, packed, hidden) -> None:
    write_folder(tmp_path / "set", {**FILES, "train/dog/1.png": b"1"})
    (tmp_path / "set" / "train" / "cat").mkdir(parents=True)
    if hidden:
        (tmp_path / "set" / "train" / "cat" / ".keep").touch()
    path = tmp_path / "set"
    if packed:
        path = tmp_path / "x.tar"
        with tarfile.open(path, "w") as tar:
            tar.add(tmp_path / "set", "set")
    with pytest.raises(
        DataIntegrityError, match=r"the folder '(set/)?train/cat/?' in it holds no files"
    ):
        open_files(path)


def test_the_folders_of_an_archive_are_no_files(tmp_path) -> None:
    write_folder(tmp_path / "set", FILES)
    with tarfile.open(tmp_path / "x.tar", "w") as tar:
        tar.add(tmp_path / "set", ".")
    assert dict(open_files(tmp_path / "x.tar")) == FILES


@pytest.mark.parametrize("suffix", [".tar", ".tar.gz", ".tar.xz", ".tar.bz2"])
def test_a_truncated_archive_is_refused(tmp_path, suffix) -> None:
    path = write_tar(tmp_path / f"x{suffix}", FILES)
    content = path.read_bytes()
    # In a plain one: inside the first header, inside data, at and inside later headers.
    ends = [300, 3000, 512 + 7168, 512 + 7168 + 100, 20_000]
    for end in ends if suffix == ".tar" else [*ends, len(content) * 9 // 10, len(content) - 1]:
        path.write_bytes(content[:end])
        with pytest.raises(DataIntegrityError, match=r"cut short"):
            open_files(path)


def test_a_changed_header_does_not_end_the_archive_quietly(tmp_path) -> None:
    path = write_tar(tmp_path / "x.tar", FILES)
    changed = bytearray(path.read_bytes())
    changed[512 + 7168 + 148] ^= 1  # the second header's checksum
    path.write_bytes(changed)
    with pytest.raises(DataIntegrityError, match="without the mark of a tar archive's end"):
        open_files(path)


def test_a_checksum_at_the_end_is_checked(tmp_path) -> None:
    path = write_tar(tmp_path / "x.tar.gz", FILES)
    changed = bytearray(path.read_bytes())
    changed[-8] ^= 1
    path.write_bytes(changed)
    with pytest.raises(DataIntegrityError, match="CRC check failed"):
        open_files(path)


@pytest.mark.parametrize(
    "content",
    [b"", b"no archive at all", gzip.compress(b"no archive", mtime=0)],
    ids=["empty", "text", "compressed text"],
)
def test_what_is_no_archive_is_refused(tmp_path, content) -> None:
    (tmp_path / "x").write_bytes(content)
    with pytest.raises(DataIntegrityError, match="cannot be read as a tar archive"):
        open_files(tmp_path / "x")


def test_what_is_not_there_is_said(tmp_path) -> None:
    with pytest.raises(FileNotFoundError, match="no such file or folder"):
        open_files(tmp_path / "nothing")


@pytest.mark.parametrize("name", ["../a", "/etc/a", "sub/../../a", "sub\\a"])
def test_names_that_lead_out_are_refused(tmp_path, name) -> None:
    path = write_tar(tmp_path / "x.tar", {name: b"x"})
    with pytest.raises(DataIntegrityError, match="leads out of the archive"):
        open_files(path)


@pytest.mark.parametrize(
    "kind", [tarfile.SYMTYPE, tarfile.LNKTYPE, tarfile.CHRTYPE, tarfile.FIFOTYPE]
)
def test_links_and_devices_are_refused(tmp_path, kind) -> None:
    member = tarfile.TarInfo("link")
    member.type, member.linkname = kind, "/etc/hostname"
    with tarfile.open(tmp_path / "x.tar", "w") as tar:
        tar.addfile(member)
    with pytest.raises(DataIntegrityError, match="'link' is a link or a device"):
        open_files(tmp_path / "x.tar")


def test_a_file_that_is_there_twice_is_refused(tmp_path) -> None:
    with tarfile.open(tmp_path / "x.tar", "w") as tar:
        for name in ("a", "./a"):
            tar.addfile(tarfile.TarInfo(name), io.BytesIO())
    with pytest.raises(DataIntegrityError, match=r"'\./a' is there twice"):
        open_files(tmp_path / "x.tar")


def test_a_small_archive_of_something_large_is_refused(tmp_path) -> None:
    path = write_tar(tmp_path / "x.tar.xz", {"zeros": bytes(2**20)})
    assert path.stat().st_size < 2000
    assert len(open_files(path, limit=2**21)["zeros"]) == 2**20
    with pytest.raises(DataIntegrityError, match="unpacks to more than 1,048,575 bytes"):
        open_files(path, limit=2**20 - 1)


def test_an_archive_that_unpacks_to_many_times_its_size_is_refused(tmp_path, monkeypatch) -> None:
    path = write_tar(tmp_path / "x.tar.bz2", {"zeros": bytes(2**20)})
    assert len(open_files(path)) == 1
    monkeypatch.setattr("convattn.files.UNSUSPICIOUS", 2**19)
    with pytest.raises(DataIntegrityError, match="unpacks to more than 524,288 bytes"):
        open_files(path)


def test_a_member_that_claims_much_is_refused(tmp_path) -> None:
    member = tarfile.TarInfo("sparse")
    member.size = 2**40
    (tmp_path / "x.tar").write_bytes(member.tobuf() + bytes(20_000))
    with pytest.raises(DataIntegrityError, match=r"claims 1,099,511,627,776 bytes"):
        open_files(tmp_path / "x.tar")


def test_a_member_of_negative_size_is_refused(tmp_path) -> None:
    header = bytearray(tarfile.TarInfo("a").tobuf())
    header[124:136] = b"\xff" * 12  # -1 in base 256
    header[148:156] = b" " * 8
    header[148:156] = b"%06o\0 " % sum(header)
    (tmp_path / "x.tar").write_bytes(bytes(header) + bytes(10_240))
    with pytest.raises(DataIntegrityError, match=r"cannot be read as a tar"):
        open_files(tmp_path / "x.tar")


@pytest.mark.parametrize("kind", [tarfile.XHDTYPE, tarfile.GNUTYPE_LONGNAME])
@pytest.mark.parametrize("claimed", [2**17, 2**40])
def test_a_header_that_claims_much_is_refused(tmp_path, kind, claimed) -> None:
    member = tarfile.TarInfo("header")
    member.type, member.size = kind, claimed
    content = member.tobuf(tarfile.GNU_FORMAT) + b"0" * 2**20 + bytes(1024)
    (tmp_path / "x.tar.gz").write_bytes(gzip.compress(content))
    with pytest.raises(DataIntegrityError, match="a header claims"):
        open_files(tmp_path / "x.tar.gz")


def test_headers_that_announce_headers_are_refused(tmp_path) -> None:
    long = tarfile.TarInfo("././@LongLink")
    long.type, long.size = tarfile.GNUTYPE_LONGNAME, 2
    chain = (long.tobuf() + b"a\0" + bytes(510)) * 2000
    (tmp_path / "x.tar").write_bytes(chain + tarfile.TarInfo("a").tobuf() + bytes(1024))
    with pytest.raises(DataIntegrityError, match="cannot be read as a tar"):
        open_files(tmp_path / "x.tar")


def extended(*contents: bytes) -> bytes:
    """An archive of empty files with these extended headers."""
    members = []
    for number, content in enumerate(contents):
        header = tarfile.TarInfo("header")
        header.type, header.size = tarfile.XHDTYPE, len(content)
        padded = content + bytes(-len(content) % 512)
        members.append(header.tobuf(tarfile.GNU_FORMAT) + padded)
        members.append(tarfile.TarInfo(f"file{number}").tobuf())
    return b"".join(members) + bytes(1024)


@pytest.mark.parametrize(
    ("content", "problem"),
    [
        (b"0" * 2**15, "is not made of records"),  # each takes tarfile a second and more
        (b"3 a" * 10_000 + b"=\n", "is not made of records"),
        (bytes(1) + b"1 hdrcharset=" * 2500, "is not made of records"),
        (b"6 a=b\n" * 33, "of more than 32 records"),
        (b"86 comment=" + b"1" * 74 + b"\n", "has a number of 64 digits or more"),
        (b"22 GNU.sparse.major=1\n", "a member is a sparse file"),
        (b"25 GNU.sparse.realsize=9\n", "a member is a sparse file"),
        (b"20 path=a\0b123456789\n", "is not made of records"),
    ],
)
def test_extended_headers_that_take_long_are_refused(tmp_path, content, problem) -> None:
    path = tmp_path / "x.tar.gz"
    path.write_bytes(gzip.compress(extended(*[content] * 60)))
    started = time.perf_counter()
    with pytest.raises(DataIntegrityError, match=problem):
        open_files(path)
    assert time.perf_counter() - started < 3


def lasting(records: bytes) -> bytes:
    """An extended header for all members that follow, and an empty file."""
    header = tarfile.TarInfo("header")
    header.type, header.size = tarfile.XGLTYPE, len(records)
    return header.tobuf(tarfile.GNU_FORMAT) + records + bytes(-len(records) % 512)


def test_members_within_each_other_are_refused(tmp_path) -> None:
    """Else 156 kB hold two hundred files of 50 kB, and 64 MiB hold a terabyte."""
    members = b"".join(tarfile.TarInfo(f"file{number}").tobuf() for number in range(200))
    (tmp_path / "x.tar").write_bytes(lasting(b"14 size=51200\n") + members + bytes(1024))
    with pytest.raises(DataIntegrityError, match="'file1' begins within the one before"):
        open_files(tmp_path / "x.tar")


def test_records_that_last_are_few_in_all(tmp_path) -> None:
    """Each member keeps a copy of all of them."""
    pairs = [lasting(b"9 k%03d=v\n" % n) + tarfile.TarInfo(f"f{n}").tobuf() for n in range(33)]
    (tmp_path / "x.tar").write_bytes(b"".join(pairs[:32]) + bytes(1024))
    assert len(open_files(tmp_path / "x.tar")) == 32
    (tmp_path / "x.tar").write_bytes(b"".join(pairs) + bytes(1024))
    with pytest.raises(DataIntegrityError, match="of more than 32 records"):
        open_files(tmp_path / "x.tar")


def test_a_hidden_file_may_lie_deep(tmp_path) -> None:
    path = write_tar(
        tmp_path / "x.tar", {"a": b"1", "." + "/b" * 40 + "/.c/d": b"2", "e/.f" + "/g" * 40: b""}
    )
    assert list(open_files(path)) == ["a"]


def test_extended_headers_of_records_are_read(tmp_path) -> None:
    records = b"6 a=b\n" * 31 + b"14 path=n/one\n"
    (tmp_path / "x.tar").write_bytes(extended(records, records.replace(b"one", b"two")))
    assert list(open_files(tmp_path / "x.tar")) == ["one", "two"]


@pytest.mark.parametrize("depth", [32, 2000, 16_000])
def test_names_of_many_folders_are_refused(tmp_path, depth) -> None:
    """All folders of a name take memory, and time, that grow with the square of its length."""
    names = [f"{first}/" + "a/" * (depth - 1) + "b" for first in range(6)]
    path = tmp_path / "x.tar.xz"
    with tarfile.open(path, "w:xz", format=tarfile.GNU_FORMAT) as tar:
        for name in names:
            tar.addfile(tarfile.TarInfo(name))
    started = time.perf_counter()
    with pytest.raises(DataIntegrityError, match=f"is {depth} folders deep, but 31 are"):
        open_files(path)
    assert time.perf_counter() - started < 3


def test_names_in_an_archive_are_not_looked_up(tmp_path, monkeypatch) -> None:
    """They are no paths of this machine, where a look may mount a disk or wait for a network."""
    path = write_tar(tmp_path / "x.tar", FILES)
    looked = []
    original = os.lstat
    monkeypatch.setattr(os, "lstat", lambda name, **more: looked.append(name) or original(name))
    open_files(path)
    assert not [name for name in looked if "b.bin" in str(name)]


SPARSE = {
    "GNU.sparse.major": "0",
    "GNU.sparse.minor": "1",
    "GNU.sparse.map": "0,1",
    "GNU.sparse.size": str(2**20),
}


def test_a_sparse_member_is_refused(tmp_path) -> None:
    member = tarfile.TarInfo("holes")
    member.size, member.pax_headers = 3, SPARSE
    with tarfile.open(tmp_path / "x.tar", "w", format=tarfile.PAX_FORMAT) as tar:
        tar.addfile(member, io.BytesIO(b"abc"))
    with pytest.raises(DataIntegrityError, match="a member is a sparse file"):
        open_files(tmp_path / "x.tar")


def test_a_sparse_member_of_the_old_kind_is_refused(tmp_path) -> None:
    member = tarfile.TarInfo("holes")
    member.type, member.size = tarfile.GNUTYPE_SPARSE, 3
    header = bytearray(member.tobuf(tarfile.GNU_FORMAT))
    header[386:410] = b"%011o\0%011o\0" % (0, 1)  # one piece: offset, length
    header[483:495] = b"%011o\0" % 2**20  # the size with the holes
    header[148:156] = b" " * 8
    header[148:156] = b"%06o\0 " % sum(header)
    (tmp_path / "x.tar").write_bytes(bytes(header) + bytes(512) + bytes(1024))
    with pytest.raises(DataIntegrityError, match="the member 'holes' is a sparse file"):
        open_files(tmp_path / "x.tar")


def test_too_many_files_are_refused(tmp_path, monkeypatch) -> None:
    monkeypatch.setattr("convattn.data.archives.MAX_FILES", 2)
    for path in (write_folder(tmp_path / "folder", FILES), write_tar(tmp_path / "x.tar", FILES)):
        with pytest.raises(DataIntegrityError, match="more than 2 files"):
            open_files(path)
