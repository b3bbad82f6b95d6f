"""Every planted slip."""

from mutants import (
    attention_mutants,
    bound_mutants,
    counterexample_mutants,
    enclosure_mutants,
    equality_mutants,
    file_mutants,
    finite_mutants,
    geometry_mutants,
    head_mutants,
    heads_mutants,
    identity_mutants,
    kernel_mutants,
    ring_mutants,
    structure_mutants,
    token_mutants,
    value_mutants,
)

MUTANTS = (
    *equality_mutants.MUTANTS,
    *attention_mutants.MUTANTS,
    *value_mutants.MUTANTS,
    *bound_mutants.MUTANTS,
    *counterexample_mutants.MUTANTS,
    *file_mutants.MUTANTS,
    *geometry_mutants.MUTANTS,
    *head_mutants.MUTANTS,
    *heads_mutants.MUTANTS,
    *identity_mutants.MUTANTS,
    *kernel_mutants.MUTANTS,
    *finite_mutants.MUTANTS,
    *ring_mutants.MUTANTS,
    *structure_mutants.MUTANTS,
    *token_mutants.MUTANTS,
    *enclosure_mutants.MUTANTS,
)
