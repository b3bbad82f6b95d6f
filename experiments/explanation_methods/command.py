"""`experiments/explanations.py`: what explanations say of the suite of known answers."""

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated

import tyro

from convattn.cli.running import FAILED, SUCCESS, run_program

PROGRAM = "experiments/explanations.py"
PACKAGES = ("torch", "timm", "captum", "matplotlib")


@dataclass(frozen=True)
class Arguments:
    """Explain the models of the suite in several ways, and compare with the truth.

    First each model's logits, values, derivatives and attention in timm are compared with its truth
    file. Models whose results are in the folder are not explained again, so that an interrupted run
    goes on.
    """

    suite: Annotated[Path, tyro.conf.arg(metavar="DIR")] = Path("build/suite")
    """The suite of this version; what is missing of it is written."""
    output_dir: Annotated[Path, tyro.conf.arg(metavar="DIR")] = Path("build/explanations")
    """Results go there: results.json, table.md, explanations.svg."""
    models: tuple[str, ...] = ()
    """Names of models, such as shift; all if not given."""


def main(words: Sequence[str] | None = None) -> int:
    """Run it.

    Returns:
        0; 1 if a model in timm is not what its truth file says; 2 for wrong use, and where a
        package is missing.
    """
    return run_program(PROGRAM, Arguments, _compare, words)


def _compare(arguments: Arguments) -> int:
    from convattn.cli.output import console, print_lines, require_folder, require_outside
    from convattn.extras import require

    for folder, option in ((arguments.suite, "--suite"), (arguments.output_dir, "--output-dir")):
        require_folder(folder, option)
    results_file = arguments.output_dir / "results.json"
    require_outside(results_file, "--output-dir", arguments.suite, "--suite")
    for package in PACKAGES:
        require(package)
    import torch

    from convattn.diagnosis.picture import picture_files
    from convattn.files import write_file
    from convattn.known_answers import NETWORKS, recorded_digests, write_suite
    from explanation_methods.checks import problems
    from explanation_methods.figure import draw
    from explanation_methods.results import compact, model_result
    from explanation_methods.subjects import load_subject
    from explanation_methods.table import tables

    torch.set_num_threads(1)  # so that sums are added in the same order everywhere
    known = {network.name: f"{n:02}-{network.name}" for n, network in enumerate(NETWORKS, 1)}
    unknown = [name for name in arguments.models if name not in known]
    if unknown:
        raise ValueError(f"--models {unknown[0]}, but expected names among {', '.join(known)}")
    out = console()
    digests = write_suite(arguments.suite, NETWORKS, report=lambda line: print_lines([line]))
    recorded = recorded_digests()
    other = [file for file, digest in digests.items() if recorded.get(file) != digest]
    if other:
        raise ValueError(
            f"{len(other)} of {len(digests)} files of {arguments.suite}, such as {other[0]}, have "
            "other digests than convattn/known_answers/digests.json, but expected the suite of "
            "this version; install the packages of requirements.lock, and run it again"
        )
    results = []
    for name in arguments.models or known:
        subject = load_subject(arguments.suite, known[name])
        if wrong := problems(subject):
            print_lines([*wrong, "these files are not as their truth says; remove them"])
            return FAILED
        result, is_kept = model_result(subject, arguments.suite, arguments.output_dir)
        out.print(f"{known[name]}: as its truth says; {'kept' if is_kept else 'explained'}")
        results.append(result)
    text = tables(results)
    files = {"results.json": compact(results), "table.md": text.encode()}
    for name, content in (files | picture_files(draw(results), "explanations", ("svg",))).items():
        write_file(arguments.output_dir / name, content)
    print_lines([*text.splitlines(), f"written to {arguments.output_dir}"])
    return SUCCESS
