"""Evidence of level CERTIFIED: committed certificates, judged by the independent checker."""

from pathlib import Path

from convattn.ledger.claim import Evidence, EvidenceFailed, Level, Run


def certified(claim: str, pattern: str = "*", *, name: str | None = None) -> Evidence:
    """The certificates of a claim whose file names match, each accepted by `convattn_check`.

    **Arguments:**

    - `claim`: the id; the files are `CLAIM-PATTERN.json` and must name this claim inside.
    - `pattern`: a glob for the rest of the file name.

    The check fails if no certificate matches, or one is rejected, or one belongs to another claim.
    """

    def check(run: Run) -> str:
        from convattn_check import check as judge

        paths = sorted(Path(run.certificates).glob(f"{claim}-{pattern}.json"))
        if not paths:
            raise EvidenceFailed(
                f"no certificate matches {claim}-{pattern}.json in {run.certificates}; write them "
                "with python -m convattn.certificates"
            )
        for path in paths:
            verdict = judge(path.read_bytes())
            if not verdict.accepted:
                raise EvidenceFailed(f"{path.name} rejected ({verdict.code}): {verdict.reason}")
            if verdict.claim != claim:
                raise EvidenceFailed(f"{path.name} is a certificate of {verdict.claim}")
        return f"{len(paths)} accepted: {', '.join(path.stem for path in paths)}"

    return Evidence(
        name or ("certificates" if pattern == "*" else f"certificates {pattern}"),
        Level.CERTIFIED,
        check,
        assumes="Python's integers and fractions",
    )


def print_counterexample(run: Run, file_name: str) -> str:
    """The statement and the numbers of one certificate, for a reader."""
    import json

    certificate = json.loads((Path(run.certificates) / file_name).read_text("ascii"))
    body = certificate["body"]
    lines = [certificate["statement"]]
    lines += [f"  {name}: {body[name]}" for name in sorted(body)]
    return "\n".join(lines)
