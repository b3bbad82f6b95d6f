import io

import numpy as np
import pytest
from lab.data.cifar_files import write_folder, write_tar
from lab.data.image_files import FILES, PIXELS, black_png, png_of_16_bits, stored, turned
from PIL import Image

from convattn.data import DataIntegrityError, image_folders
from convattn.data.archives import open_files
from convattn.data.datasets import read_dataset
from convattn.data.image_folders import read_image_folders


def several(kind: str) -> bytes:
    """A file of two pictures."""
    first, second = (Image.fromarray(pixels) for pixels in PIXELS[:2])
    file = io.BytesIO()
    first.save(file, kind, save_all=True, append_images=[second])
    return file.getvalue()


def check(folders) -> None:
    assert np.array_equal(folders.train.images, PIXELS[:4])
    assert np.array_equal(folders.test.images, PIXELS[4:])
    assert folders.train.labels.tolist() == [0, 0, 1, 1]
    assert folders.test.labels.tolist() == [0, 1]
    assert folders.train.class_names == folders.test.class_names == ("cat", "dog")
    assert folders.train.labels.dtype == np.uint8
    assert not folders.lossy


def test_images_come_in_the_order_of_their_names_from_any_source(tmp_path) -> None:
    check(read_image_folders(FILES))
    check(read_image_folders(open_files(write_folder(tmp_path / "folder", FILES))))
    check(read_image_folders(open_files(write_tar(tmp_path / "x.tar.xz", FILES, "./wrapper/"))))


@pytest.mark.parametrize("suffix", ["jpg", "JPEG", "png"])  # the contents say what it is
def test_one_jpeg_makes_the_set_lossy(suffix) -> None:
    content = stored(PIXELS[0], "JPEG", quality=90)
    folders = read_image_folders({**FILES, f"train/cat/1.{suffix}": content})
    assert folders.lossy
    decoded = np.asarray(Image.open(io.BytesIO(content)))
    assert np.array_equal(folders.train.images[0], decoded)
    assert not np.array_equal(decoded, PIXELS[0])


@pytest.mark.parametrize("place", [60, 200, -30])
def test_a_changed_bit_in_a_png_is_noticed(place) -> None:
    changed = bytearray(stored(np.tile(PIXELS[0], (8, 8, 1)), compress_level=0))
    changed[place] ^= 1
    with pytest.raises(DataIntegrityError, match="can't be decoded"):
        read_image_folders(dict.fromkeys(FILES, bytes(changed)))


def test_grey_images_become_three_equal_channels() -> None:
    grey = PIXELS[0, :, :, 0]
    folders = read_image_folders({**FILES, "train/cat/1.png": stored(grey)})
    assert np.array_equal(folders.train.images[0], np.stack([grey] * 3, axis=-1))


@pytest.mark.parametrize("interlaced", [False, True])
@pytest.mark.parametrize(
    ("missing", "problem"), [(1, "truncated"), (16, "fewer pixels than its header says")]
)
def test_a_png_with_fewer_pixels_than_it_says_is_refused(interlaced, missing, problem) -> None:
    """Pillow takes whole rows that are missing, of 16 bytes, to be black."""
    folders = read_image_folders({**FILES, "train/cat/7.png": black_png(interlaced, 0)})
    assert folders.train.images.shape[1:] == (4, 5, 3)
    with pytest.raises(DataIntegrityError, match=rf"7\.png: .*{problem}"):
        read_image_folders({**FILES, "train/cat/7.png": black_png(interlaced, missing)})


