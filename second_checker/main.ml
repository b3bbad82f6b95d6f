(* The second checker: reads certificates, hands their numbers to the extracted decisions, prints
   the verdicts. What it computes by itself (the shifts of each axis, values over a common
   denominator) is judged by these decisions. *)

open Canonical_json
module D = Decisions

(* A list may be longer than the stack is deep. *)
module List = struct
  include List
  let map f l = rev (rev_map f l)
end

exception Reject of string
exception Not_covered of string

let reject reason = raise (Reject reason)
let require holds reason = if not holds then reject reason

let fields names = function
  | Object members when List.map fst members = List.sort compare names -> members
  | _ -> reject ("expected an object with " ^ String.concat ", " names)

let member name members = List.assoc name members

let items name = function List l -> l | _ -> reject (name ^ ": expected a list")
let listed name members = items name (member name members)
let text name = function
  | String s when s <> "" -> s
  | _ -> reject (name ^ ": expected a text")
let one_of name words value =
  let word = text name value in
  require (List.mem word words) (name ^ ": expected " ^ String.concat " or " words);
  word
let integer name = function Int z -> z | _ -> reject (name ^ ": expected an integer")
let bounded name low high value =
  let z = integer name value in
  require (Z.leq (Z.of_int low) z && Z.leq z (Z.of_int high))
    (Printf.sprintf "%s: expected %d to %d" name low high);
  Z.to_int z
let integers name value = List.map (integer name) (items name value)

let largest_side = 64
let largest_position = 4_096
let most_offsets = 1_024
let most_entries = 1 lsl 16  (* the decision on a minor counts them in unary *)
let most_trials = 1 lsl 22  (* some seconds *)
let longest_power = 1 lsl 12  (* bits *)
let largest_entry = Z.pow (Z.of_int 10) 18

let entry name value =
  let z = integer name value in
  require (Z.leq (Z.abs z) largest_entry) (name ^ ": expected up to 18 digits");
  z

let of_length name length list =
  require (List.length list = length) (Printf.sprintf "%s: expected %d items" name length);
  list

let sides name high value = List.map (bounded name 1 high) (items name value)

