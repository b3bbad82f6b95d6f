"""What a verification left out, and why: the selection, the evidence, the tools, the device."""

import re
import shutil
from collections import defaultdict
from collections.abc import Iterator, Mapping
from html import escape
from typing import Any

from convattn_ledger.claim import Level
from convattn_ledger.page.mathematics import anchor
from convattn_ledger.report import level_counts
from convattn_ledger.runner import Outcome

FEW = 3  # so many claims are named at once; more, on demand


def not_run(outcome: Outcome, environment: Mapping[str, Any]) -> str:
    """The rows of a table: what was not run, and why."""
    rows = [*_not_selected(outcome, environment), *_not_here(outcome), *_no_part(environment)]
    return "".join(f"<tr><th scope=row>{what}</th><td>{_code(why)}</td></tr>" for what, why in rows)


def _code(text: str) -> str:
    return re.sub("`([^`]+)`", r"<code>\1</code>", escape(text))


def _not_selected(outcome: Outcome, environment: Mapping[str, Any]) -> Iterator[tuple[str, str]]:
    """The claims and the levels that were not asked for."""
    asked = environment["options"]
    claims = " ".join(f"--claim {name}" for name in asked.get("claims", []))
    flags = [f"--level {name}" for name in asked.get("levels", [])]
    flags += ["--quick"] if environment["quick"] else []
    evidence = " ".join(flags)
    if claims:
        yield "Other claims", f"left out by `{claims}`"
    if asked.get("left_out"):
        yield f"{asked['left_out']} claims", f"they have no evidence that `{evidence}` selects"
    levels = level_counts(
        item.level
        for result in outcome.claims
        if result.selected.proof.claim is not None
        for item in set(result.selected.proof.claim.evidence) - set(result.selected.evidence)
    )
    if levels:
        yield f"Checks: {levels}", f"left out by `{evidence}`"


def _not_here(outcome: Outcome) -> Iterator[tuple[str, str]]:
    """What was selected and could not run, by level and reason."""
    reasons: dict[tuple[Level, str], dict[str, list[str]]] = defaultdict(lambda: defaultdict(list))
    for result in outcome.claims:
        for item in result.evidence:
            if item.passed is None:
                reason = re.split("[;.] ", item.detail)[0]
                reasons[item.evidence.level, reason][item.detail].append(result.id)
    for (level, reason), details in sorted(reasons.items(), key=lambda pair: -pair[0][0]):
        claims = dict.fromkeys(claim for names in details.values() for claim in names)
        links = ", ".join(f'<a href="#{anchor(claim)}">{claim}</a>' for claim in claims)
        what = f"{level.name} of {links}"
        if len(claims) > FEW:
            what = (
                f"<details><summary>{level.name} of {len(claims)} claims</summary>{links}</details>"
            )
        yield what, next(iter(details)) if len(details) == 1 else reason


def _no_part(environment: Mapping[str, Any]) -> Iterator[tuple[str, str]]:
    """The tools and devices that this run had not."""
    missing = [name for name in ("coqc", "ocamlfind") if shutil.which(name) is None]
    if "coqc" in missing:
        yield (
            "Coq",
            "`coqc` is not installed here: PROVED is what the last `convattn prove` has found",
        )
    lacks = f"; not installed here: `{' '.join(missing)}`" if missing else ""
    yield (
        "The second checker",
        f"no part of `convattn verify`: `make second-checker` builds and runs it{lacks}",
    )
    if environment.get("backend") not in ("gpu", "tpu"):
        yield (
            "Checks on a GPU or TPU",
            "JAX has no such device here: `make accelerator` runs them where it has one",
        )
