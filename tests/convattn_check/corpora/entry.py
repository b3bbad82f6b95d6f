"""The files of a corpus: name, without its suffix, and content; manifests.py has the verdicts."""

from collections.abc import Callable, Mapping
from typing import Any

import certificate_builder as build
from certificate_cases import CASES, changed

Certificate = dict[str, Any]
Change = Callable[[dict[str, Any]], None]


def named(*tables: Mapping[Any, Certificate]) -> dict[str, bytes]:
    """From {slug, or its parts: certificate}; the name begins with the kind."""
    return {
        f"{certificate['kind']}-{slug if isinstance(slug, str) else '-'.join(slug)}": (
            build.written(certificate).encode()
        )
        for table in tables
        for slug, certificate in table.items()
    }


def altered(changes: Mapping[str, Mapping[str, Change]]) -> dict[str, bytes]:
    """From {case: {slug: change of its body}}; digests are new, so that the mathematics decides."""
    return named(
        *(
            {slug: changed(CASES[case], change) for slug, change in rows.items()}
            for case, rows in changes.items()
        )
    )
