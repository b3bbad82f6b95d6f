import math
from dataclasses import replace

import numpy as np
import pytest
from comparison import assert_equal, assert_within, gamma
from lab.analysis.pictures import png_pixels, svg_ids, svg_text
from lab.analysis.synthetic_runs import TINY, random_snapshot, write_run
from scipy.stats import chi2

from convattn.diagnosis.picture import save_picture
from convattn_lab.analysis import centers
from convattn_lab.analysis.centers import (
    GaussianHeads,
    centers_of_layers,
    centers_over_training,
    draw_centers,
    head_ellipse,
    omissions,
    radius,
    window,
)
from convattn_lab.models.settings import EncoderSettings

CENTER = np.array([1.5, -0.25])
ROOT = np.array([[1.2, 0.7], [-0.3, 0.4]])


@pytest.mark.parametrize("fraction", [0.0, 0.5, 0.9, 0.999])
def test_the_radius_holds_the_fraction(fraction: float) -> None:
    # scipy and we round a few times each; the density of the square at its quantile is at most ½.
    assert_within(chi2.cdf(radius(fraction) ** 2, 2), fraction, gamma(50, float))


@pytest.mark.parametrize("fraction", [0.5, 0.9])
@pytest.mark.parametrize("planted", [False, True])
def test_the_boundary_is_where_the_gaussian_says(fraction, planted, monkeypatch) -> None:
    if planted:  # a wrong radius
        monkeypatch.setattr(centers, "radius", lambda fraction: math.sqrt(-math.log1p(-fraction)))
    ellipse = head_ellipse(CENTER, ROOT, fraction)
    # R times a semi-axis is ρ long, with a relative error of some dozens of roundings times the
    # condition number.
    slack = np.linalg.cond(ROOT) * gamma(200, float)
    for turn in np.linspace(0, 2 * np.pi, 7):
        components = np.array([np.cos(turn), np.sin(turn)]) * ellipse.semi_axes
        distance = np.sum((ROOT @ (components @ ellipse.directions)) ** 2)
        ratio = distance / (-2 * math.log(1 - fraction))
        assert (abs(ratio - 1) <= slack) is not planted


def test_extents_and_angle_of_a_turned_ellipse_and_of_a_stripe() -> None:
    half = math.sqrt(0.5)
    turned = np.diag([1.0, 0.5]) @ np.array([[half, half], [-half, half]])
    result = head_ellipse(np.zeros(2), turned, 1 - math.exp(-0.5))
    assert_within(result.semi_axes, [1.0, 2.0], gamma(200, float))
    assert_within(result.half_extents, math.sqrt(2.5) * np.ones(2), gamma(200, float))
    assert_within(result.angle % 180, 45.0, 180 * gamma(200, float))
    stripe = head_ellipse(np.zeros(2), np.diag([0.0, 1.0]), 1 - math.exp(-0.5))
    assert stripe.semi_axes.tolist() == [1.0, np.inf]
    assert stripe.half_extents.tolist() == [np.inf, 1.0]


@pytest.mark.parametrize(
    ("center", "root"),
    [
        ([0.0, 0.0], np.zeros((2, 2))),
        ([0.0, 0.0], np.diag([np.nan, 1.0])),
        ([0.0, 0.0], np.diag([np.inf, 1.0])),
        ([np.nan, 0.0], np.eye(2)),
    ],
)
def test_there_is_no_ellipse_without_a_shape(center, root) -> None:
    assert head_ellipse(np.array(center), root, 0.5) is None


def test_motion_shows_one_layer_at_several_epochs(stored_run) -> None:
    panels = centers_over_training(stored_run, 2)
    assert [panel.title for panel in panels] == ["epoch 0", "epoch 2", "epoch 4"]
    for epoch, panel in zip((0, 2, 4), panels, strict=True):
        assert_equal(panel.centers, random_snapshot(TINY, epoch)["layer2.centers"])
    chosen = centers_over_training(stored_run, 1, [4, 0, 4])
    assert [panel.title for panel in chosen] == ["epoch 4", "epoch 0"]


def test_a_layer_that_there_is_not_and_no_epochs_are_refused(stored_run) -> None:
    for layer, epochs, message in (
        *((layer, None, f"layer {layer}, but .* has layers 1 to 2") for layer in (0, 3)),
        (1, (), "--epochs has no numbers"),
    ):
        with pytest.raises(ValueError, match=message):
            centers_over_training(stored_run, layer, epochs)


