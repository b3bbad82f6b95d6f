"""What this device's arithmetic does: measured, beside what IEEE 754 predicts."""
