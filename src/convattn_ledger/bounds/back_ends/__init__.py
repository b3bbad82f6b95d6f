"""How far any back end can be from the exact result, values and gradients, before it is run."""

from convattn_ledger.bounds.back_ends.bounds import gradient_bounds as gradient_bounds
from convattn_ledger.bounds.back_ends.bounds import value_bound as value_bound
