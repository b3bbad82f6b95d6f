"""``convattn heads``: how many heads a convolution takes, and how many models have."""

import re
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from convattn.cli.consoles import console
from convattn.cli.output_file import require_writable, write_file, write_json
from convattn.cli.usage import UsageError

CERTIFIES = (
    "the heads that are necessary for some kernel in the limit by S.heads, for any head dimension, "
    "with attention that may depend on the kernel"
)
ROWS = {
    "necessary": "necessary",
    "bounded": "necessary with bounded value maps",
    "sufficient": "sufficient",
}


@dataclass(frozen=True)
class Sizes:
    """The arguments of `convattn.heads`."""

    kernel_size: int | tuple[int, ...] = 3
    patch_size: int | tuple[int, ...] = 1
    in_channels: int = 1
    out_channels: int = 1
    head_dim: int | None = None
    dilation: int | tuple[int, ...] = 1
    attention: str = "per_kernel"


def heads(sizes: Sizes, certificate: Path | None = None, json: Path | None = None) -> int:
    """Print how many heads are necessary and how many suffice, and the claims that prove it.

    Args:
        sizes: Of the convolution, the patches and the heads.
        certificate: Where to write a certificate that so many heads are necessary in the limit,
            for whatever head dimension, by the count of S.heads; it is checked first.
        json: Where to write the figures.

    Returns:
        0, or 1 if the certificate is rejected.

    Raises:
        UsageError: If a size is refused, the certificate would be too large, or a file cannot be
            written.
    """
    if certificate is not None and json is not None and certificate.resolve() == json.resolve():
        raise UsageError(
            f"--certificate and --json are both {json}, but one would overwrite the other; name "
            "another file"
        )
    if certificate is not None and sizes.attention == "shared":
        raise UsageError(
            "--certificate is for attention that may depend on the kernel; leave out --attention "
            "shared"
        )
    for path, option in ((certificate, "--certificate"), (json, "--json")):
        if path is not None:
            require_writable(path, option)
    from convattn.bounds.heads import heads as count

    try:
        counts = count(**asdict(sizes))
    except ValueError as error:
        raise _option_named(error) from error
    document: dict[str, Any] = {"schema": 1, "sizes": asdict(sizes), **counts.as_dict()}
    plain = console()
    _print_counts(plain, document)
    code = 0
    if certificate is not None:
        text, heads_certified, verdict = _certificate(sizes)
        document["certificate"] = {
            "file": str(certificate),
            "certifies": CERTIFIES,
            "heads": heads_certified,
            "accepted": verdict.accepted,
            "code": verdict.code,
            "reason": verdict.reason,
        }
        word = "ACCEPT" if verdict.accepted else f"REJECT  {verdict.code}"
        plain.print(f"{word}  {certificate}  {verdict.reason}", markup=False, soft_wrap=True)
        code = 0 if verdict.accepted else 1
        if verdict.accepted:
            write_file(certificate, text.encode("ascii"))
            plain.print(f"It certifies {heads_certified}: {CERTIFIES}.", markup=False)
            if sizes.head_dim is not None:
                plain.print(
                    "The numbers above for heads of dimension "
                    f"{sizes.head_dim} are S.headdim's; this file does not certify them.",
                    markup=False,
                )
    if json is not None:
        write_json(json, document)
    return code


