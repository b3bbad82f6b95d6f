"""One table of what is refused: a case, the code, and changes of the body that each lead to it.

What the corpora of tests/incorrect/ have is not repeated here.
"""

import json

import certificate_builder as build
import pytest
from certificate_cases import (
    CASES,
    all_at_once,
    changed,
    drop,
    put,
    update,
    verdict_after,
    verdict_on,
)
from corpora.false_kernels import corners_unseen

from convattn_check.commutant import MOST_NODES

# 81 offsets and 225 · 8 rows.
many_steps = update(
    kernel_size=[64, 64], patch_size=[8, 8], out_channels=8, kernel=[1] * (64 * 64 * 8)
)
# Denominators 2^521 - 1 and 2^607 - 1, both below 2^1024, their multiple is not.
distinct_primes = all_at_once(
    *(put(["attention", 0, at], f"1/{2**n - 1}") for at, n in enumerate((521, 607)))
)


def prime_values(body):
    for entry, sign, power in zip(body["values"]["entries"], ("", "-"), (521, 607), strict=False):
        entry[2] = f"{sign}1/{2**power - 1}"


def minor_of_other_rows(body):
    body.update(rows=body["rows"][::-1], determinant=2, limit={"combination": ["0", "1"]})


def many_rows(body):
    body["rows"], body["columns"] = body["rows"] * 65, body["columns"] * 65


def many_heads(body):
    body["second"]["targets"] *= 20


