"""The official archives of CIFAR-10 and CIFAR-100, fetched and checked.

A download ends when no byte comes for a minute; there is no limit on all of it, as a slow line is
no error. It ends, too, when more comes than was announced or than any of the archives has.
"""

import hashlib
import http.client
import os
import re
import secrets
import time
import urllib.request
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from rich.console import Console
from rich.progress import (
    BarColumn,
    DownloadColumn,
    Progress,
    TextColumn,
    TimeRemainingColumn,
    TransferSpeedColumn,
)

from convattn.ledger.images.integrity import DataIntegrityError

HOME = "https://www.cs.toronto.edu/~kriz/"
BLOCK = 2**18
TIMEOUT = 60.0  # seconds without a byte
LARGEST = 2**28  # bytes; the archives have 162 to 170 million
STALE = 3600.0  # seconds without a block, after which nobody is writing a partial file any more

Opener = Callable[[str], Any]


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
    "cifar10-python": Archive("cifar-10-python.tar.gz", "c58f30108f718f92721af3b95e74349a"),
    "cifar100-binary": Archive("cifar-100-binary.tar.gz", "03b5dce01913d631647c71ecec9e9cb8"),
    "cifar100-python": Archive("cifar-100-python.tar.gz", "eb9058c3a382ffc7106e4002c42a8d85"),
}


def open_url(url: str) -> Any:
    """The response to a request for this address, as `urllib` gives it.

    Args:
        url: any address.

    >>> with open_url("data:,content") as response:
    ...     response.read()
    b'content'
    """
    return urllib.request.urlopen(url, timeout=TIMEOUT)


def download_archive(
    name: str, folder: str | Path, *, opener: Opener = open_url, console: Console | None = None
) -> Path:
    """An official archive, from the folder if it is there and from its publisher otherwise.

    Args:
        name: "cifar10-binary", "cifar10-python", "cifar100-binary" or "cifar100-python".
        folder: where the archive is, or will be; made if need be.
        opener: opens an address and returns a response to read from.
        console: where the progress bar appears; standard error by default.

    Returns:
        The archive's path; its MD5 sum was checked.

    Raises:
        ValueError: no such archive.
        DataIntegrityError: it can't be fetched or written, or what is there or came isn't what its
            publisher describes. A file that was already there is left as it is, and nothing new has
            the archive's name.

    >>> download_archive("mnist", "data")
    Traceback (most recent call last):
        ...
    ValueError: no archive 'mnist', but one of cifar10-binary, cifar10-python, cifar100-binary, \
cifar100-python was expected
    """
    if name not in ARCHIVES:
        raise ValueError(f"no archive {name!r}, but one of {', '.join(ARCHIVES)} was expected")
    archive = ARCHIVES[name]
    path = Path(folder) / archive.file_name
    if path.exists():
        _check_existing(path, archive.md5)
        return path
    with _writing(path.parent):
        path.parent.mkdir(parents=True, exist_ok=True)
    _remove_stale(path)
    # Written beside and renamed, so that the final name only ever stands for a checked archive.
    part = path.with_name(f".{path.name}.{secrets.token_hex(4)}.part")
    try:
        _fetch(HOME + archive.file_name, part, archive.md5, opener, console)
        with _writing(path.parent):
            os.replace(part, path)
    finally:
        with suppress(OSError):
            part.unlink()
    return path


def _remove_stale(path: Path) -> None:
    """Remove what downloads that were killed left of this archive, and none that may still run."""
    own = re.compile(rf"\.{re.escape(path.name)}\.[0-9a-f]{{8}}\.part")
    for part in path.parent.iterdir():
        if own.fullmatch(part.name):
            with suppress(OSError):
                if time.time() - part.stat().st_mtime > STALE:
                    part.unlink()


def _fetch(url: str, part: Path, md5: str, opener: Opener, console: Console | None) -> None:
    digest = hashlib.md5(usedforsecurity=False)
    count = 0
    with _writing(part.parent):
        opened = part.open("xb")
    with _progress(console) as progress, opened as file:
        try:
            with opener(url) as response:
                total = _content_length(response)
                _refuse_longer(url, total or 0, LARGEST)
                task = progress.add_task(url.rpartition("/")[2], total=total)
                while block := response.read(BLOCK):
                    digest.update(block)
                    count += len(block)
                    _refuse_longer(url, count, LARGEST if total is None else total)
                    with _writing(part.parent):
                        file.write(block)
                    progress.update(task, advance=len(block))
        except DataIntegrityError:
            raise
        except (OSError, ValueError, http.client.HTTPException) as error:
            raise DataIntegrityError(
                f"{url}: can't be downloaded ({type(error).__name__}: {error}); without a network, "
                f"fetch it elsewhere, put it into {part.parent} under the name "
                f"{url.rpartition('/')[2]}, and run this again"
            ) from error
        if total is not None and count != total:
            raise DataIntegrityError(
                f"{url}: {count:,} bytes came, but {total:,} were announced; the connection broke, "
                "so run this again"
            )
        if digest.hexdigest() != md5:
            raise DataIntegrityError(
                f"{url}: the {count:,} bytes that came have the MD5 sum {digest.hexdigest()}, but "
                f"{md5} was expected; they were thrown away: run this again, or fetch the archive "
                "elsewhere"
            )
        with _writing(part.parent):
            file.flush()
            os.fsync(file.fileno())


def _refuse_longer(url: str, count: int, most: int) -> None:
    if count > most:
        raise DataIntegrityError(
            f"{url}: {count:,} bytes or more, but at most {most:,} were expected; what comes isn't "
            "the archive: is there a proxy or a login page in between?"
        )


@contextmanager
def _writing(folder: Path) -> Iterator[None]:
    try:
        yield
    except OSError as error:
        raise DataIntegrityError(
            f"{folder}: can't be written to ({error}); make room, or choose another folder"
        ) from error


def _check_existing(path: Path, md5: str) -> None:
    try:
        with path.open("rb") as file:
            digest = hashlib.file_digest(file, lambda: hashlib.md5(usedforsecurity=False))
    except OSError as error:
        raise DataIntegrityError(
            f"{path}: is there but can't be read ({error}), though the archive was expected; move "
            "it away and run this again"
        ) from error
    found = digest.hexdigest()
    if found != md5:
        raise DataIntegrityError(
            f"{path}: is there with the MD5 sum {found}, but {md5} was expected; it was cut short "
            "or changed, so delete it and run this again"
        )


def _content_length(response: Any) -> int | None:
    stated = response.headers.get("Content-Length")
    return int(stated) if stated is not None and stated.isdecimal() else None


def _progress(console: Console | None) -> Progress:
    return Progress(
        TextColumn("{task.description}"),
        BarColumn(),
        DownloadColumn(),
        TransferSpeedColumn(),
        TimeRemainingColumn(),
        console=console or Console(stderr=True),
    )
