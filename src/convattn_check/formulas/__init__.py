"""The identities, by claim and name: what the certificates of the kind `identity` must say."""

from convattn_check.formulas.andreoli2019 import ANDREOLI
from convattn_check.formulas.barkan2019 import BARKAN
from convattn_check.formulas.identity_type import Identity as Identity
from convattn_check.formulas.sharpened import SHARPENED

FORMULAS: dict[tuple[str, str], Identity] = {**ANDREOLI, **BARKAN, **SHARPENED}
