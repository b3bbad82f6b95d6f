"""The folder of a run: what it holds, and under which names.

config.json      the settings
run.json         versions, machine, devices, git state, images, the command that repeats it
metrics.jsonl    one line for each epoch
result.json      how it ended, and the figure that it may claim
initial.npz      the parameters that it began with, where they were not drawn
pruning.json     which heads of which run were pruned for them, and what that did
conversion.json  from which run of convolutions they were converted, how, and what the check saw
checkpoints/     the newest states;  best/  the best one on the validation images
snapshots/       the attention at many epochs
figures/         pictures
tensorboard/     the metrics for TensorBoard
"""

import hashlib
import json
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from convattn.files import brief, parse_json, read_file, write_inside
from convattn_lab.runs.settings import RunSettings, settings_from_json
from convattn_lab.settings import to_json
from convattn_lab.training.metrics import Kinds, require_kinds
from convattn_lab.training.snapshots import read_arrays, write_arrays

CONFIG, RUN, RESULT, INITIAL = "config.json", "run.json", "result.json", "initial.npz"
PRUNING, CONVERSION = "pruning.json", "conversion.json"
IMAGES: Kinds = {
    **dict.fromkeys(("name", "note", "sha256"), str),
    **dict.fromkeys(("train", "validation", "test", "classes"), int),
    "size": list,
}
DAMAGED_FILE = "the file was damaged: put back what was there, or take another folder"
CONVERTED: dict[str, Kinds] = {
    "source": {"config": dict},
    "conversion": {
        **dict.fromkeys(("kind", "content", "border"), str),
        **{"logit": float, "leak": float, "heads": int},
    },
    "check": {"images": int, "seen": float, "bound": float},
    "test": {"images": int, "changed": int, "before": float, "after": float},
    "gradients": {},
}
GRADIENTS: Kinds = {"norm": float, "zeros": int, "parameters": int}
ENDED: Kinds = {
    "status": str,
    **dict.fromkeys(("step", "steps", "test_images", "parameters"), int),
    **dict.fromkeys(("test_accuracy", "test_loss", "seconds"), float | None),
}


@dataclass(frozen=True)
class RunDirectory:
    """The folder of a run."""

    path: Path

    @property
    def figures(self) -> Path:
        """Where pictures go."""
        return self.path / "figures"

    def read_settings(self) -> RunSettings:
        """The settings of the run.

        Raises:
            ValueError: If this is not the folder of a run.
        """
        return settings_from_json(read_json(self.path / CONFIG))

    def read_metadata(self) -> dict[str, Any]:
        """Versions, machine, images, command.

        Raises:
            ValueError: If it is missing or damaged.
        """
        metadata = read_json(self.path / RUN)
        require_kinds(metadata, {"command": str, "images": dict}, self.path / RUN)
        require_kinds(metadata.get("images", {}), IMAGES, self.path / RUN)
        return metadata

    def read_images(self) -> dict[str, Any]:
        """What `run.json` says of the images; at least their name, note and number.

        Raises:
            ValueError: If it is missing or damaged, or the run is not one of images.
        """
        images = self.read_metadata().get("images", {})
        require_kinds(images, IMAGES, self.path / RUN, required=("name", "note", "train"))
        return images

    def read_result(self) -> dict[str, Any] | None:
        """How it ended; None if it has not.

        Raises:
            ValueError: If it is damaged.
        """
        result = self._optional(RESULT)
        if result is not None:
            require_kinds(result, ENDED, self.path / RESULT, required=("status",))
            accuracy = result.get("test_accuracy") or 0
            if not 0 <= accuracy <= 1 + 2.0**-20:  # float32 may round a fraction up
                raise ValueError(
                    f"{self.path / RESULT}: test_accuracy is {accuracy}, but expected a number "
                    f"from 0 to 1; {DAMAGED_FILE}"
                )
        return result

    def read_initial(self) -> dict[str, np.ndarray] | None:
        """The parameters that the run began with, or None if they were drawn."""
        path = self.path / INITIAL
        return read_arrays(path) if path.exists() else None

    def initial_digest(self) -> str | None:
        """SHA-256 of `initial.npz`, in hexadecimal; None if there is none."""
        path = self.path / INITIAL
        return hashlib.sha256(read_file(path)).hexdigest() if path.exists() else None

    def read_pruning(self) -> dict[str, Any] | None:
        """What pruning another run did, unchecked, or None if this one was not made by that.

        Raises:
            ValueError: If it holds no JSON object.
        """
        return self._optional(PRUNING)

    def read_conversion(self) -> dict[str, Any] | None:
        """How the parameters were converted, or None if this run was not made by that.

        Raises:
            ValueError: If it is damaged.
        """
        conversion = self._optional(CONVERSION)
        if conversion is not None:
            where = self.path / CONVERSION
            require_kinds(conversion, dict.fromkeys(CONVERTED, dict), where, required=[*CONVERTED])
            for name, kinds in CONVERTED.items():
                require_kinds(conversion[name], kinds, f"{where}, {name}", required=[*kinds])
            for name, group in conversion["gradients"].items():
                require_kinds({name: group}, {name: dict}, f"{where}, gradients")
                require_kinds(group, GRADIENTS, f"{where}, {name[:100]}", required=[*GRADIENTS])
        return conversion

    def write_settings(self, settings: Any) -> None:
        """Write `config.json`, in a folder that is made if it is missing."""
        self.write(CONFIG, to_json(settings))

    def write_initial(self, arrays: Mapping[str, Any]) -> None:
        """Write `initial.npz`, in a folder that is made if it is missing."""
        write_arrays(self.path / INITIAL, arrays, compressed=False)

    def write(self, name: str, content: dict[str, Any]) -> None:
        """Write one of the JSON files, in a folder that is made if it is missing."""
        self.path.mkdir(parents=True, exist_ok=True)
        write_json(self.path / name, content)

    def _optional(self, name: str) -> dict[str, Any] | None:
        return read_json(self.path / name) if (self.path / name).exists() else None


def read_json(path: Path, kind: str = "run", *, may_be_new: bool = False) -> dict[str, Any]:
    """A JSON file of a folder that a script of experiments/ has written.

    Args:
        kind: What the folder is of, for the message.
        may_be_new: Whether results are to go there, so that a new folder would do.

    Raises:
        ValueError: If it is missing or damaged.
    """
    try:
        content = parse_json(read_file(path))
    except FileNotFoundError as error:
        raise ValueError(
            f"{path.parent} has no {path.name}, so it is not the folder of a {kind}; expected one "
            f"that a script of experiments/ has written{', or a new folder' * may_be_new}"
        ) from error
    except ValueError as error:  # no JSON, or no UTF-8
        raise ValueError(f"{path} is no JSON ({str(error)[:200]}); {DAMAGED_FILE}") from error
    if not isinstance(content, dict):
        raise ValueError(f"{path} is {brief(content)}, but expected an object; {DAMAGED_FILE}")
    return content


def write_json(path: Path, content: dict[str, Any]) -> None:
    """Write a JSON file, at once or not at all."""
    write_inside(path, (json.dumps(content, indent=2) + "\n").encode())