(* "p" or "p/q" in lowest terms, q > 1: what zarith's own form of the fraction is. *)
let rational name value =
  let written = text name value in
  let digits s = s <> "" && String.for_all (function '0' .. '9' -> true | _ -> false) s in
  let whole s =
    let unsigned = if s <> "" && s.[0] = '-' then String.sub s 1 (String.length s - 1) else s in
    require (digits unsigned && String.length s <= most_digits) (name ^ ": expected a rational");
    Z.of_string s in
  let p, q = match String.split_on_char '/' written with
    | [ p ] -> (whole p, Z.one)
    | [ p; q ] -> (whole p, whole q)
    | _ -> reject (name ^ ": expected a rational") in
  require (Z.sign q > 0) (name ^ ": expected a positive denominator");
  let fraction = Q.make p q in
  require (Q.to_string fraction = written) (name ^ ": expected lowest terms, 'p' or 'p/q'");
  fraction

let nat n =
  let rec up m i = if i = 0 then m else up (D.S m) (i - 1) in
  up D.O n

(* On one axis the second is a single pixel. *)
let pair name values = match values with
  | [ a; b ] -> (a, b)
  | [ a ] -> (a, Z.zero)
  | _ -> reject (name ^ ": expected one or two axes")

let shift axes name value = pair name (of_length name axes (integers name value))

(* Sizes, offsets and ring of a certificate of equality, and its values when the rows are known. *)
let read_axes body axes =
  let size name = of_length name axes (sides name largest_side (member name body)) in
  let kernel = size "kernel_size" and patch = size "patch_size" in
  let dilation = size "dilation" and stride = size "stride" in
  let route = one_of "stride_route" [ "tokens"; "subsample" ] (member "stride_route" body) in
  let tokens = route = "tokens" in
  require (not tokens || List.for_all2 (fun s p -> p mod s = 0) stride patch)
    "stride: expected a divisor of the patch size";
  let offsets = List.map (shift axes "offsets") (listed "offsets" body) in
  require (offsets <> [] && List.length offsets <= most_offsets) "offsets: expected 1 to 1024";
  let table value =
    List.map (fun rows -> List.map (integers "pattern") (items "pattern" rows))
      (items "pattern" value) in
  let patterns = of_length "pattern" axes (List.map table (listed "pattern" body)) in
  let shifts i = List.sort_uniq Z.compare (List.map (if i = 0 then fst else snd) offsets) in
  let trials i pattern =  (* each entry is found by trying all taps *)
    let width = List.nth patch i in
    let height = if tokens then width / List.nth stride i else width in
    let fits rows = List.length rows = height && List.for_all (fun r -> List.length r = width) rows in
    require (List.length pattern = List.length (shifts i) && List.for_all fits pattern)
      "pattern: expected an entry for each shift, output pixel and input pixel";
    List.length pattern * height * width * List.nth kernel i in
  if List.fold_left ( + ) 0 (List.mapi trials patterns) > most_trials then
    raise (Not_covered "a pattern of this size");
  let reach value = match List.map (bounded "ring" 0 largest_position) (items "ring" value) with
    | [ low; high ] -> (low, high)
    | _ -> reject "ring: expected [low, high] for each axis" in
  let ring = of_length "ring" axes (List.map reach (listed "ring" body)) in
  let axis i =
    let low, high = List.nth ring i in
    { D.axis_kernel = nat (List.nth kernel i); axis_patch = nat (List.nth patch i);
      axis_dilation = nat (List.nth dilation i);
      axis_step = nat (if tokens then List.nth stride i else 1);
      axis_low = nat low; axis_high = nat high;
      axis_shifts = shifts i;
      axis_pattern = List.nth patterns i } in
  let one = nat 1 and none = nat 0 in
  let single = {
    D.axis_kernel = one; axis_patch = one; axis_dilation = one; axis_step = one;
    axis_low = none; axis_high = none;
    axis_shifts = [ Z.zero ]; axis_pattern = [ [ [ Z.zero ] ] ] } in
  let facts = { Claims.kernel; patch; dilation; stride; channels = 0; heads = 0;
                offsets = List.length offsets; family = ""; score = "" } in
  let layer columns = {
    D.first_axis = axis 0; second_axis = (if axes = 2 then axis 1 else single);
    layer_offsets = offsets; layer_columns = columns } in
  (facts, layer)

(* For each offset the heads' values, over one denominator. *)
let sparse_columns value heads offsets =
  let columns = Array.make_matrix offsets heads Q.zero in
  let read last value =
    match items "entries" value with
    | [ h; j; number ] ->
      let place = (bounded "entries" 0 (heads - 1) h, bounded "entries" 0 (offsets - 1) j) in
      let number = rational "entries" number in
      require (place > last && not (Q.equal number Q.zero)) "entries: expected in order, not zero";
      columns.(snd place).(fst place) <- number;
      place
    | _ -> reject "entries: expected [head, offset, number]" in
  ignore (List.fold_left read (-1, -1) (listed "entries" value));
  let column numbers =
    let common = Array.fold_left (fun d x -> Z.lcm d (Q.den x)) Z.one numbers in
    let over x = Z.mul (Q.num x) (Z.divexact common (Q.den x)) in
    (List.map over (Array.to_list numbers), common) in
  List.map column (Array.to_list columns)

(* The coefficients of master / (z - base), low degree first, by Horner's scheme. *)
let lagrange_columns value bases =
  let master = integers "master" (member "master" value) in
  let denominators = integers "denominators" (member "denominators" value) in
  let offsets = List.length bases in
  ignore (of_length "master" (offsets + 2) master, of_length "denominators" offsets denominators);
  require (Z.equal (List.nth master (offsets + 1)) Z.one) "master: expected to lead with 1";
  let column base denominator =
    let step c (s, quotient) = let s' = Z.add (Z.mul s base) c in (s', s' :: quotient) in
    let remainder, quotient = List.fold_right step master (Z.zero, []) in
    require (Z.sign remainder = 0 && Z.sign denominator <> 0)
      "values: master does not vanish at a base, or a denominator does";
    (List.tl quotient, denominator) in
  List.map2 column bases denominators

let families = [
  "one_hot_limit", [ "score"; "targets" ]; "leaky_one_hot", [ "leak"; "targets" ];
  "scalar_power", [ "bases"; "exponents" ] ]

let scores = [
  "given", []; "bias", []; "quadratic", []; "enumerated", [ "codes"; "spare" ];
  "polygon", [ "corners"; "codes" ]; "absolute", [ "forms" ] ]

let named name = function
  | Object members when List.mem_assoc name members -> member name members
  | _ -> Null

let require_claim table claim facts =
  require (Claims.supports table claim facts) ("the numbers are not those of the claim " ^ claim)

(* The heads: what the family's decision says of them and the values. *)
let decide_leaky attention target layer columns =
  let leak = rational "leak" (member "leak" attention) in
  let optional = function Null -> None | value -> Some (target value) in
  let targets = List.map optional (listed "targets" attention) in
  D.leaky_accept {
    D.leaky_layer = layer (columns []); leak_numerator = Q.num leak;
    leak_denominator = Q.den leak; leaky_targets = targets }

let decide_powers attention offsets layer columns =
  let read = bounded "exponents" 0 largest_position in
  let exponents = List.map read (listed "exponents" attention) in
  let bases = List.map (rational "bases") (listed "bases" attention) in
  ignore (of_length "bases" offsets bases);
  if List.exists (fun x -> not (Z.equal (Q.den x) Z.one)) bases then
    raise (Not_covered "scalar_power with bases that are not integers");
  let bases = List.map Q.num bases in
  let bits = List.map (fun x -> Z.numbits x + 1) bases in
  let sum = List.fold_left ( + ) 0 and largest = List.fold_left max 0 in
  require (largest bits * largest exponents <= longest_power && sum bits * sum exponents <= 1 lsl 27)
    "the powers take too many bits";
  D.powers_accept {
    D.powers_layer = layer (columns bases); power_bases = bases;
    power_exponents = List.map nat exponents }

let decide_one_hot attention target axes score layer columns =
  let targets = List.map target (listed "targets" attention) in
  let one_hot = { D.one_hot_layer = layer (columns []); one_hot_targets = targets } in
  let whole name = integer name (member name attention) in
  let codes () = List.map (entry "codes") (listed "codes" attention) in
  let row value = List.map (entry "forms") (items "forms" value) in
  let form value = List.map row (items "forms" value) in
  D.one_hot_accept one_hot && (match score with
    | "enumerated" -> D.enumerated_accept one_hot (codes ()) (whole "spare")
    | "polygon" -> D.polygon_accept one_hot (whole "corners") (codes ())
    | "absolute" when axes = 1 -> raise (Not_covered "absolute positions on one axis")
    | "absolute" -> D.absolute_accept one_hot (List.map form (listed "forms" attention))
    | _ -> true)

let check_equality claim value =
  let body = fields [
      "kernel_size"; "patch_size"; "dilation"; "stride"; "stride_route"; "kernel"; "regime"; "ring";
      "offsets"; "pattern"; "heads"; "attention"; "values" ] value in
  let axes = List.length (listed "kernel_size" body) in
  require (axes = 1 || axes = 2) "kernel_size: expected one or two axes";
  let facts, layer = read_axes body axes in
  ignore (one_of "kernel" [ "every" ] (member "kernel" body));
  let regime = one_of "regime" [ "limit"; "finite" ] (member "regime" body) in
  let heads = bounded "heads" 1 (most_offsets + 1) (member "heads" body) in
  let given = member "attention" body and values = member "values" body in
  let family = one_of "family" (List.map fst families) (named "family" given) in
  let limit = family = "one_hot_limit" in
  require (limit = (regime = "limit")) "regime: not that of the family";
  let score = if limit then one_of "score" (List.map fst scores) (named "score" given) else "" in
  let extra = if limit then List.assoc score scores else [] in
  let attention = fields (("family" :: List.assoc family families) @ extra) given in
  let facts = { facts with Claims.heads; family; score } in
  require_claim Claims.demands claim facts;
  let counted = if family = "scalar_power" then "exponents" else "targets" in
  ignore (of_length counted heads (listed counted attention));
  let offsets = facts.Claims.offsets in
  let columns bases =
    match one_of "values.family" [ "sparse"; "lagrange" ] (named "family" values) with
    | "sparse" -> sparse_columns (fields [ "family"; "entries" ] values) heads offsets
    | _ ->
      require (family = "scalar_power" && member "exponents" attention =
          List (List.init heads (fun h -> Int (Z.of_int h))))
        "lagrange: expected scalar_power with the exponents 0, 1, ...";
      lagrange_columns (fields [ "family"; "master"; "denominators" ] values) bases in
  let target = shift axes "targets" in
  require (match family with
      | "leaky_one_hot" -> decide_leaky attention target layer columns
      | "scalar_power" -> decide_powers attention offsets layer columns
      | _ -> decide_one_hot attention target axes score layer columns)
    ("the decision on " ^ family ^ " is no");
  Printf.sprintf "for every kernel of this size, channels and image: %d heads (%s, %s)" heads family
    (if limit then "scores " ^ score ^ " in the limit" else "finite scores")

let check_lower_bound claim value =
  let body = fields [
      "kernel_size"; "patch_size"; "in_channels"; "out_channels"; "kernel"; "rows"; "columns";
      "determinant"; "heads"; "tokens_per_side" ] value in
  let kernel = sides "kernel_size" largest_side (member "kernel_size" body) in
  let axes = List.length kernel in
  require (axes = 1 || axes = 2) "kernel_size: expected one or two axes";
  let size name high = of_length name axes (sides name high (member name body)) in
  let patch = size "patch_size" largest_side in
  let tokens = size "tokens_per_side" (largest_position + 1) in
  let channels name = bounded name 1 largest_position (member name body) in
  let inputs = channels "in_channels" and outputs = channels "out_channels" in
  let heads = bounded "heads" 1 128 (member "heads" body) in
  require_claim Claims.bound_demands claim {
    Claims.kernel; patch; dilation = []; stride = []; channels = inputs * outputs; heads;
    offsets = 0; family = ""; score = "" };
  let entries = List.map (entry "kernel") (listed "kernel" body) in
  ignore (of_length "kernel" (Claims.product kernel * inputs * outputs) entries);
  let count = List.length entries in
  if count > most_entries || heads * heads * count > 100_000_000 then
    raise (Not_covered "a kernel and a minor of this size");
  let index value = nat (bounded "rows" 0 largest_position value) in
  let row value = match List.map index (items "rows" value) with
    | [ p1; p2; q1; q2; i; j ] when axes = 2 -> (((p1, p2), (q1, q2)), (i, j))
    | [ p; q; i; j ] when axes = 1 -> (((p, D.O), (q, D.O)), (i, j))
    | _ -> reject "rows: expected [p.., q.., i, j]" in
  let column value =
    let inside = bounded "columns" (-largest_position) largest_position in
    ignore (List.map inside (items "columns" value));
    shift axes "columns" value in
  let first l = nat (List.hd l) and second l = nat (if axes = 2 then List.nth l 1 else 1) in
  require (D.bound_accept {
      D.bound_kernel1 = first kernel; bound_kernel2 = second kernel;
      bound_patch1 = first patch; bound_patch2 = second patch;
      bound_inputs = nat inputs; bound_outputs = nat outputs; bound_kernel = entries;
      bound_rows = List.map row (listed "rows" body);
      bound_columns = List.map column (listed "columns" body);
      bound_determinant = integer "determinant" (member "determinant" body);
      bound_heads = nat heads; bound_tokens1 = first tokens; bound_tokens2 = second tokens })
    "the decision on the lower bound is no";
  Printf.sprintf "no layer with fewer than %d heads, whatever they attend to by position" heads

let conventions =
  Object [
    "kernel", String "HWIO"; "patch", String "row-major, channels last";
    "shift", String "key - query"; "tokens", String "row-major" ]

let kinds = [
  "equality"; "lower_bound"; "no_shared_map"; "rank"; "saturation"; "border"; "total_variation";
  "commutant"; "identity"; "head_dimension"; "kernel_heads"; "narrow_heads"; "approximation";
  "two_layers"; "exponentials" ]

let check content =
  let top = fields [ "schema"; "claim"; "kind"; "statement"; "conventions"; "body"; "digests" ]
      (parse content) in
  ignore (one_of "schema" [ "convattn-certificate/1" ] (member "schema" top));
  require (member "conventions" top = conventions) "conventions: not those of the schema";
  ignore (text "statement" (member "statement" top));
  ignore (List.map (fun (name, value) -> text name value)
      (fields [ "body"; "specification" ] (member "digests" top)));
  let claim = text "claim" (member "claim" top) in
  let sentence = match one_of "kind" kinds (member "kind" top) with
    | "equality" -> check_equality claim (member "body" top)
    | "lower_bound" -> check_lower_bound claim (member "body" top)
    | kind -> raise (Not_covered ("the kind " ^ kind)) in
  (claim, sentence)

let read name =
  (match (Unix.stat name).st_kind with
   | S_REG | S_DIR -> ()  (* a pipe or a device may never begin, or never end *)
   | _ -> raise (Sys_error "it is a pipe or a device"));
  let channel = open_in_bin name in
  Fun.protect ~finally:(fun () -> close_in_noerr channel) (fun () ->
      let buffer = Buffer.create 65_536 in
      (try Buffer.add_channel buffer channel (largest_file + 1) with End_of_file -> ());
      Buffer.contents buffer)

let verdict name =
  try
    let claim, sentence = check (read name) in
    (0, Printf.sprintf "ACCEPT  %s  %s  %s" claim name sentence)
  with
  | Reject reason | Malformed reason -> (1, Printf.sprintf "REJECT  %s  %s" name reason)
  | Not_covered what -> (3, Printf.sprintf "NOT COVERED  %s  %s" name what)
  | Stack_overflow -> (3, Printf.sprintf "NOT COVERED  %s  it takes more stack than there is" name)
  | Unix.Unix_error (code, _, _) ->
    let reason = Unix.error_message code in
    (1, Printf.sprintf "REJECT  %s  the file cannot be read: %s" name reason)
  | Sys_error reason -> (1, Printf.sprintf "REJECT  %s  the file cannot be read: %s" name reason)
  | error ->
    (1, Printf.sprintf "REJECT  %s  the check broke off: %s" name (Printexc.to_string error))

let () =
  match List.tl (Array.to_list Sys.argv) with
  | [] -> prerr_endline "usage: second-checker FILE..."; exit 2
  | names when List.exists (fun name -> name <> "" && name.[0] = '-') names ->
    prerr_endline "usage: second-checker FILE... (there are no options)"; exit 2
  | names ->
    let count = Array.make 4 0 in
    let report name =
      let status, line = verdict name in
      count.(status) <- count.(status) + 1;
      print_endline (String.escaped line) in
    (try
       List.iter report names;
       Printf.printf "%d accepted, %d rejected, %d not covered\n%!" count.(0) count.(1) count.(3)
     with Sys_error reason ->
       close_out_noerr stdout;  (* or it would be tried again on exit *)
       prerr_endline ("the verdicts cannot be written: " ^ reason);
       exit 1);
    exit (if count.(1) > 0 then 1 else if count.(3) > 0 then 3 else 0)
