"""Placeholder replaced below."""

from convattn.fast.backend import BackEnd, Work

DOT_PRODUCT = BackEnd("dot_product", lambda *a: "not yet", lambda *a: None, lambda *a: Work(0, 0, 0, 0))