def models(kernel_sizes: Sequence[int] = (3, 5, 7), json: Path | None = None) -> int:
    """Print the heads of vision transformers against those that a convolution of the image takes.

    Args:
        kernel_sizes: Each K.
        json: Where to write the rows.

    Returns:
        0.

    Raises:
        UsageError: If a kernel size is refused, or the file cannot be written.
    """
    if json is not None:
        require_writable(json, "--json")
    from rich.table import Table

    from convattn.bounds.vision_transformers import heads_table

    try:
        rows = heads_table(tuple(kernel_sizes))
    except ValueError as error:
        raise _option_named(error) from error
    table = Table(box=None, pad_edge=False)
    columns = ("layer", "P", "heads", "d_H", "patch", "K", "limit", "bounded", "exact", "enough")
    for name in columns:
        table.add_column(name, justify="left" if name in ("layer", "enough") else "right")
    for row in rows:
        table.add_row(
            row.size.model,
            str(row.size.patch_size),
            str(row.size.heads),
            str(row.size.head_dim),
            "yes" if row.size.holds_patch else "no",
            str(row.kernel_size),
            _interval(row.limit.necessary, row.limit.sufficient),
            _interval(row.bounded, row.limit.sufficient),
            _interval(row.exact.necessary, row.exact.sufficient),
            row.enough,
        )
    plain = console()
    plain.print(table)
    sources = dict.fromkeys(row.size.source for row in rows)
    plain.print(
        "Necessary for the worst K x K convolution of the RGB image, to what suffices for every "
        "one: in the limit, in a limit with value maps that stay bounded, and exactly. 'patch': "
        "a token is as wide as its patch. 'enough': 'no', for some kernel the layer has not the "
        "heads or the width; 'bounded: no', not if value maps stay bounded, else open. Sizes: "
        + "; ".join(sources)
        + ".",
        markup=False,
    )
    if json is not None:
        write_json(json, {"schema": 1, "rows": [row.as_dict() for row in rows]})
    return 0


def _interval(necessary: int, sufficient: int) -> str:
    """From what is necessary to what suffices; with divergent maps less may suffice."""
    return f"{necessary}" if necessary >= sufficient else f"{necessary} to {sufficient}"


def _option_named(error: ValueError) -> UsageError:
    """A refusal of the library with the option's name and value as they are typed."""
    return UsageError(re.sub(r"^(\w+)=(\(.*?\)|\S+?)(?=,? )", _typed, str(error)))


def _typed(match: re.Match[str]) -> str:
    values = re.findall(r"[^\s(),]+", match[2])
    return f"--{match[1].replace('_', '-')} {' '.join(values)}"


def _print_counts(plain: Any, document: dict[str, Any]) -> None:
    from rich.table import Table

    table = Table(box=None, pad_edge=False)
    for name in ("", "heads", "claim", "basis", "why"):
        table.add_column(
            name, justify="right" if name == "heads" else "left", no_wrap=name != "why"
        )
    for regime in ("limit", "exact"):
        for name, words in ROWS.items():
            count = document[regime][name]
            if count is None:
                continue
            table.add_row(
                f"{regime}: {words}",
                str(count["count"]),
                count["claim"],
                count["basis"],
                count["reason"],
            )
    plain.print(table)
    for regime in ("limit", "exact"):
        plain.print(f"{regime}: {document['regime'][regime]}", markup=False)
        if document[regime]["difference"]:
            plain.print(f"  {document[regime]['difference']}", markup=False)


def _certificate(sizes: Sizes) -> tuple[str, int, Any]:
    """The certificate of S.heads for these sizes, as text, its heads, and the checker's verdict."""
    from convattn.ledger.certificates.canonical import canonical
    from convattn.ledger.certificates.lower_bound import generic_bound_certificate
    from convattn_check import check

    kernel = sizes.kernel_size
    kernel = kernel if isinstance(kernel, tuple) else (kernel, kernel)
    patch = sizes.patch_size if isinstance(sizes.patch_size, tuple) else (sizes.patch_size,)
    dilation = sizes.dilation if isinstance(sizes.dilation, tuple) else (sizes.dilation,)
    if len({*kernel}) > 1 or len({*patch}) > 1 or {*dilation} != {1}:
        raise UsageError(
            "--certificate is for kernels and patches alike on all axes, without dilation; leave "
            "it out, or change --kernel-size, --patch-size or --dilation"
        )
    statement = (
        f"Some kernel of size {kernel[0]} on {len(kernel)} axes takes so many content-free heads "
        f"of any dimension on patches of size {patch[0]}, in the limit too."
    )
    try:
        certificate = generic_bound_certificate(
            statement, kernel[0], patch[0], sizes.in_channels, sizes.out_channels, axes=len(kernel)
        )
    except ValueError as error:
        raise UsageError(f"--certificate: {error}") from error
    text = canonical(certificate) + "\n"
    return text, certificate["body"]["heads"], check(text)
