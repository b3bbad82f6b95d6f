"""Placeholder replaced below."""

from convattn.fast.backend import BackEnd, Work

CHUNKED = BackEnd("chunked", lambda *a: "not yet", lambda *a: None, lambda *a: Work(0, 0, 0, 0))