many_channels = update(in_channels=129, out_channels=129, kernel=[0] * 3 * 129 * 129)
many_offsets = update(kernel_size=[12, 12], patch_size=[1, 1], kernel=[1] * 288)
many_narrow_offsets = update(kernel_size=[63], patch_size=[1], in_channels=3, out_channels=3)
many_columns = update(kernel_size=[33], out_channels=1, kernel=[1] * 33)
no_rows = update(rows=[], columns=[], determinant=1)
no_head = update(heads=[], count=0)
large_image = update(image=[20, 20])
set_score = update(score="bias")
REFUSED = """
wo malformed attention.family=["one_hot_limit"] attention.score="learned" attention.alpha=4
wo malformed attention.codes=[1] attention.targets.0=[1] attention.targets.0=null
wo malformed attention.targets.0=[0,true] extra=1 ring kernel_size=[5] kernel_size=[]
wo malformed kernel_size=[5,3,3] dilation=[true,1] stride=[1,"1"] stride_route="pixels"
wo malformed regime="both" pattern.0 ring=[[1,1]] ring.0=[1,1,1] values.more=1 values.entries={}
wo malformed values.entries.0=[0,8] values.entries.0=["0",8,"1"]
wo range kernel_size=[65,3] patch_size=[0,3] ring.1=[4097,1] heads=0
wo pattern pattern.1.0.0.2=false
enumerated malformed attention.spare="9" attention.codes.0 attention.spare
enumerated range attention.codes.1=10000000000000000000
polygon malformed attention.corners="9" attention.corners attention.codes.0
absolute malformed attention.forms attention.forms.0 attention.forms.0=[[2]]
finite malformed attention.score="bias"
finite attention attention.targets.0=[3,3]
powers malformed attention.bases.0=2 attention.bases.0
powers range attention.exponents.0=4097
commutant_line malformed boundary boundary="sphere" grid=4 shifts.0=[true]
commutant_line range grid=[] grid=[0] shifts=[] dimension=-1 dimension=17
commutant_grid range grid=[2,5] grid=[1,2,1,3]
commutant_grid malformed grid=[6]
border malformed sums kernel=[1,1,1,1,1,1,1,1] image_size=[4] queries=[[0,2]] queries.1=[0]
border range kernel_size=[33,3] image_size=[4097,5] queries.1=[-1,0]
border border sums=[[6],[true]]
border_patches border image_size=[8,16]
pixel_heads malformed extra=1 pixels=[2,2] heads.0={"rows":[["1","0"]]} heads.0={"scores":[]}
pixel_heads malformed heads.0=[] heads.0=0 inclusion.0=[] inclusion.0.0=["1"]
pixel_heads malformed separator=["1","0","-1"]
pixel_heads range pixels=[65] tap=1
relative_heads realizable heads.0.relative.1.0=false heads.0.relative.0.1="-1"
relative_heads malformed heads.0.relative.0 heads.0.relative.0=[-1] heads.0.rows=[]
hard_heads malformed inclusion.0.0
rank malformed value=[[1,2],[3,4]] output=[[1,0,2,0,3]]
rank range head_dimension=0 in_channels=65
survives range alpha=1 alpha=4097 exponent=1
survives malformed conclusion="fades"
survives series e_lower="0"
two_masks malformed unread extra=0 kernel=[1,1,1,1,1] heads=2 attention.0=["1","2","1"]
two_masks malformed values.family="lagrange" columns.0 limit.combination=["1"] limit=[] limit=0
two_masks range heads=130 rows.0.3=2 columns.0=[5000]
two_masks tokens unread=[3]
two_of_three malformed error thresholds.0
two_of_three error thresholds.1="0"
two_of_three range kernel.0=10000000000000000000
box_of_patches values values.entries.3.2="0"
narrow_heads malformed extra=1 regime regime="exact" kernel_size=[3,3,3] patch_size=[2,2]
narrow_heads malformed kernel=[0,0,0,0,0,0,0,0,0,0,0] kernel.1="3" determinant="15" columns.0
narrow_heads malformed columns.0=[0,1] rows.0=[0,1,0] tokens_per_side
narrow_heads range patch_size=[65] in_channels=0 head_dimension=0 rows.0.0=2 rows.0.3=2
narrow_heads triangular kernel.7=0 kernel.11=1
narrow_heads tokens tokens_per_side=[3] tokens_per_side=2
narrow_heads_unlike tokens tokens_per_side=[2,3]
A19.orders-orders range sizes.k=65
A19.orders-orders tensors tensors.A="ones"
A19.biaffine-forms tensors tensors.w="symbols"
A19.prop3-bare_grid_composite tensors tensors.G.3="1"
B19.sac-limit tensors tensors.N.border="zero"
B19.sac-two_heads malformed tensors.L.border="zero"
B19.cross-gap malformed tensors.r="identity"
patch_bound malformed extra=1 rows kernel_size=[3,3,3] kernel=[1,1,1,1,1,1,1,1] kernel.0="1"
patch_bound malformed out_channels=true rows.0 columns.0 rows.0=[0,0,2,2,0] columns.0=[0]
patch_bound range kernel.0=10000000000000000000 in_channels=0 rows.0.0=3 rows.0.3=-1
patch_bound range columns.0.0=5000
patch_bound tokens tokens_per_side=[2] tokens_per_side="any"
places malformed extra=1 regime regime="exact" kernel_size=[3,3,3] kernel_size=[63] count=4
places malformed heads.0.extra=1 heads.0.weights.0
places range patch_size=[65] in_channels=0 head_dimension=0
places heads regime="limit"
two_layers range first.targets=[] blocks=0 margin.0.0=-1 second.maps.0=[4,0,0,"1"]
two_layers range second.maps.0=[0,0,9,"1"] second.maps.0=[0,3,0,"1"]
two_layers malformed blocks=2 second.maps.0=[0,0,0] kernel_size=[3]
exponentials malformed places=[[0,2]] kernel_size=[3,3]
exponentials range heads=8 tokens=0
quadratic_variation malformed score="linear" score squares keys=9
quadratic_variation range sharpness="0" sharpness="4097" terms=0 terms=513 power="0" bound="0"
quadratic_variation range sharpness="3001/1001" axes=3 axes=0 squares=0 squares=9
quadratic_variation series sharpness="4096"
bias_variation range keys=4097
bias_variation malformed axes=1
powers_lagrange malformed values.master.0 values.denominators.0 values.entries=[]
"""
LONG = [
    ("commutant_line", put(["grid"], [MOST_NODES + 1]), "range"),
    ("commutant_line", put(["grid"], [MOST_NODES] * 5000), "range"),
    ("commutant_line", put(["shifts"], [[d] for d in range(-8, 9)]), "range"),
    ("commutant_line", put(["shifts", 0], [MOST_NODES + 1]), "range"),
    ("relative_heads", put(["inclusion", 0, 0], [f"1/{'9' * 3999}", f"1/{'7' * 4000}"]), "cost"),
    ("survives", put(["e_lower"], "1/" + "3" * 200), "range"),
    ("quadratic_variation", put(["power"], "1/" + "3" * 101), "range"),
    ("two_masks", many_channels, "range"),
    ("two_masks", many_offsets, "range"),
    ("two_masks", many_steps, "cost"),
    ("two_masks", distinct_primes, "cost"),
    ("two_masks", prime_values, "cost"),
    ("two_masks", put(["attention", 0, 0], str(2**1024)), "cost"),
    ("two_masks", put(["limit", "combination", 0], f"1/{2**1024 + 1}"), "cost"),
    ("mixed_sign", put(["limit", "positive", 0], str(2**1024)), "cost"),
    ("two_of_three", many_columns, "range"),
    ("two_of_three", put(["thresholds", 1], f"1/{10**40}"), "range"),
    ("two_of_three", put(["thresholds", 0], str(10**40)), "range"),
    ("narrow_heads", no_rows, "range"),
    ("narrow_heads", many_rows, "range"),
    ("A19.orders-orders", put(("sizes",), dict.fromkeys("bkmnpq", 33)), "range"),
    ("places", many_narrow_offsets, "range"),
    ("places", no_head, "range"),
    ("two_layers", many_heads, "range"),
    ("two_layers", large_image, "range"),
    ("quadratic_variation", set_score, "malformed"),
]


