from dataclasses import replace

import numpy as np
import pytest
from comparison import assert_equal

from convattn.data import load_cifar10_slice
from convattn_ledger.evidence import whole_images


def test_whole_distinct_test_images(run):
    images = whole_images(run)
    assert images.shape == (16, 32, 32, 3)
    assert images.dtype == np.int64
    pool = {image.tobytes() for image in load_cifar10_slice("test").images}
    drawn = {image.astype(np.uint8).tobytes() for image in images}
    assert len(drawn) == 16
    assert drawn <= pool
    assert images.min() >= 0
    assert images.max() <= 255
    assert len(np.unique(images)) > 200


def test_the_seed_and_the_evidence_alone_decide(run):
    assert_equal(whole_images(run), whole_images(replace(run, quick=True)))
    assert_equal(whole_images(run, 3), whole_images(run, 3))
    for other in (replace(run, seed=1), replace(run, evidence="there"), replace(run, claim="S.b")):
        assert (whole_images(run) != whole_images(other)).any()


def test_more_images_than_there_are_cannot_be_drawn(run):
    assert len(whole_images(run, 500)) == 500
    with pytest.raises(ValueError, match="larger sample"):
        whole_images(run, 501)
