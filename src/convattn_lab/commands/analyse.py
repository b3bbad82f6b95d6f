"""The command line of `experiments/analyse.py`: numbers, tables and pictures from runs."""

import shlex
import sys
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Any

from tyro.conf import Positional, arg

from convattn.cli.output import console, require_folder, require_outputs, run_files, write_json
from convattn.cli.running import FAILED, SUCCESS, Flag, UsageError, dispatch, guarded, option

PROGRAM = "experiments/analyse.py"
AVERAGED = 100
MAX_NAME_LENGTH = 150

Run = Annotated[Path, Positional, arg(metavar="RUN")]
Runs = Annotated[tuple[Path, ...], Positional, arg(metavar="RUN [RUN …]")]
Folder = Annotated[Path | None, option("DIR")]
JsonFile = Annotated[Path | None, option("FILE")]
Epoch = Annotated[int | None, option("EPOCH")]
Count = Annotated[int | None, option("N")]


def main(arguments: Sequence[str] | None = None) -> int:
    """Run `experiments/analyse.py`.

    Args:
        arguments: The words after the program; those of this process if None.

    Returns:
        The exit code: 0 for success, 1 if training on failed, 2 for wrong use.
    """
    words = sys.argv[1:] if arguments is None else list(arguments)
    return guarded(" ".join([PROGRAM, *words[:1]]), lambda: _run(words))


def _run(words: list[str]) -> int:
    description = "Numbers, tables and pictures from the folders of runs."
    try:
        return dispatch(words, COMMANDS, f"python {PROGRAM}", description)
    except ValueError as error:
        raise UsageError(str(error)) from error


@dataclass(frozen=True)
class Curves:
    """Accuracy over the epochs of one or several runs (C20, Figs. 2 and 13).

    Attributes:
        runs: Folders of runs.
        output_dir: Where to write the picture; figures/ of the first run if not given.
        json: Where to write the numbers, as JSON.
    """

    runs: Runs
    output_dir: Folder = None
    json: JsonFile = None

    def __call__(self) -> int:
        """Draw the curves."""
        from convattn_lab.analysis.curves import draw_curves, run_curves

        _require(self.runs, self.output_dir, self.json)
        curves = [run_curves(run) for run in self.runs]
        for curve in curves:
            print(curve.label)
        numbers = [
            {"run": str(run), "train": curve.train.tolist(), "test": curve.test.tolist()}
            for run, curve in zip(self.runs, curves, strict=True)
        ]
        write_json(self.json, {"runs": numbers})
        others = tuple(run.resolve().name for run in self.runs[1:]) or None
        name = _name("curves", **{"with-": others})[:MAX_NAME_LENGTH]
        return _save(draw_curves(curves), self.runs[0], self.output_dir, name)


@dataclass(frozen=True)
class Centers:
    """Centres of attention in each layer, with 50 % and 90 % ellipses (C20, Figs. 4, 12 and 14).

    Attributes:
        run: The folder of a run with quadratic or general Gaussian attention.
        epoch: Of the snapshot; if not given the newest, or that nearest to the best epoch where
            that was chosen.
        output_dir: Where to write the picture; figures/ of the run if not given.
    """

    run: Run
    epoch: Epoch = None
    output_dir: Folder = None

    def __call__(self) -> int:
        """Draw the centres."""
        from convattn_lab.analysis.figures import centers_figure

        _require([self.run], self.output_dir)
        figure = centers_figure(self.run, self.epoch)
        return _save(figure, self.run, self.output_dir, _name("centers", epoch=self.epoch))


@dataclass(frozen=True)
class Motion:
    """Centres of attention of one layer during training (C20, Fig. 3).

    Attributes:
        run: The folder of a run with quadratic or general Gaussian attention.
        layer: Counted from 1; the fourth if not given, or the last of fewer.
        epochs: Of the snapshots to show; six of them, closer at the beginning, if not given.
        output_dir: Where to write the picture; figures/ of the run if not given.
    """

    run: Run
    layer: Annotated[int | None, option("LAYER")] = None
    epochs: Annotated[tuple[int, ...] | None, option("EPOCH [EPOCH …]")] = None
    output_dir: Folder = None

    def __call__(self) -> int:
        """Draw the centres of the layer."""
        from convattn_lab.analysis.figures import motion_figure, motion_layer

        _require([self.run], self.output_dir)
        layer = motion_layer(self.run) if self.layer is None else self.layer
        figure = motion_figure(self.run, layer, self.epochs)
        name = _name(f"motion-layer{layer}", epochs=self.epochs)
        return _save(figure, self.run, self.output_dir, name)