def change_of(text):
    """From `path=value` or, for what is left out, `path`."""
    path, _, value = text.partition("=")
    steps = [int(step) if step.isdigit() else step for step in path.split(".")]
    return put(steps, json.loads(value)) if value else drop(steps)


ROWS = [
    pytest.param(case, change_of(text), code, id=f"{case}-{text}")
    for case, code, *changes in map(str.split, REFUSED.strip().splitlines())
    for text in changes
]


@pytest.mark.parametrize(("case", "change", "code"), ROWS + LONG)
def test_a_change_is_refused_by_its_code(case, change, code):
    verdict = verdict_after(case, change)
    assert not verdict.accepted
    assert verdict.code == code, verdict


@pytest.mark.parametrize(
    ("case", "change"),
    [
        ("mixed_sign", all_at_once(corners_unseen, put(["tokens_per_side"], [3]))),
        ("box_of_patches", put(["rows", 1], [1, 1, 0, 0])),
        ("narrow_heads", put(["kernel", 5], 9)),
        ("places", put(["heads", 2, "weights", 2], "7/3")),
        ("two_masks", minor_of_other_rows),
    ],
)
def test_a_change_that_is_right_is_accepted(case, change):
    assert verdict_after(case, change).accepted


@pytest.mark.parametrize("body", [[], None, "score", {}])
def test_a_body_without_a_score_is_malformed(body):
    case = build.sealed(CASES["bias_variation"] | {"body": body})
    assert verdict_on(case).code == "malformed"


def test_shifts_by_nothing_on_a_torus_are_no_claim():
    verdict = verdict_on(build.commutant((2, 3), "torus", [[0, 0]]))
    assert verdict.code == "claim"
    assert "as many as nodes on a torus" in verdict.reason


def test_a_bound_is_not_claimed_beyond_the_channels():
    """With 4 channels in and 2 out min(K², 8) = 8 heads are needed, and 9 are not claimed."""
    kernel = [[[0, 0] for _ in range(4)] for _ in range(9)]
    for tap in range(8):
        kernel[tap][tap // 2][tap % 2] = 1
    smaller = update(
        in_channels=4,
        out_channels=2,
        kernel=[entry for tap in kernel for row in tap for entry in row],
        rows=[[0, 0, 0, 0, tap // 2, tap % 2] for tap in range(8)],
        columns=CASES["pixel_bound"]["body"]["columns"][:8],
        determinant=1,
        heads=8,
    )
    certificate = changed(CASES["pixel_bound"], smaller)
    assert verdict_on(certificate).accepted
    for heads in (7, 9):
        assert verdict_on(changed(certificate, put(["heads"], heads))).code == "heads"
