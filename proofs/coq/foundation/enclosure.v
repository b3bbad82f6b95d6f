(** The tactic [interval] of CoqInterval, computing with the integers of Coq's library, so that no
    axiom on machine integers is needed. *)

From Interval Require Export Tactic.
From Interval Require Import Specific_stdz Specific_ops.

Module LibraryFloat := SpecificFloat StdZRadix2.
Module LibraryInterval := IntervalTactic LibraryFloat.
Export LibraryInterval.
