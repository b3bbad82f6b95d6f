(* JSON in its canonical form and in no other: keys in order and given once, no spaces, ASCII, one
   newline at the end, integers as the only numbers. So what is read is what is written. *)

type t =
  | Null
  | Bool of bool
  | Int of Z.t
  | String of string  (* as it stands between the quotes, escapes and all *)
  | List of t list
  | Object of (string * t) list

exception Malformed of string

let largest_file = 500_000
let most_digits = 4_000
let deepest = 64

let parse text =
  let at = ref 0 in
  let fail expected = raise (Malformed (Printf.sprintf "byte %d: expected %s" !at expected)) in
  let peek () = if !at < String.length text then text.[!at] else '\000' in
  let skip c = if peek () = c then incr at else fail (Printf.sprintf "'%c'" c) in
  let word literal value =
    let length = String.length literal in
    if !at + length <= String.length text && String.sub text !at length = literal then
      (at := !at + length; value)
    else fail literal in
  let digit () = match peek () with '0' .. '9' -> true | _ -> false in
  let number () =
    let start = !at in
    if peek () = '-' then incr at;
    let first = !at in
    while digit () do incr at done;
    let digits = !at - first in
    if digits = 0 || (text.[first] = '0' && (digits > 1 || first > start)) then fail "an integer";
    if !at - start > most_digits then fail "fewer digits";
    Int (Z.of_string (String.sub text start (!at - start))) in
  (* An escape is canonical if the character can be written in no shorter way. *)
  let escape () =
    incr at;
    match peek () with
    | '"' | '\\' | 'b' | 'f' | 'n' | 'r' | 't' -> incr at
    | 'u' when !at + 4 < String.length text ->
      let code = String.sub text (!at + 1) 4 in
      let lower = function '0' .. '9' | 'a' .. 'f' -> true | _ -> false in
      let short = List.mem code [ "0008"; "0009"; "000a"; "000c"; "000d" ] in
      if not (String.for_all lower code) || short || (code >= "0020" && code < "007f") then
        fail "the shortest escape";
      at := !at + 5
    | _ -> fail "an escape" in
  let quoted () =
    skip '"';
    let start = !at in
    while peek () <> '"' do
      match peek () with
      | '\\' -> escape ()
      | ' ' .. '~' -> incr at
      | _ -> fail "a printable character"
    done;
    incr at;
    String.sub text start (!at - 1 - start) in
  let separated close item =
    let rec further read =
      if peek () = ',' then (incr at; further (item () :: read)) else (skip close; List.rev read) in
    further [ item () ] in
  let rec value depth =
    if depth > deepest then fail "less nesting";
    match peek () with
    | '"' -> String (quoted ())
    | '[' ->
      incr at;
      if peek () = ']' then (incr at; List [])
      else List (separated ']' (fun () -> value (depth + 1)))
    | '{' ->
      incr at;
      if peek () = '}' then (incr at; Object [])
      else begin
        let last = ref None in
        Object (separated '}' (fun () ->
          let key = quoted () in
          if String.contains key '\\' then fail "a key without escapes";
          if !last >= Some key then fail "keys in order, each once";
          last := Some key;
          skip ':';
          (key, value (depth + 1))))
      end
    | 't' -> word "true" (Bool true)
    | 'f' -> word "false" (Bool false)
    | 'n' -> word "null" Null
    | _ -> number () in
  if String.length text > largest_file then raise (Malformed "the file is too long");
  let result = value 0 in
  skip '\n';
  if !at < String.length text then fail "the end";
  result
