(* What each claim demands of its certificate, beyond that the mathematics is right: the rows of the
   table in src/convattn_check/claims.py for the kinds that are covered. *)

type facts = {
  kernel : int list; patch : int list; dilation : int list; stride : int list;
  channels : int; (* in times out *)
  heads : int; offsets : int;
  family : string; score : string;
}

let product = List.fold_left ( * ) 1
let axes n f = List.length f.kernel = n
let odd f = List.for_all (fun k -> k mod 2 = 1) f.kernel
let ones = List.for_all (( = ) 1)
let pixels f = ones f.patch
let wide f = not (ones f.kernel)
let point f = ones f.kernel
let plain f = ones f.dilation && ones f.stride
let strided f = not (ones f.stride)
let spread f = List.exists2 (fun d k -> d > 1 && k > 1) f.dilation f.kernel
let small f = List.for_all2 (fun k p -> 3 <= k && k <= (2 * p) + 1) f.kernel f.patch
let patches f = List.for_all (fun p -> p >= 2) f.patch
let scored score f = f.score = score
let one_each f = f.heads = f.offsets
let one_more f = f.family <> "one_hot_limit" && f.heads = f.offsets + 1
let leaky f = f.family = "leaky_one_hot"
let several f = f.heads >= 2
let paper = [ axes 2; odd; wide ]

let square f =
  List.for_all (( = ) (List.hd f.kernel)) f.kernel && List.for_all (( = ) (List.hd f.patch)) f.patch

(* min((2m+1)^axes, (2P-1)^axes * D_in * D_out) *)
let generic f =
  let p = List.hd f.patch in
  let reach = (List.hd f.kernel - 1 + (2 * p) - 1) / (2 * p) in
  let power x = product (List.map (fun _ -> x) f.kernel) in
  f.heads = min (power ((2 * reach) + 1)) (power ((2 * p) - 1) * f.channels)

let full f = f.heads = min (product f.kernel) f.channels

let tiles f =
  let k = List.hd f.kernel and p = List.hd f.patch in
  k mod (2 * p) = 1 && k > 2 * p * p && patches f && f.channels >= 2

let demands = [
  "C20.lemma1", [ scored "given"; pixels; plain; one_each ] @ paper;
  "C20.theorem1", [ scored "quadratic"; plain; one_each ] @ paper;
  "C20.padding", [ scored "quadratic"; pixels; plain; one_each ] @ paper;
  "C20.stride", [ scored "quadratic"; pixels; strided; one_each ] @ paper;
  "C20.dilation", [ scored "quadratic"; pixels; spread; one_each ] @ paper;
  "C20.sequence", [ scored "quadratic"; pixels; axes 1; odd; wide; plain; one_each ];
  "L21.theorem1", [ scored "bias"; plain; one_each ] @ paper;
  "L21.wo", [ scored "bias"; plain; one_each ] @ paper;
  "L21.cor3", [ scored "bias"; plain; pixels; one_each ] @ paper;
  "L21.cor4", [ scored "bias"; plain; small; one_each ] @ paper;
  "L21.variants", [ scored "bias"; (fun f -> strided f || spread f); one_each ] @ paper;
  "L21.absolute", [ scored "absolute"; plain; one_each ] @ paper;
  "L21.theorem6", [ scored "bias"; axes 2; patches; plain; point; one_each ];
  "S.finite", [ leaky; one_more ];
  "S.pad", [ leaky; wide; one_more ];
  "S.dp1", [ (fun f -> f.family = "scalar_power"); one_more ];
  "S.dp2", [ scored "enumerated"; one_each ];
  "S.sharpness", [ leaky; point; one_more ];
  "S.polygon", [ scored "polygon"; (fun f -> f.offsets >= 4); one_each ];
  "S.network", [ leaky; axes 2; odd; pixels; one_more ];
]

let bound_demands = [
  "L21.theorem5", [ axes 2; pixels; odd; full; several ];
  "L21.theorem6", [ axes 2; square; patches; odd; small; (fun f -> f.heads = 9) ];
  "S.heads", [ square; odd; generic; several ];
  "S.depth", [ square; odd; wide; generic; several ];
  "S.tiles", [ axes 2; square; odd; tiles; generic ];
  "S.content", [ several ];
]

let supports table claim facts =
  match List.assoc_opt claim table with
  | None -> false
  | Some demanded -> List.for_all (fun demand -> demand facts) demanded
