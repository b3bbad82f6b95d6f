"""Which run the arguments of `experiments/cifar.py` ask for."""

import datetime
from dataclasses import replace
from pathlib import Path

from convattn.lab.runs.arguments import Arguments, check_resume, repeating_command
from convattn.lab.runs.directory import RunDirectory
from convattn.lab.runs.settings import RunSettings, settings_from_json
from convattn.lab.settings import to_json
from convattn.lab.training.hosts import from_first, is_first


def wanted(given: Arguments, words: list[str]) -> tuple[RunSettings, str, Path]:
    """The settings, the command that repeats the run, and its folder: those of the first process.

    Raises:
        ValueError: As described above.
    """
    if given.resume is not None:
        check_resume(given, words)
        stored = None
        if is_first():
            directory = RunDirectory(given.resume)
            settings, facts = directory.read_settings(), directory.read_facts()
            stored = [to_json(settings), facts["command"]]
        content, command = from_first(stored)
        settings, folder = settings_from_json(content), given.resume
    else:
        settings, command = with_images(given.settings, given), repeating_command(words)
        now = datetime.datetime.now().strftime("%Y%m%d-%H%M%S")
        folder = given.output_dir or Path("runs") / f"{given.config}-{now}"
    folder = Path(from_first(str(folder)))
    return settings, command, folder


def with_images(settings: RunSettings, given: Arguments) -> RunSettings:
    """The settings with the images that --data or --download name.

    Raises:
        ValueError: If both are given.
    """
    if given.data is not None and given.download is not None:
        raise ValueError("--data and --download exclude each other: give one of them")
    source = given.data
    if given.download is not None:
        from convattn.lab.data.download import download_archive

        source = download_archive(given.download, given.download_dir)
    if source is None:
        source = Path(settings.images.source) if settings.images.source else None
    if source is None:
        return settings
    images = replace(settings.images, source=str(source.resolve()))
    return replace(settings, images=images)
