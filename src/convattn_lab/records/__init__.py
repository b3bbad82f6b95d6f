"""What a run must be for a row of the ledger to rest on it, and the records of such runs."""
