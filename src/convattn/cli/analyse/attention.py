"""The command `attention` of `experiments/analyse.py`."""

from collections.abc import Sequence
from typing import Annotated

import tyro

from convattn.cli.analyse.number_options import Count, Epoch, Indices, Query
from convattn.cli.analyse.output import Folder, Run, require_folder, save
from convattn.cli.running import SUCCESS, UsageError
from convattn.lab.analysis.picture import picture_name

AVERAGED = 100


def attention(
    run: Run,
    query: Query = None,
    image: Indices = (),
    average: Count = None,
    position_only: Annotated[bool, tyro.conf.FlagCreatePairsOff] = False,
    epoch: Epoch = None,
    output_dir: Folder = None,
) -> int:
    """What a query attends to, for each layer and head (C20, Figs. 5 to 10).

    Maps by position come from a snapshot; --image and --average use the parameters of the newest
    checkpoint, or of the best one where that was chosen. Without content attention is the same for
    all images: --image then draws an image beside its maps, and --average is refused. With content
    maps are averaged over test images unless --image or --position-only is given.

    Args:
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
    from convattn.lab.analysis.figures import position_figure
    from convattn.lab.analysis.snapshot_layers import encoder_settings

    require_folder(output_dir)
    content = encoder_settings(run).encoding == "content"
    require_agreement(content, image, average, position_only, epoch)
    if not content:
        print("this attention does not know the content: its maps are the same for all images")
    if position_only or not (content or image):
        name = picture_name("attention-position", query=query, epoch=epoch)
        return save(position_figure(run, query, epoch), run, output_dir, name)
    from convattn.lab.analysis.image_attention import average_figure, image_figures
    from convattn.lab.analysis.restored_run import restore_run

    restored = restore_run(run)
    if not image:
        count = min(AVERAGED, len(restored.dataset.test)) if average is None else average
        figure = average_figure(run, restored, query, count)
        name = picture_name("attention-average", of=average, query=query)
        return save(figure, run, output_dir, name)
    for index, figure in image_figures(run, restored, query, image).items():
        save(figure, run, output_dir, picture_name(f"attention-image{index}", query=query))
    return SUCCESS


def require_agreement(
    content: bool, image: Sequence[int], average: int | None, position_only: bool, epoch: int | None
) -> None:
    """Refuse options of `attention` that exclude each other, or of which one would be ignored.

    Raises:
        UsageError: As described above.
    """
    if image and average is not None:
        raise UsageError("--image shows single images; leave out --image or --average")
    if position_only and image:
        raise UsageError("--position-only has no images; leave out --image or --position-only")
    if position_only and average is not None:
        raise UsageError("--position-only has no images; leave out --average or --position-only")
    if not content and average is not None:
        raise UsageError(
            "without content attention is the same for all images; leave out --average"
        )
    if epoch is not None and not position_only and (content or image):
        raise UsageError(
            "--epoch is of a snapshot, but maps of images come from a checkpoint; leave it out, or "
            "give --position-only"
        )
