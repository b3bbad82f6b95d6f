"""What is looked at in a browser: the report of the ledger, and the explorer of trained models."""
