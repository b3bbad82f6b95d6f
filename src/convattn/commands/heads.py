"""``convattn heads``: how many heads a convolution takes, and how many models have."""

from collections.abc import Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from convattn.commands.consoles import console
from convattn.commands.output_file import require_writable, write_file, write_json
from convattn.commands.usage import UsageError


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
            for whatever head dimension; it is checked first.
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
    for path, option in ((certificate, "--certificate"), (json, "--json")):
        if path is not None:
            require_writable(path, option)
    from convattn.bounds.heads import heads as count

    try:
        counts = count(**asdict(sizes))
    except ValueError as error:
        raise UsageError(str(error)) from error
    document: dict[str, Any] = {"schema": 1, "sizes": asdict(sizes), **counts.as_dict()}
    plain = console()
    _print_counts(plain, document)
    code = 0
    if certificate is not None:
        text, verdict = _certificate(sizes)
        document["certificate"] = {
            "file": str(certificate),
            "accepted": verdict.accepted,
            "code": verdict.code,
            "reason": verdict.reason,
        }
        word = "ACCEPT" if verdict.accepted else f"REJECT  {verdict.code}"
        plain.print(f"{word}  {certificate}  {verdict.reason}", markup=False, soft_wrap=True)
        code = 0 if verdict.accepted else 1
        if verdict.accepted:
            write_file(certificate, text.encode("ascii"))
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
        raise UsageError(str(error)) from error
    table = Table(box=None, pad_edge=False)
    for name in ("layer", "P", "heads", "d_H", "holds patch", "K", "limit", "exact", "enough"):
        table.add_column(name, justify="left" if name in ("layer", "enough") else "right")
    for row in rows:
        table.add_row(
            row.size.model,
            str(row.size.patch_size),
            str(row.size.heads),
            str(row.size.head_dim),
            "yes" if row.size.holds_patch else "no",
            str(row.kernel_size),
            _interval(row.limit),
            _interval(row.exact),
            row.enough,
        )
    plain = console()
    plain.print(table)
    sources = dict.fromkeys(row.size.source for row in rows)
    plain.print(
        "Necessary for the worst K x K convolution of the RGB image, to what suffices for every "
        "one; 'holds patch': a token is as wide as its patch. Sizes: " + "; ".join(sources) + ".",
        markup=False,
    )
    if json is not None:
        write_json(json, {"schema": 1, "rows": [row.as_dict() for row in rows]})
    return 0


def _interval(counts: Any) -> str:
    if counts.necessary == counts.sufficient:
        return str(counts.necessary)
    return f"{counts.necessary} to {counts.sufficient}"


def _print_counts(plain: Any, document: dict[str, Any]) -> None:
    from rich.table import Table

    table = Table(box=None, pad_edge=False)
    for name in ("", "heads", "claim", "basis", "why"):
        table.add_column(name, justify="right" if name == "heads" else "left")
    for regime in ("limit", "exact"):
        for name in ("necessary", "sufficient"):
            count = document[regime][name]
            table.add_row(
                f"{regime}: {name}",
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


def _certificate(sizes: Sizes) -> tuple[str, Any]:
    """The certificate of S.heads for these sizes, as text, and the checker's verdict on it."""
    from convattn.certificates.canonical import canonical
    from convattn.certificates.lower_bound import generic_bound_certificate
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
        f"on patches of size {patch[0]}, in the limit too."
    )
    try:
        certificate = generic_bound_certificate(
            statement, kernel[0], patch[0], sizes.in_channels, sizes.out_channels, axes=len(kernel)
        )
    except ValueError as error:
        raise UsageError(f"--certificate: {error}") from error
    text = canonical(certificate) + "\n"
    return text, check(text)
