(** A19.graph: products of the relations' matrices count the walks of a sort.

    A sort is a sequence of relations r_1, …, r_k between the nodes of a graph; a walk of that sort
    from m to n is a sequence of nodes m = l_0, l_1, …, l_k = n such that r_i joins l_(i-1) and l_i. The
    entry (m, n) of the product of the relations' 0-1 matrices, in order, is the number of these
    walks. With all r_i the adjacency e it is the entry of the power e^k, the number of walks of length
    k, of e itself and not of its random walk. Over every field (where the number is that number
    times 1), for all finite graphs, directed or not, and all lengths. *)

From mathcomp Require Import all_ssreflect all_algebra.

Set Implicit Arguments.
Unset Strict Implicit.
Unset Printing Implicit Defensive.

Import GRing.Theory.
Local Open Scope ring_scope.

Section Walks.

Variables (F : fieldType) (Node : finType).

Definition relation_matrix (r : rel Node) : 'M[F]_#|Node| :=
  \matrix_(i, j) (r (enum_val i) (enum_val j))%:R.

(** The product of the matrices, in the order of the sort. *)
Definition sort_matrix (sort : seq (rel Node)) : 'M[F]_#|Node| :=
  foldr (fun r A => relation_matrix r *m A) 1%:M sort.

(** Whether the steps from [m] through [walk] follow the sort, one step for each relation. *)
Fixpoint follows (sort : seq (rel Node)) (m : Node) (walk : seq Node) : bool :=
  match sort, walk with
  | [::], [::] => true
  | r :: sort', l :: walk' => r m l && follows sort' l walk'
  | _, _ => false
  end.

(** The walks of a sort from m to n. *)
Definition walks (sort : seq (rel Node)) (m n : Node) : {set (size sort).-tuple Node} :=
  [set w | follows sort m (tval w) && (last m (tval w) == n)].

(** A walk is a first step and a walk from there. *)
Lemma walks_step (r : rel Node) (sort : seq (rel Node)) m n :
  #|walks (r :: sort) m n| = (\sum_(l | r m l) #|walks sort l n|)%N.
Proof.
rewrite -sum1_card (reindex (fun s : Node * (size sort).-tuple Node => [tuple of s.1 :: s.2])) /=.
  rewrite [LHS](eq_bigl (fun s => r m s.1 && (s.2 \in walks sort s.1 n))) => [|[l w]].
    rewrite -(pair_big_dep (r m) (fun l w => w \in walks sort l n) (fun _ _ => 1%N)) /=.
    by apply: eq_bigr => l _; rewrite sum1_card.
  by rewrite !inE /= andbA.
exists (fun w => (thead w, [tuple of behead w])) => [[l w] _ | w _].
  by congr (_, _); apply: val_inj.
by rewrite -tuple_eta.
Qed.

End Walks.

Theorem graph_walks (F : fieldType) (Node : finType) :
  (forall (sort : seq (rel Node)) (m n : Node),
     sort_matrix F sort (enum_rank m) (enum_rank n) = #|walks sort m n|%:R) /\
  forall (e : rel Node) k m n,
    let power := iter k (mulmx (relation_matrix F e)) 1%:M in
    power (enum_rank m) (enum_rank n) =
      #|[set w : k.-tuple Node | path e m w && (last m w == n)]|%:R.
Proof.
have entries (sort : seq (rel Node)) (m n : Node) :
    sort_matrix F sort (enum_rank m) (enum_rank n) = #|walks sort m n|%:R.
  elim: sort m => [|r sort IH] m /=.
    rewrite mxE (inj_eq enum_rank_inj) (_ : #|_| = (m == n)) //.
    case: eqP => [-> | /eqP/negbTE ne].
      by apply/eqP/cards1P; exists [tuple]; apply/setP => w; rewrite !inE tuple0 /= !eqxx.
    by apply: eq_card0 => w; rewrite inE tuple0 /= ne.
  rewrite mxE walks_step natr_sum [RHS]big_mkcond /= (reindex enum_rank) /=; last first.
    by apply: onW_bij; exists enum_val; [exact: enum_rankK | exact: enum_valK].
  apply: eq_bigr => l _; rewrite IH mxE !enum_rankK.
  by case: (r m l); rewrite ?mul1r ?mul0r.
split=> // e k m n /=.
have -> : iter k (mulmx (relation_matrix F e)) 1%:M = sort_matrix F (nseq k e).
  by elim: k => //= k ->.
have recount j j' (step : j = j') (T : pred (seq Node)) :
    #|[set w : j.-tuple Node | T w]| = #|[set w : j'.-tuple Node | T w]| by case: _ / step.
rewrite entries -(recount _ _ (size_nseq k e) (fun w => path e m w && (last m w == n))).
congr (_%:R); apply: eq_card => w; rewrite !inE; congr (_ && _).
case: w => w /= /eqP; rewrite size_nseq => <-.
by elim: w m => //= l w IH m; rewrite IH.
Qed.
