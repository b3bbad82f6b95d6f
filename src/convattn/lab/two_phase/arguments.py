"""The arguments of `experiments/two_phase.py`, and the command that repeats a pipeline."""

import runpy
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from itertools import pairwise
from pathlib import Path
from typing import Annotated, Any, TypeVar

import tyro

from convattn.lab.runs.arguments import Archive, repeating_command
from convattn.lab.runs.configs import get_config
from convattn.lab.two_phase.settings import ComparisonSettings, TwoPhaseSettings

PROGRAM, DEFAULT = "experiments/two_phase.py", "tiny"
COMPARE, RECORD = "compare", "record"
Given = TypeVar("Given", bound="Sources")


@dataclass(frozen=True)
class Sources:
    """Where a config, the images and the results lie."""

    config: Annotated[str, tyro.conf.arg(metavar="NAME")] = DEFAULT
    """Start from this file of experiments/configs/two_phase/; its fields can be overridden."""
    list: Annotated[bool, tyro.conf.arg(name="list"), tyro.conf.FlagCreatePairsOff] = False
    """Show the configs and exit."""
    data: Annotated[Path | None, tyro.conf.arg(metavar="PATH")] = None
    """Train on an official archive of CIFAR-10 or CIFAR-100, or on image folders."""
    download: Archive | None = None
    """Fetch this official archive into --download-dir first, check it, and train on it."""
    download_dir: Path = Path("data")
    """Where --download puts the archive."""
    output_dir: Annotated[Path | None, tyro.conf.arg(metavar="DIR")] = None
    """Where everything goes; repeating the command with it goes on where it stopped."""
    figures: bool = True
    """Draw pictures at the end."""


@dataclass(frozen=True)
class Arguments(Sources):
    """Train a network of convolutions, turn it into attention, check it, and go on training.

    Without arguments: on the bundled slice of CIFAR-10, in a few minutes on two cores. The word
    `compare` in front trains many second phases after one first phase, and makes a table; `record`
    puts those of L21's size on record for the ledger.
    """

    settings: Annotated[TwoPhaseSettings, tyro.conf.arg(name="")] = field(
        default_factory=TwoPhaseSettings
    )


@dataclass(frozen=True)
class ComparisonArguments(Sources):
    """Train one first phase for each seed, and second phases that begin with it in several ways."""

    comparison: Annotated[ComparisonSettings, tyro.conf.arg(name="")] = field(
        default_factory=ComparisonSettings
    )


@dataclass(frozen=True)
class RecordArguments:
    """Put the runs of one seed of a comparison on record for L21.twophase."""

    folder: Annotated[Path, tyro.conf.Positional, tyro.conf.arg(metavar="FOLDER")]
    """The folder seed-S of a comparison."""
    replace: Annotated[bool, tyro.conf.FlagCreatePairsOff] = False
    """Replace the record of other runs."""


def read_record_arguments(words: Sequence[str]) -> RecordArguments:
    """What follows the word `record`.

    Raises:
        SystemExit: For what tyro refuses.
    """
    return tyro.cli(RecordArguments, args=list(words[1:]), prog=f"python {PROGRAM} {RECORD}")


def read_arguments(words: Sequence[str], configs: Path) -> Arguments | ComparisonArguments:
    """The arguments, over the config that they name.

    Raises:
        ValueError: For an unknown config; `SystemExit` for what tyro refuses.
    """
    named = [after for word, after in pairwise(words) if word == "--config"]
    named += [word.partition("=")[2] for word in words if word.startswith("--config=")]
    name = named[-1] if named else DEFAULT
    settings = load_config(configs, name)
    if words[:1] == [COMPARE]:
        chosen = ComparisonArguments(name, comparison=ComparisonSettings(settings))
        prog = f"python {PROGRAM} {COMPARE}"
        return tyro.cli(ComparisonArguments, default=chosen, args=list(words[1:]), prog=prog)
    default = Arguments(name, settings=settings)
    return tyro.cli(Arguments, default=default, args=list(words), prog=f"python {PROGRAM}")


def load_config(configs: Path, name: str) -> TwoPhaseSettings:
    """The settings that a config holds as CONFIG.

    Raises:
        ValueError: For an unknown name, or a file that holds none.
    """
    path = get_config(configs, name).path
    found: Any = runpy.run_path(str(path)).get("CONFIG")
    if not isinstance(found, TwoPhaseSettings):
        raise ValueError(f"{path} has no CONFIG, but should set it to TwoPhaseSettings(...)")
    return found


def command_of(words: Sequence[str]) -> str:
    """The one line that repeats a pipeline or a comparison, into a new folder.

    >>> command_of(["compare", "--seeds", "0", "1", "--output-dir", "runs/a"])
    'python experiments/two_phase.py compare --seeds 0 1'
    """
    if list(words[:1]) == [COMPARE]:
        program = f"{PROGRAM} {COMPARE}"
        return repeating_command(words[1:], program=PROGRAM).replace(PROGRAM, program, 1)
    return repeating_command(words, program=PROGRAM)


def with_images(settings: TwoPhaseSettings, given: Sources) -> TwoPhaseSettings:
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
    if source is None and settings.images.source:
        source = Path(settings.images.source)
    if source is None:
        return settings
    return replace(settings, images=replace(settings.images, source=str(source.resolve())))
