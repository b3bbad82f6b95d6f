"""The ledger of claims: what a proof file writes, and how proof files are found, run and shown.

A proof file needs nothing but the names below; see ``docs/ledger-guide.md``.
"""

from convattn.ledger.claim import Claim as Claim
from convattn.ledger.claim import Evidence as Evidence
from convattn.ledger.claim import Kind as Kind
from convattn.ledger.claim import Level as Level
from convattn.ledger.claim import Verdict as Verdict
from convattn.ledger.run import EvidenceFailed as EvidenceFailed
from convattn.ledger.run import NotRunHere as NotRunHere
from convattn.ledger.run import Run as Run
from convattn.ledger.run import require as require