@dataclass(frozen=True)
class Attention:
    """What a query attends to, for each layer and head (C20, Figs. 5 to 10).

    Maps by position come from a snapshot; --image and --average use the parameters of the newest
    checkpoint, or of the best one where that was chosen. Without content attention is the same for
    all images: --image then draws an image beside its maps, and --average is refused. With content
    maps are averaged over test images unless --image or --position-only is given.

    Attributes:
        run: The folder of a run of an encoder.
        query: Row and column of a token, counted from 0; the middle one if not given.
        image: Indices of test images: one picture for each, beside the image.
        average: With content: over how many test images, the first ones, maps are averaged; 100, or
            all of fewer, if not given.
        position_only: With content too, draw what the position alone does.
        epoch: Of the snapshot, for maps by position; if not given the newest, or that nearest to
            the best epoch where that was chosen.
        output_dir: Where to write the pictures; figures/ of the run if not given.
    """

    run: Run
    query: Annotated[tuple[int, int] | None, option("ROW COLUMN")] = None
    image: Annotated[tuple[int, ...], option("INDEX [INDEX …]")] = ()
    average: Count = None
    position_only: Flag = False
    epoch: Epoch = None
    output_dir: Folder = None

    def __call__(self) -> int:
        """Draw the maps."""
        from convattn_lab.analysis.attention import average_figure, image_figures, position_figure
        from convattn_lab.analysis.restored_run import restore_run
        from convattn_lab.analysis.run_summary import encoder_settings

        path, query, folder = self.run, self.query, self.output_dir
        _require([path], folder)
        content = encoder_settings(path).encoding == "content"
        self._require_agreement(content)
        if not content:
            print("this attention does not know the content: its maps are the same for all images")
        if self.position_only or not (content or self.image):
            name = _name("attention-position", query=query, epoch=self.epoch)
            return _save(position_figure(path, query, self.epoch), path, folder, name)
        run = restore_run(path)
        if not self.image:
            fewer = min(AVERAGED, len(run.dataset.test))
            figure = average_figure(
                path, run, query, fewer if self.average is None else self.average
            )
            return _save(
                figure, path, folder, _name("attention-average", of=self.average, query=query)
            )
        for index, figure in image_figures(path, run, query, self.image).items():
            _save(figure, path, folder, _name(f"attention-image{index}", query=query))
        return SUCCESS

    def _require_agreement(self, content: bool) -> None:
        """Refuse options that exclude each other, or of which one would be ignored."""
        averaged = self.average is not None
        if self.image and averaged:
            raise UsageError("--image shows single images; leave out --image or --average")
        for name, value in (("--image", self.image), ("--average", averaged)):
            if self.position_only and value:
                raise UsageError(
                    f"--position-only has no images; leave out {name} or --position-only"
                )
        if not content and averaged:
            raise UsageError(
                "without content attention is the same for all images; leave out --average"
            )
        if self.epoch is not None and not self.position_only and (content or self.image):
            raise UsageError(
                "--epoch is of a snapshot, but maps of images come from a checkpoint; leave it "
                "out, or give --position-only"
            )


@dataclass(frozen=True)
class Table:
    """Accuracies and sizes of runs (C20, Tables 1 and 4).

    Attributes:
        runs: Folders of runs.
        markdown: Print Markdown.
        json: Where to write the numbers, as JSON.
    """

    runs: Runs
    markdown: Flag = False
    json: JsonFile = None

    def __call__(self) -> int:
        """Print the table."""
        from convattn_lab.records.table import markdown_table, rich_table, table_row

        _require(self.runs, None, self.json)
        rows = [table_row(run) for run in self.runs]
        if self.markdown:
            print(markdown_table(rows))
        else:
            console().print(rich_table(rows))
        write_json(self.json, {"rows": [row.to_json() for row in rows]})
        return SUCCESS


