(** B19.sac: one set of filters serves every grid.

    Fix a leak 0 < ε < 1 in an ordered field. In the setting of sac let the first head have the bias
    b_00 = log e with e = 1 + N (1/ε - 1) > 1, N being the number of cells, and the filters W / (1 - ε), the
    second none and -ε / (1 - ε) W: N does not occur in them. Then on every grid of cells, for every image, the
    layer is the convolution with W. *)

From mathcomp Require Import all_ssreflect all_algebra.
From mathcomp Require Import ring.
From Convattn.foundation Require Import attention image heads filters leaky.
From Convattn.barkan2019 Require Import sac.

Set Implicit Arguments.
Unset Strict Implicit.
Unset Printing Implicit Defensive.

Import Order.TTheory GRing.Theory Num.Theory.
Local Open Scope ring_scope.

Theorem sac_sizes (F : numFieldType) (In : finType) (Out : Type) (l : layout) (leak : F)
    (W : nat -> nat -> In -> Out -> F) :
  0 < leak < 1 ->
  exists filters : option unit -> nat -> nat -> In -> Out -> F,
  forall (Query : Type) (height width rows columns : nat) (X : image_type F In)
      (cell : Query -> 'I_rows * 'I_columns) (q : Query) (o : Out),
    let e := leaky_weight leak (rows * columns) in
    1 < e /\
    self_attentive_layer height width l (finite_attention (fun q (_ : unit) => Some (cell q)) e) filters X q o =
      filtered height width l W X (cell q).1 (cell q).2 o.
Proof.
move=> range.
exists (fun h i j c o => (if h is Some _ then (1 - leak)^-1 else - (leak / (1 - leak))) * W i j c o).
move=> Query height width rows columns X cell q o e.
have keys : (rows * columns)%:R != 0 :> F.
  by rewrite pnatr_eq0 muln_eq0; case: (cell q) => -[i lti] [j ltj] /=; case: rows columns {cell e} lti ltj => [|r] [|c].
split; first exact: leaky_weight_gt1.
have [ne1 nz] := leaky_nonzero range keys.
rewrite -(sac height width l W X cell q o ne1 keys nz).
apply: eq_bigr => h _; apply: eq_bigr => k _; congr (_ * _).
apply: eq_bigr => i _; apply: eq_bigr => j _; apply: eq_bigr => c _; congr (_ * _).
by rewrite /self_attentive_filters leaky_factor // leaky_uniform_factor.
Qed.
