"""The files of experiments/configs/: one run each."""

import ast
import difflib
import importlib.util
import re
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from convattn_lab.runs.settings import RunSettings


@dataclass(frozen=True)
class Config:
    """A file of experiments/configs/.

    Attributes:
        name: The file's.
        path: The file.
        description: Its docstring: the paper's item, the expected figure, hardware, time and
            command.
    """

    name: str
    path: Path
    description: str

    @property
    def title(self) -> str:
        """The first line of the description."""
        return self.description.strip().splitlines()[0]

    @property
    def repeats(self) -> str:
        """The paper's item, from the line that begins with "Repeats"; empty without one."""
        match = re.search(r"^ *Repeats +(.+)$", self.description, re.MULTILINE)
        return match[1] if match else ""

    def load(self, kind: Any = RunSettings) -> Any:
        """The settings that the file holds as CONFIG.

        Args:
            kind: Their class.

        Raises:
            ValueError: If it holds none.
        """
        spec = importlib.util.spec_from_file_location(f"_convattn_config_{self.name}", self.path)
        if spec is None or spec.loader is None:
            raise ValueError(f"{self.path} cannot be loaded as a Python module")
        module = importlib.util.module_from_spec(spec)
        spec.loader.exec_module(module)
        config = getattr(module, "CONFIG", None)
        if not isinstance(config, kind):
            raise ValueError(f"{self.path} has no CONFIG, but expected one: {kind.__name__}(...)")
        return config


def find_configs(folder: Path) -> dict[str, Config]:
    """The configs of a folder by name; none of them is executed.

    Raises:
        ValueError: If there is none, or if one does not describe itself.
    """
    configs = {}
    for path in sorted(folder.glob("[!_]*.py")):
        description = ast.get_docstring(ast.parse(path.read_text()))
        if not description:
            raise ValueError(
                f"{path} has no docstring, but should open with the paper's item, the expected "
                "figure, the hardware, the time and the command"
            )
        configs[path.stem] = Config(path.stem, path, description)
    if not configs:
        raise ValueError(f"{folder} holds no configs, but expected files such as slice.py")
    return configs


def get_config(folder: Path, name: str) -> Config:
    """The config of that name.

    Raises:
        ValueError: With the nearest names.
    """
    configs = find_configs(folder)
    if name not in configs:
        near = difflib.get_close_matches(name, configs, n=3, cutoff=0.4)
        hint = f"did you mean {' or '.join(near)}? " if near else ""
        raise ValueError(f"no config {name!r}: {hint}There are {', '.join(configs)}")
    return configs[name]
