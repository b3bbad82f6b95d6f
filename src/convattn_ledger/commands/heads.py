"""``convattn heads``: how many heads a convolution takes, and how many models have."""

import re
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Literal

from tyro.conf import arg

from convattn.cli.output import console, print_lines, require_outputs, write_json
from convattn.cli.running import (
    FAILED,
    SUCCESS,
    Flag,
    Json,
    Sizes,
    UsageError,
    changed_options,
    one_or_all,
    option,
)
from convattn.files import write_file

if TYPE_CHECKING:
    from convattn.bounds.head_counts import HeadCounts

CERTIFIES = (
    "the heads that are necessary for some kernel in the limit by S.heads, for any head dimension, "
    "with attention that may depend on the kernel"
)
BLOCK_SIZES = ("kernel_size", "patch_size", "in_channels", "out_channels", "dilation")
NEARER = "; nearer: S.width (4), S.overlap"
MIN_WIDTH = 80  # columns of a table


@dataclass(frozen=True)
class Heads:
    """Count the attention heads that a convolution takes, for the worst kernel.

    Prints how many are necessary and how many suffice, in the limit and exactly, each with the
    claim that proves it.

    Attributes:
        kernel_size: Odd or even, up to 4096; one number is a square kernel on two axes.
        patch_size: Pixels of a patch, for all axes or for each.
        in_channels: Channels of the image.
        out_channels: Channels of the convolution.
        head_dim: The width of a head's value map; default: what a map needs.
        dilation: For all axes or for each.
        attention: Whether attention may depend on the kernel, or one pattern serves all.
        layers: 2: two layers, one on the other; the heads of each and of both.
        kv_groups: How many value maps the heads share, as in grouped-query attention; default:
            each head has its own.
        causal: Taps that end at the query, under a causal mask, on one axis.
        heads_per_block: Say how many transformer blocks of so many heads are necessary, too.
        group: The kernel is the lifting convolution of this group, of so many filters as
            --out-channels says: p4, the turns by 90 degrees, or p4m, with reflections too.
        sequence: One axis instead of two.
        models: The table of vision transformers instead, for K = 3, 5, 7 or --kernel-size.
        certificate: Write a certificate of S.heads' count, which is necessary in the limit for any
            head dimension, and check it.
    """

    kernel_size: Annotated[Sizes, arg(metavar="K [K]")] = (3,)
    patch_size: Annotated[Sizes, arg(metavar="P [P]")] = (1,)
    in_channels: int = 1
    out_channels: int = 1
    head_dim: Annotated[int | None, option("N")] = None
    dilation: Annotated[Sizes, arg(metavar="D [D]")] = (1,)
    attention: Literal["per_kernel", "shared"] = "per_kernel"
    layers: Literal[1, 2] = 1
    kv_groups: Annotated[int | None, option("G")] = None
    causal: Flag = False
    heads_per_block: Annotated[int | None, option("N")] = None
    group: Annotated[Literal["p4", "p4m"] | None, option("{p4,p4m}")] = None
    sequence: Flag = False
    models: Flag = False
    certificate: Annotated[Path | None, option("FILE")] = None
    json: Json = None

    def __call__(self) -> int:
        """Print how many heads are necessary and how many suffice, and the claims that prove it.

        Returns:
            0, or 1 if the certificate is rejected.
        """
        if self.models:
            if {*changed_options(self)} - {"--models", "--kernel-size", "--json"}:
                raise UsageError(
                    "--models takes sizes from the models: give it --kernel-size and --json alone"
                )
            return _models((3, 5, 7) if self.kernel_size == (3,) else self.kernel_size, self.json)
        sequence = self.sequence or self.causal
        if sequence and len(self.kernel_size) != 1:
            words = " ".join(map(str, self.kernel_size))
            name = "--causal" if self.causal else "--sequence"
            raise UsageError(f"{name} takes one --kernel-size, but got {words}")
        if self.certificate is not None and (self.attention == "shared" or self.group):
            raise UsageError(
                "--certificate is for attention that may depend on the kernel, which may be any; "
                "leave out --attention shared and --group"
            )
        if self.group is not None and self.heads_per_block is not None:
            raise UsageError(
                "--heads-per-block counts blocks for every kernel, but --group is one kind; leave "
                "one of them out"
            )
        require_outputs({"--certificate": self.certificate, "--json": self.json}, {})
        sizes: dict[str, Any] = {
            "kernel_size": self.kernel_size if sequence else one_or_all(self.kernel_size),
            "patch_size": one_or_all(self.patch_size),
            "in_channels": self.in_channels,
            "out_channels": self.out_channels,
            "head_dim": self.head_dim,
            "dilation": one_or_all(self.dilation),
            "attention": self.attention,
            "kv_groups": self.kv_groups,
            "causal": self.causal,
        }
        from convattn.bounds.block_counts import count_blocks
        from convattn.bounds.heads import count_heads as count

        if self.layers == 2 and self.certificate is not None:
            raise UsageError("--certificate is for one layer; leave it out, or --layers 2")
        try:
            counts = count(**sizes, layers=self.layers, group=self.group)
            same = {name: sizes[name] for name in BLOCK_SIZES}
            heads = self.heads_per_block
            blocks = None if heads is None else count_blocks(heads=heads, **same)
        except ValueError as error:
            raise _option_named(error) from error
        document: dict[str, Any] = {"schema": 1, "sizes": sizes, **counts.as_dict()}
        if self.layers == 2:
            document["layers"] = 2
        if self.group is not None:
            document["group"] = self.group
        left_out = {"--in-channels", "--out-channels", "--head-dim"} - {*changed_options(self)}
        if left_out:
            width = "of any width" if self.head_dim is None else f"of width {self.head_dim}"
            console().print(
                f"Channels {self.in_channels} -> {self.out_channels}, heads {width}; for others: "
                f"{', '.join(sorted(left_out))}.",
                markup=False,
            )
        _print_counts(counts)
        if blocks is not None:
            document["blocks"] = blocks.as_dict()
            console().print(
                f"Transformer blocks of {heads} heads, with positions in the scores "
                f"alone: at least {blocks} ({blocks.claim}, {blocks.basis}: {blocks.reason}).",
                markup=False,
            )
        code = SUCCESS
        if self.certificate is not None:
            document["certificate"] = _write_certificate(self.certificate, sizes)
            code = SUCCESS if document["certificate"]["accepted"] else FAILED
        write_json(self.json, document)
        return code


