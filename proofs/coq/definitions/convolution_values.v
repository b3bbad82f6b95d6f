(** What [convolution] means, on concrete numbers: a 3 × 3 kernel on an image of 2 × 3 pixels and two
    channels, at the corner (0, 2). Two rows and a column of taps read the zeros around the image. A
    kernel that is turned, transposed or read in another order gives another number. *)

From mathcomp Require Import all_ssreflect all_algebra.
From Convattn.foundation Require Import image.

Set Implicit Arguments.
Unset Strict Implicit.
Unset Printing Implicit Defensive.

Import GRing.Theory.
Local Open Scope ring_scope.

Theorem convolution_values (F : fieldType) :
  convolution 2 3 1 1 (fun i j (c : 'I_2) (_ : unit) => (3 * i + j + 1 + 9 * c)%:R)
    (fun y x (c : 'I_2) => (10 * y + x + 1 + 100 * c)%:R : F) 0 2 tt = 6692%:R.
Proof.
rewrite /convolution /zero_framed !big_ord_recl !big_ord0 /= ?mul0r ?addr0 ?add0r -!natrM -!natrD.
by congr (_%:R).
Qed.
