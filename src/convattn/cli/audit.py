"""``convattn audit``: what this device's arithmetic really does."""

from pathlib import Path

from convattn.cli.consoles import console
from convattn.cli.output_file import require_writable, write_json


def audit(json: Path | None = None) -> int:
    """Run the audit with 64-bit types enabled, print it and write it as JSON.

    Args:
        json: Where to write the figures.

    Returns:
        0: the audit reports, it does not judge.

    Raises:
        UsageError: If the JSON file could not be written.
    """
    if json is not None:
        require_writable(json, "--json")
    import jax

    from convattn.ledger.audit import run_audit

    jax.config.update("jax_enable_x64", True)
    report = run_audit()
    report.render(console())
    if json is not None:
        write_json(json, report.as_dict())
    return 0
