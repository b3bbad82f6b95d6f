"""What the checker says of a certificate that a maker has just written."""

from convattn_check import check
from convattn_ledger.certificates.canonical import canonical
from convattn_ledger.certificates.catalogue import make_certificate


def make(claim, body, *arguments, **options):
    return make_certificate(claim, "A statement.", body, *arguments, **options)


def verdict(certificate, **options):
    return check(canonical(certificate) + "\n", **options)


def accepted(certificate, **options):
    return verdict(certificate, **options).accepted