def _models(kernel_sizes: Sequence[int], json: Path | None) -> int:
    """Print the heads of vision transformers against those that a convolution of the image takes.

    Args:
        kernel_sizes: Each K.
        json: Where to write the rows.
    """
    require_outputs({"--json": json}, {})
    from rich.table import Table

    from convattn_ledger.bounds.vision_transformers import heads_table

    try:
        rows = heads_table(tuple(kernel_sizes))
    except ValueError as error:
        raise _option_named(error) from error
    table = Table(box=None, pad_edge=False)
    columns = ("layer", "P", "heads", "d_H", "patch", "K", "limit", "bounded", "exact", "enough")
    for name in columns:
        table.add_column(name, justify="left" if name in ("layer", "enough") else "right")
    layers: dict[tuple[str, ...], list[str]] = {}
    for row in rows:
        cells: tuple[str, ...] = (
            str(row.size.patch_size),
            str(row.size.heads),
            str(row.size.head_dim),
            "yes" if row.size.holds_patch else "no",
            str(row.kernel_size),
            _interval(row.limit.necessary, row.limit.sufficient),
            _interval(row.bounded, row.bounded_sufficient),
            _interval(row.exact.necessary, row.exact.sufficient),
            row.enough,
        )
        layers.setdefault(cells, []).append(row.size.model)
    for cells, names in layers.items():
        table.add_row(", ".join(names), *cells)
    plain = _console()
    plain.print(table)
    sources = dict.fromkeys(row.size.source for row in rows)
    plain.print(
        "Necessary for the worst K x K convolution of the RGB image, to what suffices for every "
        "one, by heads without content: in the limit, in a limit with value maps that stay "
        "bounded, and exactly. 'patch': a token is as wide as its patch. 'enough': 'no', without "
        "content the layer has not the heads or the width for some kernel; 'growing', in a limit "
        "whose value maps grow without bound; 'bounded: no', not if they stay bounded; else these "
        "numbers do not say, but by S.width (4) ViT-B/16 and DeiT-B have not enough for K = 3. "
        "Sizes: " + "; ".join(sources) + ".",
        markup=False,
    )
    write_json(json, {"schema": 1, "rows": [row.as_dict() for row in rows]})
    return SUCCESS


def _console() -> Any:
    """A console so wide that no column of a table is left out; a terminal breaks longer lines."""
    plain = console()
    plain.width = max(plain.width, MIN_WIDTH)
    return plain


def _interval(necessary: int, sufficient: int) -> str:
    """From what is necessary to what suffices; with divergent maps less may suffice."""
    return f"{necessary}" if necessary >= sufficient else f"{necessary} to {sufficient}"


