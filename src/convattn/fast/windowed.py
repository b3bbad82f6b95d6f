"""Placeholder replaced below."""
from convattn.fast.backend import BackEnd, Work


def skipped_weight(encoding, grid, windows):
    raise NotImplementedError


WINDOWED = BackEnd("windowed", lambda *a: "not yet", lambda *a: None, lambda *a: Work(0, 0, 0, 0))
