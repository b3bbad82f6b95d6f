"""The official binary archives of CIFAR-10 and CIFAR-100, fetched by pooch and checked."""

from dataclasses import dataclass
from pathlib import Path
from typing import Any

from convattn.data.cifar10_slice import DataIntegrityError
from convattn.extras import require

HOME = "https://www.cs.toronto.edu/~kriz/"
TIMEOUT = 60.0  # seconds without a byte
LARGEST = 171_000_000  # bytes; the archives have 168 to 170 million


@dataclass(frozen=True)
class Archive:
    """An archive as its publisher describes it.

    Attributes:
        file_name: its name below `HOME`.
        md5: its MD5 sum, in hexadecimal.
    """

    file_name: str
    md5: str


ARCHIVES = {
    "cifar10-binary": Archive("cifar-10-binary.tar.gz", "c32a1d4ab5d03f1284b67883e8d87530"),
    "cifar100-binary": Archive("cifar-100-binary.tar.gz", "03b5dce01913d631647c71ecec9e9cb8"),
}


def download_archive(name: str, folder: str | Path, *, home: str = HOME) -> Path:
    """An official archive, from the folder if it is there and from its publisher otherwise.

    Args:
        name: "cifar10-binary" or "cifar100-binary".
        folder: where the archive is, or will be; made if need be.
        home: where archives are fetched from.

    Returns:
        The archive's path; its MD5 sum was checked.

    Raises:
        ValueError: no such archive.
        DataIntegrityError: it cannot be fetched or written, or what is there or came is not what
            its publisher describes. A file that was already there is left as it is, and nothing new
            has the archive's name.

    >>> download_archive("cifar10-python", "data")
    Traceback (most recent call last):
        ...
    ValueError: archive='cifar10-python', but expected cifar10-binary or cifar100-binary, which \
hold all images; no pickle is read
    """
    require("pooch")
    import pooch  # type: ignore[import-untyped]
    import requests

    if name not in ARCHIVES:
        raise ValueError(
            f"archive={name!r}, but expected {' or '.join(ARCHIVES)}, which hold all images; no "
            "pickle is read"
        )
    archive, folder = ARCHIVES[name], Path(folder)
    path, url = folder / archive.file_name, home + archive.file_name
    try:
        if path.exists() and pooch.file_hash(str(path), "md5") != archive.md5:
            raise DataIntegrityError(
                f"{path}: its MD5 sum is not {archive.md5}; it was cut short or changed, so delete "
                "it and run this again"
            )
        downloader = pooch.HTTPDownloader(
            chunk_size=2**18, timeout=TIMEOUT, hooks={"response": _reject_larger}
        )
        known = f"md5:{archive.md5}"
        pooch.retrieve(url, known, archive.file_name, str(folder), downloader=downloader)
    except DataIntegrityError:
        raise
    except (OSError, ValueError, requests.RequestException) as error:
        raise DataIntegrityError(
            f"{url}: cannot be fetched into {folder} ({type(error).__name__}: {error}); run this "
            f"again, or fetch it elsewhere and put it into {folder} under that name"
        ) from error
    return path


def _reject_larger(response: Any, *_: Any, **__: Any) -> None:
    """Before a byte of it is read."""
    announced = response.headers.get("Content-Length", "0")
    if not announced.isdecimal() or int(announced) > LARGEST:
        raise DataIntegrityError(
            f"{response.url}: {announced} bytes announced, but at most {LARGEST:,} were expected; "
            "what comes is not the archive: is there a proxy or a login page in between?"
        )