@pytest.mark.parametrize("encoding", ["learned", "content"])
def test_heads_without_centres_are_refused_by_name(tmp_path, encoding) -> None:
    run = write_run(tmp_path / "run", EncoderSettings(encoding, heads=(2,), width=8))
    for analysis in (centers_of_layers, lambda path: centers_over_training(path, 1)):
        with pytest.raises(ValueError, match=rf"'{encoding}', which has no centres.* attention "):
            analysis(run)


def test_pruned_heads_keep_their_numbers_and_colours(pruned_run) -> None:
    _, panels = centers_of_layers(pruned_run)
    assert [panel.numbers for panel in panels] == [(1, 3, 4), (2, 3)]
    figure = draw_centers(panels, "a title")
    colours = [
        {text.get_gid(): text.get_color() for text in axes.texts}
        for axes in figure.axes
        if axes.texts
    ]
    assert list(colours[0]) == [f"panel1-head{number}-centre" for number in (1, 3, 4)]
    assert colours[0]["panel1-head3-centre"] == colours[1]["panel2-head3-centre"]
    assert colours[0]["panel1-head1-centre"] != colours[1]["panel2-head2-centre"]


def heads(centers, roots, tokens=(16, 16)) -> GaussianHeads:
    numbers = tuple(range(1, len(centers) + 1))
    arrays = (np.array(centers, float), np.array(roots, float), tokens)
    return GaussianHeads("layer 1", *arrays, 1, numbers)


ODD = heads(
    [[0, 0], [0, 0], [9, 0], [np.nan, 0], [1, 1], [40, 0]],
    [np.eye(2), np.zeros((2, 2)), np.eye(2), np.eye(2), np.diag([1e-9, 1.0]), np.eye(2)],
)
NONE = heads(np.zeros((0, 2)), np.zeros((0, 2, 2)))


def test_the_window_holds_the_ellipses_that_are_not_huge() -> None:
    circle = math.sqrt(2 * math.log(10))  # the 90 % ellipse of the identity
    assert window([ODD]) == pytest.approx(9 + circle + 0.5)
    assert window([heads([[0, 0]], [np.eye(2)])]) == 3.5
    assert window([heads([[15, 0]], [np.eye(2)])]) == pytest.approx(15 + circle + 0.5)
    assert window([heads([[15, 0]], [np.eye(2) / 9])]) == 16.5  # too wide: the centre counts
    assert window([NONE]) == 3.5


def test_what_a_picture_leaves_out_is_counted() -> None:
    """Zero and NaN have no ellipse; the stripe and the unit circle around 40 reach beyond 11.6;
    NaN and 40 have their centres elsewhere. A head at several epochs counts once."""
    text = omissions([ODD], window([ODD]))
    for phrase in ("No ellipse", "ellipse of 2 of 6 heads is clipped", "centre of 2 of 6 heads is"):
        assert phrase in text
    assert "drawn of 2 of 6 heads" in text
    assert omissions([heads([[0, 0]], [np.eye(2)])], 3.5) == ""
    first = heads([[0, 0], [40, 0]], [np.eye(2), np.eye(2)])
    later = heads([[40, 0], [40, 0]], [np.eye(2), np.eye(2)])
    assert "2 of 2 heads is outside at some epoch" in omissions([first, later, later], 3.5)
    assert "3 of 4 heads is outside." in omissions([first, replace(later, layer=2)], 3.5)


@pytest.mark.slow
def test_the_picture_has_every_head_and_ellipse(tmp_path) -> None:
    panels = [ODD, replace(ODD, layer=2), NONE]
    png, svg = save_picture(draw_centers(panels, "a title"), tmp_path, "centers")
    assert png_pixels(png).std() > 0
    assert len(svg_ids(svg, "-query")) == 3
    assert len(svg_ids(svg, "-centre")) == 2 * 5
    for percent in (50, 90):
        assert len(svg_ids(svg, f"-ellipse{percent}")) == 2 * 4
    text = svg_text(svg)
    assert text.count("layer 1, 6 heads") == 2
    assert "layer 1, 0 heads" in text
    assert "a title" in text
    assert "No ellipse can be drawn of 4 of 12 heads." in text
    assert text.count("column shift (tokens)") == 3
    assert text.count("row shift (tokens)") == 1
