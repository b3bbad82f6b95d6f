(** B19.sa2d's even heads, S.absolute's forms and the borders of a bare grid, in a form that computes. *)
