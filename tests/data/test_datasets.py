import os
from pathlib import Path

import numpy as np
import pytest
from lab.data.cifar_files import cifar10_binary, cifar100_binary, write_folder, write_tar
from lab.data.image_files import FILES, PIXELS, stored

from convattn.data import CLASS_NAMES, DataIntegrityError, load_cifar10_slice, read_dataset
from convattn.data.cifar10_slice import Images
from convattn.data.datasets import OFFICIAL_SIZES, _cifar
from convattn.data.image_folders import FolderImages

ARCHIVE = Path(
    os.environ.get(
        "CIFAR10_ARCHIVE", Path(__file__).parents[3] / "shared" / "data" / "cifar10-lossless.tar.xz"
    )
)


def test_without_a_path_it_is_the_bundled_slice() -> None:
    data = read_dataset()
    assert data.train is load_cifar10_slice("train")
    assert data.test is load_cifar10_slice("test")
    assert data.title == data.name == "CIFAR-10, slice of 2,000 + 500"


@pytest.mark.parametrize("kind", ["folder", "x.tar", "x.tar.gz", "x.tar.xz"])
@pytest.mark.parametrize(
    ("files", "options", "name", "classes"),
    [
        (cifar10_binary(), {}, "CIFAR-10, 15 + 3 images", CLASS_NAMES),
        (cifar100_binary(), {}, "CIFAR-100, 4 + 2 images", ("fine0", "fine1")),
        (cifar100_binary(), {"classes": "coarse"}, "CIFAR-100, superclasses, 4 + 2 images",
         ("coarse0", "coarse1")),
    ],
)  # fmt: skip
def test_each_official_format_is_recognised(tmp_path, kind, files, options, name, classes) -> None:
    path = tmp_path / kind
    if kind == "folder":
        write_folder(path / "cifar", {**files, "readme.html": b""})
    else:
        write_tar(path, {**files, "readme.html": b""}, "cifar/")
    data = read_dataset(str(path), **options)
    assert data.title == data.name == name
    assert data.train.class_names[:2] == classes[:2]
    assert data.train.images.shape[1:] == (32, 32, 3)


def test_image_folders_are_recognised_and_named_after_the_path(tmp_path) -> None:
    data = read_dataset(write_tar(tmp_path / "pets.tar.gz", FILES))
    assert data.title == "pets, 4 + 2 images"
    assert np.array_equal(data.train.images, PIXELS[:4])


def test_images_stored_as_jpeg_say_so(tmp_path) -> None:
    image = np.zeros((32, 32, 3), np.uint8)
    names = [f"{split}/{name}/1.jpg" for split in ("train", "test") for name in CLASS_NAMES]
    data = read_dataset(write_folder(tmp_path, dict.fromkeys(names, stored(image, "JPEG"))))
    assert data.note == "stored as JPEG"
    assert data.title == "images with the classes of CIFAR-10, 10 + 10 (stored as JPEG)"
    assert data.train.class_names == CLASS_NAMES
    lossless = read_dataset(
        write_folder(tmp_path, dict.fromkeys(names, stored(image)))  # a PNG, whatever its name
    )
    assert lossless.note == ""
    assert lossless.title == "images with the classes of CIFAR-10, 10 + 10"


@pytest.mark.parametrize(
    ("lossy", "moved", "title"),
    [
        (True, 0, "CIFAR-10 (JPEG-recompressed)"),
        (False, 0, "CIFAR-10"),
        (True, 1, "images with the classes of CIFAR-10, 50,000 + 10,000 (stored as JPEG)"),
    ],
)
def test_folders_are_cifar10_only_with_its_number_in_each_class(
    tmp_path, monkeypatch, lossy, moved, title
) -> None:
    image = np.zeros((1, 32, 32, 3), np.uint8)
    labels = [np.arange(10, dtype=np.uint8).repeat(size // 10) for size in OFFICIAL_SIZES]
    labels[1][:moved] = 9
    splits = [
        Images(np.broadcast_to(image, (len(each), 32, 32, 3)), each, CLASS_NAMES) for each in labels
    ]
    images = FolderImages(splits[0], splits[1], lossy)
    monkeypatch.setattr(
        "convattn.data.datasets.read_image_folders", lambda files, **options: images
    )
    assert read_dataset(write_folder(tmp_path, FILES)).title == title


@pytest.mark.parametrize(
    ("change", "name"), [(0, "CIFAR-10"), (1, "CIFAR-10, 49,999 + 10,000 images")]
)
def test_only_the_whole_set_has_the_bare_name(change, name) -> None:
    splits = [load_cifar10_slice("test")] * 2
    sizes = [OFFICIAL_SIZES[0] - change, OFFICIAL_SIZES[1]]
    repeated = [
        type(split)(split.images[:1].repeat(size, 0), split.labels[:1].repeat(size), CLASS_NAMES)
        for split, size in zip(splits, sizes, strict=True)
    ]
    assert _cifar("CIFAR-10", (repeated[0], repeated[1])).title == name


@pytest.mark.parametrize(
    ("files", "listing"),
    [
        ({}, "no files"),
        ({"a.txt": b"", "b/c.txt": b""}, "a.txt, b/c.txt"),
        ({f"{n}.npy": b"" for n in range(10)}, "7.npy and 2 more"),
        ({"cifar-10-binary.tar.gz": b""}, "cifar-10-binary.tar.gz"),
        ({"a/data_batch_1.bin": b"", "b/data_batch_1": b""}, "a/data_batch_1.bin, b/data_batch_1"),
    ],
)
def test_another_folder_is_refused_with_what_is_there(tmp_path, files, listing) -> None:
    message = f"no known format; found .*{listing}, but expected data_batch_1.bin"
    with pytest.raises(ValueError, match=message):
        read_dataset(write_folder(tmp_path, files))


@pytest.mark.parametrize("names", [("data_batch_1", "test_batch"), ("train", "test", "meta")])
def test_a_python_version_is_refused_unread(tmp_path, names) -> None:
    """Whatever is in it: these are not even pickles."""
    path = write_tar(tmp_path / "cifar.tar.gz", dict.fromkeys(names, b"cos\nsystem\n"), "cifar/")
    with pytest.raises(ValueError, match=r"no pickle is read; expected .*cifar-10-binary\.tar\.gz"):
        read_dataset(path)


def test_an_incomplete_set_is_refused_as_what_it_is(tmp_path) -> None:
    files = cifar10_binary()
    with pytest.raises(DataIntegrityError, match=r"data_batch_2\.bin, .*missing"):
        read_dataset(write_folder(tmp_path, {name: files[name] for name in ["data_batch_1.bin"]}))


@pytest.mark.parametrize("files", [None, cifar10_binary(), FILES])
def test_superclasses_of_anything_else_are_refused(tmp_path, files) -> None:
    path = None if files is None else write_folder(tmp_path, files)
    with pytest.raises(ValueError, match="only CIFAR-100 has superclasses"):
        read_dataset(path, classes="coarse")


@pytest.mark.slow
@pytest.mark.skipif(not ARCHIVE.exists(), reason=f"the source archive isn't at {ARCHIVE}")
def test_the_lossless_archive_is_read() -> None:
    data, slice_ = read_dataset(ARCHIVE), load_cifar10_slice("test")
    assert data.title == "CIFAR-10, 5,000 + 1,000 images"
    assert np.bincount(data.train.labels, minlength=10).sum() == 5000
    stored_images = {image.tobytes() for image in data.test.images}
    assert all(image.tobytes() in stored_images for image in slice_.images)
