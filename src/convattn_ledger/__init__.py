"""The ledger of claims: what a proof file writes, and how proof files are found, run and shown.

A proof file needs nothing but the names below; see ``docs/architecture.md``.
"""

from convattn_ledger.claim import Claim as Claim
from convattn_ledger.claim import Evidence as Evidence
from convattn_ledger.claim import Kind as Kind
from convattn_ledger.claim import Level as Level
from convattn_ledger.claim import Verdict as Verdict
from convattn_ledger.run import EvidenceFailed as EvidenceFailed
from convattn_ledger.run import NotRunHere as NotRunHere
from convattn_ledger.run import Run as Run
from convattn_ledger.run import require as require
