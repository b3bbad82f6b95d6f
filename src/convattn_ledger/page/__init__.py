"""The report: the ledger as one HTML page."""