@dataclass(frozen=True)
class Prune:
    """Remove degenerate heads, and train on at a tenth of the rate (C20, appendix E, Fig. 13).

    A run without degenerate heads is left alone. An interrupted one goes on with the same command.

    Attributes:
        run: The folder of a finished run with quadratic or general Gaussian attention.
        output_dir: The folder of the new run; RUN-pruned, beside the run, if not given.
        epochs: To train on; a tenth of the run's if not given.
        threshold_eigenvalue: A head is degenerate if the largest eigenvalue of its inverse
            covariance is smaller,
        threshold_condition: or if the condition number is larger.
        json: Where to write the numbers, as JSON, also if no head is degenerate; pruning.json of
            the new run has them, too.
    """

    run: Run
    output_dir: Folder = None
    epochs: Count = None
    threshold_eigenvalue: float = 1e-5
    threshold_condition: float = 1e5
    json: JsonFile = None

    def __call__(self) -> int:
        """Prune the run and train on."""
        from convattn_lab.analysis.prune import Thresholds, prune_run
        from convattn_lab.analysis.run_summary import percent
        from convattn_lab.training.failures import NonFiniteLoss

        run = self.run.resolve()
        folder = self.output_dir or run.with_name(f"{run.name}-pruned")
        _require([self.run], folder, self.json)
        if self.epochs is not None and self.epochs < 1:
            raise UsageError(f"--epochs is {self.epochs}, but expected at least 1")
        limits = self.threshold_eigenvalue, self.threshold_condition
        thresholds = Thresholds(eigenvalue=limits[0], condition=limits[1])
        try:
            pruning = prune_run(
                self.run,
                folder,
                command=self._command(),
                epochs=self.epochs,
                thresholds=thresholds,
                console=console(),
            )
        except NonFiniteLoss as failure:
            print(f"{PROGRAM} prune: {failure}", file=sys.stderr)
            return FAILED
        write_json(self.json, pruning.to_json())
        if not any(pruning.removed):
            print(
                "no head is degenerate: every inverse covariance has an eigenvalue of at least "
                f"{self.threshold_eigenvalue:g} and a condition number of at most "
                f"{self.threshold_condition:g}; nothing was done"
            )
            return SUCCESS
        print(f"run: {folder}")
        if pruning.after is None:
            print("stopped; the same command goes on")
            return SUCCESS
        result = pruning.source["result"]
        print(
            f"test accuracy before {percent(pruning.before)}, without {sum(pruning.removed)} heads "
            f"{percent(pruning.pruned)}, after training on {percent(pruning.after)} "
            f"({result['test_images']:,} images of {result['images']})"
        )
        return SUCCESS

    def _command(self) -> str:
        """The line that repeats the pruning from anywhere, into a folder of its own."""
        words = ["prune", str(self.run.resolve())]
        for name in ("epochs", "threshold_eigenvalue", "threshold_condition"):
            value = getattr(self, name)
            if value != getattr(Prune, name):
                words += [f"--{name.replace('_', '-')}", repr(value)]
        return shlex.join(["python", PROGRAM, *words])


@dataclass(frozen=True)
class Convolution:
    """How close each layer and head is to a convolution, over training.

    Attributes:
        run: The folder of a run of an encoder.
        kernel_size: Of the convolution, in tokens.
        output_dir: Where to write the picture; figures/ of the run if not given.
        json: Where to write the numbers, as JSON.
    """

    run: Run
    kernel_size: int = 3
    output_dir: Folder = None
    json: JsonFile = None

    def __call__(self) -> int:
        """Measure the distances, and draw them."""
        from convattn_lab.analysis.convolution import (
            distance_history,
            distance_table,
            draw_distances,
        )
        from convattn_lab.analysis.figures import KERNEL_SIZE, distance_title

        _require([self.run], self.output_dir, self.json)
        history = distance_history(self.run, self.kernel_size)
        console().print(distance_table(history))
        write_json(self.json, history.to_json())
        figure = draw_distances(history, distance_title(self.run, self.kernel_size))
        kernel = None if self.kernel_size == KERNEL_SIZE else self.kernel_size
        return _save(figure, self.run, self.output_dir, _name("convolution", kernel=kernel))


@dataclass(frozen=True)
class Figures:
    """Every picture that fits a run, into its folder figures/.

    Attributes:
        run: The folder of a run.
    """

    run: Run

    def __call__(self) -> int:
        """Draw all."""
        from convattn.diagnosis.picture import require_matplotlib
        from convattn_lab.analysis.figures import draw_all
        from convattn_lab.analysis.run_summary import read_summary
        from convattn_lab.training.snapshots import snapshot_epochs

        started = read_summary(self.run).epochs_done or snapshot_epochs(self.run)
        require_matplotlib()
        if not started:
            raise UsageError(f"{self.run} has no finished epoch yet, so nothing can be drawn")
        paths = draw_all(self.run)
        for path in paths:
            print(path)
        return SUCCESS if paths else FAILED


COMMANDS = {
    kind.__name__.lower(): f"{__name__}:{kind.__name__}"
    for kind in (Curves, Centers, Motion, Attention, Table, Prune, Convolution, Figures)
}


def _require(runs: Sequence[Path], folder: Path | None, json: Path | None = None) -> None:
    """Refuse an empty list of runs, and results that could not be written or overwrite a run."""
    if not runs:
        raise UsageError("no RUN was given; name the folder of at least one run")
    folders = runs if folder is None else (*runs, folder)
    require_outputs({"--json": json}, {"RUN": [path for run in folders for path in run_files(run)]})
    require_folder(folder)


def _name(kind: str, **options: Any) -> str:
    """The name of a picture, with the options that were given, so that none replaces another.

    >>> _name("centers", epoch=None), _name("maps", query=(0, 3), epoch=2)
    ('centers', 'maps-query0-3-epoch2')
    """
    words = [kind]
    for name, value in options.items():
        if value is not None:
            values = value if isinstance(value, tuple) else (value,)
            words.append(name + "-".join(str(each) for each in values))
    return "-".join(words)


def _save(figure: Any, run: Path, folder: Path | None, name: str) -> int:
    """Write a picture into a folder, or the run's, and say where it is."""
    from convattn.diagnosis.picture import save_picture

    for path in save_picture(figure, run / "figures" if folder is None else folder, name):
        print(path)
    return SUCCESS
