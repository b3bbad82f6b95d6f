"""The folder of a pipeline: what it holds, and under which names.

two_phase.json   the settings
phase1/          the run of the convolution phase
phase2/          the run of the attention phase, which began with the converted parameters;
                 its conversion.json says how, and what the check before it saw
summary.json     what came of it
figures/         pictures
"""

import json
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from convattn.files import write_file
from convattn.lab.settings import changed_fields, to_json
from convattn.lab.two_phase.settings import TwoPhaseSettings, two_phase_from_json

SETTINGS, SUMMARY = "two_phase.json", "summary.json"


@dataclass(frozen=True)
class TwoPhaseDirectory:
    """The folder of a pipeline."""

    path: Path

    @property
    def phase_one(self) -> Path:
        """The run of the convolution phase."""
        return self.path / "phase1"

    @property
    def phase_two(self) -> Path:
        """The run of the attention phase."""
        return self.path / "phase2"

    @property
    def figures(self) -> Path:
        """Where pictures go."""
        return self.path / "figures"

    def read_settings(self) -> TwoPhaseSettings:
        """The settings of the pipeline.

        Raises:
            ValueError: If this is not the folder of one.
        """
        return two_phase_from_json(read_json(self.path / SETTINGS)["settings"])

    def read_command(self) -> str:
        """What repeats it."""
        return read_json(self.path / SETTINGS)["command"]

    def read_summary(self) -> dict[str, Any] | None:
        """What came of it; None if it has not ended."""
        return read_json(self.path / SUMMARY) if (self.path / SUMMARY).exists() else None

    def begin(self, settings: TwoPhaseSettings, command: str) -> None:
        """Write the settings into a new or empty folder, or find the same there.

        Raises:
            ValueError: If the folder holds something else.
        """
        path = self.path
        if path.exists() and not path.is_dir():
            raise ValueError(f"{path} is a file, but the folder of a pipeline was expected")
        if (path / SETTINGS).exists():
            changed = changed_fields(self.read_settings(), settings)
            if changed:
                raise ValueError(
                    f"{path} holds a pipeline with other settings (they differ in "
                    f"{', '.join(changed)}); take another folder, or --resume it as it is"
                )
            return
        if path.is_dir() and any(path.iterdir()):
            raise ValueError(
                f"{path} is not empty and holds no {SETTINGS}, so it is not the folder of a "
                "pipeline; take another one"
            )
        path.mkdir(parents=True, exist_ok=True)
        write_json(path / SETTINGS, {"settings": to_json(settings), "command": command})


def read_json(path: Path) -> dict[str, Any]:
    """A file of a pipeline.

    Raises:
        ValueError: If it is missing or damaged.
    """
    try:
        return json.loads(path.read_text())
    except FileNotFoundError as error:
        raise ValueError(
            f"{path.parent} has no {path.name}, so it is not the folder of a pipeline; expected "
            "one that `python experiments/two_phase.py` has written"
        ) from error
    except ValueError as error:  # no JSON, or no UTF-8
        raise ValueError(f"{path} is no JSON ({error}); the file was damaged") from error


def write_json(path: Path, content: dict[str, Any]) -> None:
    """Write a file of a pipeline, at once or not at all."""
    write_file(path, (json.dumps(content, indent=2) + "\n").encode())