@pytest.mark.parametrize(
    ("content", "message"),
    [
        (stored(PIXELS[0], mode="P"), "the mode P isn't read"),
        (stored(PIXELS[0], mode="RGBA"), "the mode RGBA isn't read"),
        (stored(PIXELS[0], mode="1"), "the mode 1 isn't read"),
        (stored(PIXELS[0], "JPEG", mode="CMYK"), "the mode CMYK isn't read"),
        (stored(PIXELS[0], transparency=(1, 2, 3)), "the mode RGB with transparency isn't read"),
        (stored(PIXELS[0][:3]), r"5×3 pixels \(width×height\), but 5×4 were"),
        (png_of_16_bits(), "a depth of 16 bits a channel isn't read"),
        (png_of_16_bits(b"prIV"), "a depth of .* bits a channel isn't read"),
        (turned(6, "JPEG"), "the orientation 6 in its EXIF data isn't read"),
        (turned(3, "PNG"), "the orientation 3 in its EXIF data isn't read"),
        (several("PNG"), "a PNG of 2 pictures isn't read"),
        (stored(PIXELS[0])[:60], "can't be decoded"),
        (stored(PIXELS[0], "JPEG")[:300], "can't be decoded"),
        (stored(PIXELS[0], "GIF"), "can't be decoded"),
        (b"", "can't be decoded"),
    ],
)
def test_other_images_are_refused(content, message) -> None:
    with pytest.raises(DataIntegrityError, match=f"train/cat/7.png: .*{message}"):
        read_image_folders({**FILES, "train/cat/7.png": content})


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"train/cat/notes.txt": b""}, "train/cat/notes.txt: isn't train/CLASS/NAME"),
        ({"train/7.png": b""}, "train/7.png: isn't train/CLASS/NAME"),
        ({"val/cat/7.png": b""}, "val/cat/7.png: isn't train/CLASS/NAME"),
        ({"train/cat/more/7.png": b""}, "train/cat/more/7.png: isn't train/CLASS/NAME"),
        ({"train/fish/7.png": b""}, r"only in train/: \['fish'\], only in test/: \[\]"),
        ({"test/fish/7.png": b""}, r"only in train/: \[\], only in test/: \['fish'\]"),
    ],
)
def test_other_folders_are_refused(changes, message) -> None:
    with pytest.raises(DataIntegrityError, match=message):
        read_image_folders({**FILES, **changes})


@pytest.mark.parametrize("split", ["train", "test"])
def test_a_missing_split_is_refused(split) -> None:
    files = {name: content for name, content in FILES.items() if not name.startswith(split)}
    with pytest.raises(DataIntegrityError, match=f"{split}/: no images"):
        read_image_folders(files)


def test_more_classes_than_a_byte_can_number_are_refused() -> None:
    files = {
        f"{split}/{n:03}/1.png": FILES["test/dog/0.png"]
        for split in ("train", "test")
        for n in range(257)
    }
    with pytest.raises(DataIntegrityError, match="257 classes, but 256"):
        read_image_folders(files)
    at_the_limit = {name: content for name, content in files.items() if "/256/" not in name}
    assert read_image_folders(at_the_limit).train.labels.tolist() == list(range(256))


def test_a_set_too_large_for_memory_is_refused_before_it_is_decoded(monkeypatch) -> None:
    monkeypatch.setattr(image_folders, "MAX_SET", 359)
    with pytest.raises(DataIntegrityError, match="6 images of 60 bytes of pixels, but 359"):
        read_image_folders(FILES)


def blank(side: int) -> bytes:
    file = io.BytesIO()
    Image.new("L", (side, side)).save(file, "PNG")
    return file.getvalue()


def test_an_image_of_too_many_pixels_is_not_decoded() -> None:
    """A PNG of 20 kB can stand for 50 MB of pixels, and further copies of it cost nothing."""
    with pytest.raises(DataIntegrityError, match=r"4097×4097 pixels .* at most 16,777,216 in all"):
        read_image_folders(dict.fromkeys(FILES, blank(4097)))
    with pytest.raises(DataIntegrityError, match=r"4097×4097 pixels .* at most 16,777,216 in all"):
        read_image_folders({**FILES, "train/dog/9.png": blank(4097)})


def test_a_small_archive_of_many_pixels_is_refused(tmp_path) -> None:
    files = {f"{split}/cat/{n}.png": blank(2000) for split in ("train", "test") for n in range(4)}
    path = write_tar(tmp_path / "x.tar.xz", files)
    assert path.stat().st_size < 10_000
    with pytest.raises(DataIntegrityError, match=r"8 images of 12,000,000 bytes.* but 67,108,864"):
        read_dataset(path)
    dataset = read_dataset(write_folder(tmp_path / "folder", files))  # plain drawings are so small
    assert dataset.train.images.shape == (4, 2000, 2000, 3)