def _option_named(error: ValueError) -> UsageError:
    """A refusal of the library with the option's name and value as they are typed."""
    words = re.sub(r"^heads=", "heads_per_block=", str(error))
    return UsageError(re.sub(r"^(\w+)=(\(.*?\)|\S+?)(?=,? )", _typed, words))


def _typed(match: re.Match[str]) -> str:
    values = re.findall(r"[^\s(),]+", match[2])
    return f"--{match[1].replace('_', '-')} {' '.join(values)}"


def _print_counts(counts: "HeadCounts") -> None:
    """The table, and at most four lines."""
    from rich.table import Table

    from convattn.bounds.heads import OVERLAP

    plain = _console()
    table = Table(box=None, pad_edge=False)
    for name in ("", "heads", "claim", "basis", "why"):
        table.add_column(
            name, justify="right" if name == "heads" else "left", no_wrap=name != "why"
        )
    for words, count in counts.rows():
        table.add_row(words, str(count), count.claim, count.basis, count.reason)
    plain.print(table)
    regimes = {"limit": counts.limit, "exact": counts.exact}
    each = [f"{name}: {one.each[0]} and {one.each[1]}" for name, one in regimes.items() if one.each]
    if each:
        plain.print(f"Sufficient in layer 1 and in layer 2: {'; '.join(each)}.")
    open_ = [
        f"{one.sufficient} ({name}{NEARER * one.difference.endswith(OVERLAP)})"
        for name, one in regimes.items()
        if one.necessary < one.sufficient
    ]
    if open_:
        plain.print(f"Open: whether fewer than {' or '.join(open_)} always suffice.")
    if counts.limit.sufficient.claim == "S.width":
        plain.print(
            "Maps like 1/ε cost a limit of S.kernel half of its digits (S.price); here it is open."
        )
    plain.print(
        "limit: scores may tend to infinity; exact: finite scores, as in use. "
        "All conditions: --json FILE."
    )
    plain.print(
        "proved: for all sizes, by the claim's proof; the ledger says what of it is in Coq."
    )


def _write_certificate(path: Path, sizes: dict[str, Any]) -> dict[str, Any]:
    """Make the certificate, have it checked, and write it if it is accepted; for the JSON."""
    text, heads, verdict = _certificate(**sizes)
    word = "ACCEPT" if verdict.accepted else f"REJECT  {verdict.code}"
    print_lines([f"{word}  {path}  {verdict.reason}"])
    if verdict.accepted:
        write_file(path, text.encode("ascii"))
        console().print(f"It certifies {heads}: {CERTIFIES}.", markup=False)
        if sizes["head_dim"] is not None:
            console().print(
                f"The numbers above for heads of dimension {sizes['head_dim']} are S.headdim's "
                "and S.width's; this file does not certify them.",
                markup=False,
            )
    return {
        "file": str(path),
        "certifies": CERTIFIES,
        "heads": heads,
        "accepted": verdict.accepted,
        "code": verdict.code,
        "reason": verdict.reason,
    }


def _certificate(
    kernel_size: int | Sizes,
    patch_size: int | Sizes,
    dilation: int | Sizes,
    in_channels: int,
    out_channels: int,
    **others: Any,
) -> tuple[str, int, Any]:
    """The certificate of S.heads for these sizes, as text, its heads, and the checker's verdict."""
    from convattn_check import check
    from convattn_ledger.certificates.canonical import canonical, certificate
    from convattn_ledger.certificates.lower_bound import generic_bound_body

    kernel = kernel_size if isinstance(kernel_size, tuple) else (kernel_size, kernel_size)
    patch = patch_size if isinstance(patch_size, tuple) else (patch_size,)
    if len({*kernel}) > 1 or len({*patch}) > 1 or dilation not in (1, (1, 1)):
        raise UsageError(
            "--certificate is for kernels and patches alike on all axes, without dilation; leave "
            "it out, or change --kernel-size, --patch-size or --dilation"
        )
    statement = (
        f"Some kernel of size {kernel[0]} on {len(kernel)} axes takes so many content-free heads "
        f"of any dimension on patches of size {patch[0]}, in the limit too."
    )
    try:
        body = generic_bound_body(kernel[0], patch[0], in_channels, out_channels, len(kernel))
    except ValueError as error:
        raise UsageError(f"--certificate: {error}") from error
    text = canonical(certificate("S.heads", "lower_bound", statement, body)) + "\n"
    return text, body["heads"], check(text)
