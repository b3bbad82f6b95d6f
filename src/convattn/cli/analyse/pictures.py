"""The commands of `experiments/analyse.py` that draw."""

from convattn.cli.analyse.number_options import Epoch, Epochs, Layer
from convattn.cli.analyse.output import (
    FAILED,
    Folder,
    JsonFile,
    Run,
    Runs,
    require_file,
    require_folder,
    require_runs,
    save,
    write_numbers,
)
from convattn.cli.output import console
from convattn.cli.running import SUCCESS, UsageError
from convattn.lab.analysis.picture import picture_name

LONGEST_NAME = 150


def curves(runs: Runs, output_dir: Folder = None, json: JsonFile = None) -> int:
    """Accuracy over the epochs of one or several runs (C20, Figs. 2 and 13).

    Args:
        runs: Folders of runs.
        output_dir: Where to write the picture; figures/ of the first run if not given.
        json: Where to write the numbers, as JSON.
    """
    from convattn.lab.analysis.curves import accuracy_curves, draw_curves

    require_runs(runs)
    require_file(json)
    require_folder(output_dir)
    found = [accuracy_curves(run) for run in runs]
    for curve in found:
        print(curve.label)
    write_numbers(
        json,
        {
            "runs": [
                {"run": str(run), "train": each.train.tolist(), "test": each.test.tolist()}
                for run, each in zip(runs, found, strict=True)
            ]
        },
    )
    others = tuple(run.resolve().name for run in runs[1:])
    name = picture_name("curves", **{"with-": others or None})[:LONGEST_NAME]
    return save(draw_curves(found), runs[0], output_dir, name)


def centers(run: Run, epoch: Epoch = None, output_dir: Folder = None) -> int:
    """Centres of attention in each layer, with 50 % and 90 % ellipses (C20, Figs. 4, 12 and 14).

    Args:
        run: The folder of a run with quadratic or general Gaussian attention.
        epoch: Of the snapshot; if not given the newest, or that nearest to the best epoch where
            that was chosen.
        output_dir: Where to write the picture; figures/ of the run if not given.
    """
    from convattn.lab.analysis.figures import centers_figure

    require_folder(output_dir)
    name = picture_name("centers", epoch=epoch)
    return save(centers_figure(run, epoch), run, output_dir, name)


def motion(
    run: Run,
    layer: Layer = None,
    epochs: Epochs = None,
    output_dir: Folder = None,
) -> int:
    """Centres of attention of one layer during training (C20, Fig. 3).

    Args:
        run: The folder of a run with quadratic or general Gaussian attention.
        layer: Counted from 1; the fourth if not given, or the last of fewer.
        epochs: Of the snapshots to show; six of them, closer at the beginning, if not given.
        output_dir: Where to write the picture; figures/ of the run if not given.
    """
    from convattn.lab.analysis.figures import motion_figure, motion_layer

    require_folder(output_dir)
    chosen = motion_layer(run) if layer is None else layer
    name = picture_name(f"motion-layer{chosen}", epochs=epochs)
    return save(motion_figure(run, chosen, epochs), run, output_dir, name)


def convolution(
    run: Run, kernel_size: int = 3, output_dir: Folder = None, json: JsonFile = None
) -> int:
    """How close each layer and head is to a convolution, over training.

    Args:
        run: The folder of a run of an encoder.
        kernel_size: Of the convolution, in tokens.
        output_dir: Where to write the picture; figures/ of the run if not given.
        json: Where to write the numbers, as JSON.
    """
    from convattn.lab.analysis.convolution import distance_history
    from convattn.lab.analysis.convolution_picture import distance_table, draw_distances
    from convattn.lab.analysis.figures import KERNEL_SIZE, distance_title

    require_file(json)
    require_folder(output_dir)
    history = distance_history(run, kernel_size)
    console().print(distance_table(history))
    write_numbers(json, history.to_json())
    figure = draw_distances(history, distance_title(run, kernel_size))
    kernel = None if kernel_size == KERNEL_SIZE else kernel_size
    return save(figure, run, output_dir, picture_name("convolution", kernel=kernel))


def figures(run: Run) -> int:
    """Every picture that fits a run, into its folder figures/.

    Args:
        run: The folder of a run.
    """
    from convattn.lab.analysis.figures import draw_all
    from convattn.lab.analysis.picture import require_matplotlib
    from convattn.lab.analysis.run_summary import read_summary
    from convattn.lab.training.snapshots import snapshot_epochs

    started = read_summary(run).epochs_done or snapshot_epochs(run)
    require_matplotlib()
    if not started:
        raise UsageError(f"{run} has no finished epoch yet, so nothing can be drawn")
    paths = draw_all(run)
    for path in paths:
        print(path)
    return SUCCESS if paths else FAILED
