"""``convattn audit``: measure this device's arithmetic."""

from dataclasses import dataclass

from convattn.cli.output import console, require_outputs, write_json
from convattn.cli.running import SUCCESS, Json


@dataclass(frozen=True)
class Audit:
    """Show what this device's arithmetic really does."""

    json: Json = None

    def __call__(self) -> int:
        """Run the audit with 64-bit types enabled, print it and write it as JSON.

        Returns:
            0: the audit reports, it does not judge.
        """
        require_outputs({"--json": self.json}, {})
        import jax

        from convattn_ledger.audit.report import run_audit

        jax.config.update("jax_enable_x64", True)
        report = run_audit()
        report.render(console())
        write_json(self.json, report.as_dict())
        return SUCCESS
