"""The commands of `experiments/analyse.py` that draw."""

from typing import Annotated

import tyro

from convattn.analysis.command_output import (
    Folder,
    JsonFile,
    Run,
    Runs,
    require_file,
    require_runs,
    save,
    write_figures,
)
from convattn.commands.consoles import console
from convattn.commands.guard import SUCCESS
from convattn.commands.usage import UsageError


def curves(runs: Runs, output_dir: Folder = None, json: JsonFile = None) -> int:
    """Accuracy over the epochs of one or several runs (C20, Figs. 2 and 13).

    Args:
        runs: Folders of runs.
        output_dir: Where to write the picture; figures/ of the first run if not given.
        json: Where to write the figures.
    """
    from convattn.analysis.curves import accuracy_curves, draw_curves

    require_runs(runs)
    require_file(json)
    found = [accuracy_curves(run) for run in runs]
    for curve in found:
        print(curve.label)
    write_figures(
        json,
        {
            "runs": [
                {"run": str(run), "train": each.train.tolist(), "test": each.test.tolist()}
                for run, each in zip(runs, found, strict=True)
            ]
        },
    )
    return save(draw_curves(found), runs[0], output_dir, "curves")


def centers(run: Run, epoch: int | None = None, output_dir: Folder = None) -> int:
    """Centres of attention in each layer, with 50 % and 90 % ellipses (C20, Figs. 4, 12 and 14).

    Args:
        run: The folder of a run with quadratic or general Gaussian attention.
        epoch: Of the snapshot; the newest if not given.
        output_dir: Where to write the picture; figures/ of the run if not given.
    """
    from convattn.analysis.figures import centers_figure

    name = "centers" if epoch is None else f"centers-epoch{epoch}"
    return save(centers_figure(run, epoch), run, output_dir, name)


def motion(
    run: Run,
    layer: int = 4,
    epochs: tuple[int, ...] | None = None,
    output_dir: Folder = None,
) -> int:
    """Centres of attention of one layer during training (C20, Fig. 3).

    Args:
        run: The folder of a run with quadratic or general Gaussian attention.
        layer: Counted from 1.
        epochs: Of the snapshots to show; six of them, closer at the beginning, if not given.
        output_dir: Where to write the picture; figures/ of the run if not given.
    """
    from convattn.analysis.figures import motion_figure

    return save(motion_figure(run, layer, epochs), run, output_dir, f"motion-layer{layer}")


def attention(
    run: Run,
    query: tuple[int, int] | None = None,
    image: tuple[int, ...] = (),
    average: int = 100,
    position_only: Annotated[bool, tyro.conf.FlagCreatePairsOff] = False,
    epoch: int | None = None,
    output_dir: Folder = None,
) -> int:
    """What a query attends to, for each layer and head (C20, Figs. 5 to 10).

    Without content attention is the same for all images, and the maps come from a snapshot. With
    content they are averaged over test images, or those of single images, from the model of the
    newest checkpoint.

    Args:
        run: The folder of a run of an encoder.
        query: Row and column of a token, counted from 0; the middle one if not given.
        image: Indices of test images: one picture for each, beside the image.
        average: Over how many test images, the first ones, maps are averaged.
        position_only: With content too, draw what the position alone does.
        epoch: Of the snapshot, for maps by position; the newest if not given.
        output_dir: Where to write the pictures; figures/ of the run if not given.
    """
    from convattn.analysis.figures import position_figure
    from convattn.analysis.snapshot_layers import encoder_settings

    content = encoder_settings(run).encoding == "content"
    if not content:
        print(
            "this attention does not know the content: maps by position, averaged maps and those "
            "of single images are the same"
        )
    if position_only or not (content or image):
        if image:
            raise UsageError("--position-only has no images; leave out --image or --position-only")
        return save(position_figure(run, query, epoch), run, output_dir, "attention-position")
    if epoch is not None:
        raise UsageError(
            "--epoch is of a snapshot, but maps of images come from the newest checkpoint; leave "
            "it out, or give --position-only"
        )
    from convattn.analysis.image_attention import average_figure, image_figures
    from convattn.analysis.restored_run import restore_run

    restored = restore_run(run)
    if not image:
        figure = average_figure(run, restored, query, average)
        return save(figure, run, output_dir, "attention-average")
    for index, figure in image_figures(run, restored, query, image).items():
        save(figure, run, output_dir, f"attention-image{index}")
    return SUCCESS


def convolution(
    run: Run, kernel_size: int = 3, output_dir: Folder = None, json: JsonFile = None
) -> int:
    """How close each layer and head is to a convolution, over training.

    Args:
        run: The folder of a run of an encoder.
        kernel_size: Of the convolution, in tokens.
        output_dir: Where to write the picture; figures/ of the run if not given.
        json: Where to write the figures.
    """
    from convattn.analysis.convolution import distance_history
    from convattn.analysis.convolution_picture import distance_table, draw_distances
    from convattn.analysis.figures import distance_title

    require_file(json)
    history = distance_history(run, kernel_size)
    console().print(distance_table(history))
    write_figures(json, history.to_json())
    figure = draw_distances(history, distance_title(run, kernel_size))
    return save(figure, run, output_dir, "convolution")


def figures(run: Run) -> int:
    """Every picture that fits a run, into its folder figures/.

    Args:
        run: The folder of a run.
    """
    from convattn.analysis.figures import draw_all
    from convattn.analysis.picture import require_matplotlib
    from convattn.analysis.run_summary import read_summary

    read_summary(run)
    require_matplotlib()
    for path in draw_all(run):
        print(path)
    return SUCCESS
