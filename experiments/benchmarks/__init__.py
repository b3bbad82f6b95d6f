"""The parts of bench.py: layers, measurement, tables, targets and plots."""
