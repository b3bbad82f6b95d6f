"""``convattn accelerator``: what this device does, measured in the minutes that there are."""

from dataclasses import dataclass
from pathlib import Path
from typing import Annotated

from convattn.cli.output import print_lines, require_folder
from convattn.cli.running import FAILED, SUCCESS, UsageError, option, termination_raises

MIN_MINUTES = 1.0


@dataclass(frozen=True)
class Accelerator:
    """Measure and check this device, and train on it, in the minutes that there are.

    An audit of its arithmetic; every back end against float64, within derived bounds; the times of
    layers and networks, and the rates by which `auto` chooses among back ends; what the runs of the
    papers would take; then C20's quadratic model is trained in the time that is left. All goes into
    one folder, with a page to send on. The same command goes on where it stopped, until the
    training is done. On a CPU sizes are small.

    Attributes:
        minutes: In all.
        output: The folder.
        data: An official archive of CIFAR-10, or image folders; default: the bundled slice.
    """

    minutes: Annotated[float, option("N")] = 25.0
    output: Annotated[Path, option("DIR", aliases=["-o"])] = Path("build/accelerator")
    data: Annotated[Path | None, option("PATH")] = None

    def __call__(self) -> int:
        """Run the stages that are not done.

        Returns:
            1 if a stage failed, else 0.

        Raises:
            UsageError: For too few minutes, a folder that holds something else, or a device on
                which JAX does not start.
        """
        from convattn.files import write_file
        from convattn_lab.accelerator.page import FILE_NAME, page
        from convattn_lab.accelerator.session import read_session, run_session

        if not MIN_MINUTES <= self.minutes < float("inf"):
            raise UsageError(
                f"--minutes {self.minutes:g}, but expected at least {MIN_MINUTES:g}; 25 is "
                "enough for all but the training"
            )
        if self.data is not None and not self.data.exists():
            raise UsageError(
                f"--data {self.data} is not there; leave it out for the bundled images"
            )
        require_folder(self.output, "--output")
        try:
            with termination_raises():
                run_session(self.output, self.minutes, self.data, lambda line: print_lines([line]))
        finally:
            session = read_session(self.output) if self.output.is_dir() else None
            if session is not None and session.sessions:
                write_file(self.output / FILE_NAME, page(self.output, session))
                print_lines([f"page: {self.output / FILE_NAME}"])
        assert session is not None
        return FAILED if any(e.status == "failed" for e in session.stages.values()) else SUCCESS
