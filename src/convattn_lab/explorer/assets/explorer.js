// The explorer's page. All numbers come from the server; here they are drawn and said.
"use strict";

const byId = (id) => document.getElementById(id);
const state = { image: "", layer: 0, head: 0, row: 0, column: 0, mode: "full", channel: 0 };
let model = null;     // what the server says of the model
let seen = null;      // the maps of the present query
let measured = null;  // the numbers of the present layer
let outputs = null;   // of the present layer, before and after conversion
let picture = null;   // the image, as an element

// Perceptually uniform colours: viridis; of signed numbers blue to red through the page's own paper.
const VIRIDIS = ["#440154", "#482878", "#3e4a89", "#31688e", "#26828e", "#1f9e89", "#35b779", "#6ece58",
  "#b5de2b", "#fde725"];
const SIGNED = {
  light: ["#123f7a", "#2f6fb3", "#7fb0da", "#cfe1ef", "#f7f6f4", "#f3d3c7", "#de9079", "#bb4a36", "#7d1620"],
  dark: ["#a9d4ff", "#6fa9e6", "#3d74ad", "#24425f", "#1b1e22", "#5f2f2b", "#a84b41", "#e5806f", "#ffc2b4"],
};
const dark = matchMedia("(prefers-color-scheme: dark)");

function palette(anchors) {
  const parts = anchors.map((text) => [1, 3, 5].map((at) => parseInt(text.slice(at, at + 2), 16)));
  return Array.from({ length: 256 }, (_, index) => {
    const place = (index / 255) * (parts.length - 1), low = Math.min(Math.floor(place), parts.length - 2);
    return parts[low].map((value, at) => Math.round(value + (place - low) * (parts[low + 1][at] - value)));
  });
}
const viridis = palette(VIRIDIS);
const signed = () => palette(SIGNED[dark.matches ? "dark" : "light"]);

const short = (value, digits = 3) => value === null || value === undefined ? "–"
  : value !== 0 && (Math.abs(value) < 1e-3 || Math.abs(value) >= 1e5) ? value.toExponential(digits - 1)
  : String(Number(value.toPrecision(digits))).replace(/^-/, "−");
function signedShort(value, digits = 1) {
  if (value === null) return "–";
  const text = Math.abs(value).toFixed(digits);
  return Number(text) === 0 ? text : (value < 0 ? "−" : "+") + text;
}

// Asking ------------------------------------------------------------------------------------------

async function ask(path, options) {
  let answer;
  try {
    answer = await fetch(path, options);
  } catch (error) {
    if (error.name === "AbortError") throw error;
    throw new Error("The explorer does not answer: it was ended, or its terminal was closed.");
  }
  const found = await answer.json();
  if (!answer.ok) throw new Error(found.error);
  return answer.status === 202 ? null : found;
}

function numbers(text) {
  const bytes = Uint8Array.from(atob(text), (each) => each.charCodeAt(0));
  return new Float32Array(bytes.buffer);
}

function complain(error) {
  byId("error").textContent = error ? error.message : "";
  byId("error").hidden = !error;
}

// Of each kind of question the newest is asked; what was asked before is let go.
const asked = {};
async function newest(kind, path, use) {
  asked[kind]?.abort();
  const own = asked[kind] = new AbortController();
  try {
    const found = await ask(path, { signal: own.signal });
    if (asked[kind] === own) {
      use(found);
      complain(null);
    }
  } catch (error) {
    if (error.name !== "AbortError" && asked[kind] === own) complain(error);
  }
}

function look() {
  const { image, layer, row, column } = state;
  const query = new URLSearchParams({ image, layer, row, column });
  return newest("attention", `api/attention?${query}`, (found) => {
    const [heads, rows, columns] = found.shape, size = rows * columns;
    const cut = (all) => Array.from({ length: heads }, (_, head) => all.subarray(head * size, (head + 1) * size));
    const full = cut(numbers(found.full)), position = cut(numbers(found.position));
    const content = full.map((map, head) => map.map((value, at) => value - position[head][at]));
    seen = { rows, columns, maps: { full, position, content }, numbers: found.numbers };
    draw();
    say();
  });
}

let waiting = 0;
function measure() {
  clearTimeout(waiting);
  measured = null;
  newest("numbers", `api/numbers?layer=${state.layer}`, (found) => {
    measured = found;
    if (!found) waiting = setTimeout(measure, 500);
    drawNumbers();
  });
}

function compare() {
  if (!model.converted) return;
  const { image, layer, channel } = state;
  newest("outputs", `api/outputs?${new URLSearchParams({ image, layer, channel })}`, (found) => {
    outputs = found;
    fill(byId("channel"), Array.from({ length: found.channels }, (_, n) => [n, String(n + 1)]), channel);
    drawOutputs();
  });
}

// Drawing -----------------------------------------------------------------------------------------

function range(map, isSigned) {
  if (isSigned) {
    const most = map.reduce((largest, each) => Math.max(largest, Math.abs(each)), 0);
    return [-most, most];
  }
  return [0, map.reduce((largest, each) => Math.max(largest, each), 0)];
}

function paint(canvas, map, rows, columns, isSigned, ends = range(map, isSigned), width = 0) {
  const small = new OffscreenCanvas(columns, rows), inner = small.getContext("2d");
  const pixels = inner.createImageData(columns, rows), colours = isSigned ? signed() : viridis;
  const span = ends[1] - ends[0] || 1;
  map.forEach((value, at) => {
    const place = Math.max(0, Math.min(255, Math.round(((value - ends[0]) / span) * 255)));
    pixels.data.set([...colours[place], 255], 4 * at);
  });
  inner.putImageData(pixels, 0, 0);
  const cell = Math.max(1, Math.round((width || Math.max(canvas.clientWidth, 64)) * (devicePixelRatio || 1) / columns));
  canvas.width = cell * columns;
  canvas.height = cell * rows;
  const context = canvas.getContext("2d");
  context.imageSmoothingEnabled = false;
  context.drawImage(small, 0, 0, canvas.width, canvas.height);
  return [context, cell];
}

// A line that is seen on any colour: dark beneath, light above.
function outline(context, path, width) {
  for (const [colour, wide] of [["#000", width * 2.2], ["#fff", width]]) {
    context.strokeStyle = colour;
    context.lineWidth = wide;
    context.beginPath();
    path(context);
    context.stroke();
  }
}

function markQuery(context, cell) {
  const line = Math.max(1, Math.min(3 * (devicePixelRatio || 1), cell / 6));
  const inset = line * 0.6;
  outline(context, (c) => c.rect(state.column * cell + inset, state.row * cell + inset,
    cell - 2 * inset, cell - 2 * inset), line);
}

// The centre μ, and the ellipse of one standard deviation of where the query attends.
function markCentre(context, cell, found) {
  const [down, right] = found.center[state.head];
  if (down === null || !Number.isFinite(down)) return;
  const x = (state.column + right + 0.5) * cell, y = (state.row + down + 0.5) * cell;
  const [[a, b], [, d]] = found.covariance[state.head];
  const middle = (a + d) / 2, away = Math.hypot((a - d) / 2, b);
  const radii = [middle + away, middle - away].map((each) => Math.sqrt(Math.max(each, 0)) * cell);
  const angle = Math.atan2(2 * b, d - a) / 2;
  const line = 1.5 * (devicePixelRatio || 1);
  outline(context, (c) => c.ellipse(x, y, Math.max(radii[0], 1), Math.max(radii[1], 1),
    angle, 0, 2 * Math.PI), line);
  const arm = 5 * (devicePixelRatio || 1);
  outline(context, (c) => {
    c.moveTo(x - arm, y); c.lineTo(x + arm, y); c.moveTo(x, y - arm); c.lineTo(x, y + arm);
  }, line);
}

function bar(canvas, isSigned) {
  const context = canvas.getContext("2d"), colours = isSigned ? signed() : viridis;
  colours.forEach(([red, green, blue], at) => {
    context.fillStyle = `rgb(${red} ${green} ${blue})`;
    context.fillRect(at, 0, 1, 1);
  });
}

function ends(canvas, least, most, [low, high], isSigned) {
  bar(canvas, isSigned);
  least.textContent = short(low);
  most.textContent = short(high);
  canvas.setAttribute("aria-label", `Colour scale from ${short(low)} to ${short(high)}`);
}

function draw() {
  const maps = seen.maps[state.mode], isSigned = state.mode === "content";
  const { rows, columns } = seen, map = maps[state.head], limits = range(map, isSigned);
  const [context, cell] = paint(byId("large"), map, rows, columns, isSigned, limits);
  markQuery(context, cell);
  const found = seen.numbers[state.mode];
  if (found) markCentre(context, cell, found);
  ends(byId("scale"), byId("least"), byId("most"), limits, isSigned);
  const layer = model.layers[state.layer];
  byId("look-title").textContent = `Head ${state.head + 1} of ${layer.heads}, ${layer.name}`;
  const what = { full: "Attention in this image", position: model.position,
    content: "What the image adds to the attention by position" }[state.mode];
  byId("about").textContent = `${what}, ${rows} × ${columns} tokens.` +
    (found ? " The square is the query, the cross the centre of its attention, the ellipse one standard deviation." : "");
  byId("large").setAttribute("aria-label", `${what}, head ${state.head + 1}, query at row ${state.row}, ` +
    `column ${state.column}; from ${short(limits[0])} to ${short(limits[1])}`);
  [...byId("heads").children].forEach((button, head) => {
    paint(button.firstChild, maps[head], rows, columns, isSigned, undefined, 84);
    button.setAttribute("aria-pressed", String(head === state.head));
  });
  drawPicture();
  drawNumbers();
}

function drawPicture() {
  const canvas = byId("picture"), [rows, columns] = model.layers[state.layer].grid;
  const width = Math.round(Math.max(canvas.clientWidth, 128) * (devicePixelRatio || 1));
  const cell = Math.max(1, Math.round(width / columns));
  canvas.width = cell * columns;
  canvas.height = cell * rows;
  const context = canvas.getContext("2d");
  context.imageSmoothingEnabled = false;
  if (picture) context.drawImage(picture, 0, 0, canvas.width, canvas.height);
  markQuery(context, cell);
  canvas.setAttribute("aria-label", `Query at row ${state.row} of ${rows}, column ${state.column} of ${columns}`);
}

function drawNumbers() {
  if (!seen) return;
  const own = seen.numbers[state.mode === "position" ? "position" : "full"], head = state.head;
  const all = measured?.heads[head], convolution = measured?.convolution;
  const size = convolution?.kernel_size.join(" × ");
  const centre = ([down, right]) => `${signedShort(down)}, ${signedShort(right)}`;
  const rows = [
    ["Distance", "tokens", short(own.distance[head]), short(all?.distance)],
    ["Centre", "rows down, columns right", centre(own.center[head]), all ? centre(all.center) : "–"],
    ["Spread", "tokens", short(own.spread[head]), short(all?.spread)],
    ["Entropy", "nats", short(own.entropy[head]), short(all?.entropy)],
    ["Elsewhere", "class token, ring", short(own.elsewhere[head]), short(all?.elsewhere)],
    ["By position", "share of the variance", "–", short(all?.positions)],
    ["One shift", all ? `to ${all.shift.map((each) => signedShort(each, 0)).join(", ")}` : "", "–", short(all?.one_shift)],
    ["To convolution", "0 is one, 1 is far", "–", short(all?.to_convolution)],
  ];
  byId("measures").replaceChildren(...rows.map(([name, unit, one, mean]) => {
    const row = document.createElement("tr"), title = document.createElement("th");
    title.scope = "row";
    title.append(name, Object.assign(document.createElement("small"), { textContent: unit }));
    row.append(title, ...[one, mean].map((text) => Object.assign(document.createElement("td"), { textContent: text })));
    return row;
  }));
  const images = measured?.images;
  byId("measured").textContent = !measured ? "The heads are being measured …"
    : (images ? `All queries of ${images} ${images === 1 ? "image" : "images"}` : "All queries; the same for every image") +
      `, on ${measured.grid.join(" × ")} tokens. Of this query entropy is that within the grid.`;
  byId("kernels").hidden = !measured;
  if (!measured) {
    byId("nearest").textContent = "Not measured yet.";
    return;
  }
  const far = convolution.relative_distance;
  byId("nearest").textContent = `Of ${size} tokens. This head’s attention is ${short(all.to_convolution)} from it` +
    (far === null ? "; the layer’s maps are not known." : `, the whole layer ${short(far)}: 0 is a convolution, 1 is far.`);
  drawTaps("taps", measured.taps[head]);
  byId("norms-figure").hidden = !measured.norms;
  if (measured.norms) drawTaps("norms", measured.norms);
}

function drawTaps(name, taps) {
  paint(byId(name), taps.flat(), taps.length, taps[0].length, false, undefined, 144);
  byId(`${name}-table`).replaceChildren(...taps.map((line) => {
    const row = document.createElement("tr");
    row.append(...line.map((each) => Object.assign(document.createElement("td"), { textContent: short(each, 2) })));
    return row;
  }));
}

function drawOutputs() {
  const [rows, columns] = outputs.shape, before = numbers(outputs.before), after = numbers(outputs.after);
  const limits = range([...before, ...after], true);
  paint(byId("before"), before, rows, columns, true, limits);
  paint(byId("after"), after, rows, columns, true, limits);
  const gap = numbers(outputs.gap), most = range(gap, true)[1];
  paint(byId("gap"), gap, rows, columns, true);
  byId("gap-about").textContent = `After minus before, on a scale of its own, −${short(most)} to ${short(most)}`;
  ends(byId("scale2"), byId("least2"), byId("most2"), limits, true);
  byId("difference").textContent = `The largest difference in this channel is ${short(outputs.difference)}, ` +
    `at row ${outputs.at[0]}, column ${outputs.at[1]}; in all ${outputs.channels} channels ${short(outputs.all)}, ` +
    `of outputs up to ${short(outputs.largest)}.`;
}

// Choosing ----------------------------------------------------------------------------------------

let saying = 0;
function say() {
  clearTimeout(saying);
  saying = setTimeout(() => {
    const own = seen.numbers[state.mode === "position" ? "position" : "full"], head = state.head;
    byId("said").textContent = `${model.layers[state.layer].name}, head ${head + 1}, query at row ${state.row}, ` +
      `column ${state.column}: attends ${short(own.distance[head])} tokens away, with a spread of ${short(own.spread[head])}.`;
  }, 400);
}

function fill(select, options, chosen) {
  if (select.options.length !== options.length) {
    select.replaceChildren(...options.map(([value, text]) => new Option(text, value)));
  }
  select.value = String(chosen);
}

function chooseQuery(row, column) {
  const [rows, columns] = model.layers[state.layer].grid;
  const inside = (value, most) => Math.max(0, Math.min(most - 1, Math.floor(value) || 0));
  state.row = inside(row, rows);
  state.column = inside(column, columns);
  byId("row").value = state.row;
  byId("column").value = state.column;
  byId("row").max = rows - 1;
  byId("column").max = columns - 1;
  drawPicture();
  look();
}

function chooseLayer(number) {
  const before = model.layers[state.layer].grid, { grid, heads } = model.layers[number];
  const moved = (place, at) => Math.floor(((place + 0.5) * grid[at]) / before[at]);
  const query = [moved(state.row, 0), moved(state.column, 1)];
  Object.assign(state, { layer: number, head: Math.min(state.head, heads - 1), channel: 0 });
  byId("head").replaceChildren(...Array.from({ length: heads }, (_, n) => new Option(n + 1, n)));
  byId("head").value = state.head;
  byId("heads").replaceChildren(...Array.from({ length: heads }, (_, n) => {
    const button = document.createElement("button"), canvas = document.createElement("canvas");
    button.type = "button";
    canvas.setAttribute("aria-hidden", "true");
    button.append(canvas, `Head ${n + 1}`);
    button.addEventListener("click", () => chooseHead(n));
    return button;
  }));
  chooseQuery(...query);
  measure();
  compare();
}

function chooseHead(number) {
  state.head = number;
  byId("head").value = number;
  if (seen) {
    draw();
    say();
  }
}

function chooseImage(image) {
  state.image = image;
  byId("image").value = image;
  picture = null;
  if (model.image_size) {
    const loading = new Image();
    loading.onload = () => {
      if (state.image === image) {
        picture = loading;
        drawPicture();
      }
    };
    loading.src = `api/image?image=${encodeURIComponent(image)}`;
  }
  compare();
  return look();
}

async function send(file) {
  if (!file) return;
  try {
    if (file.size > 8 * 2 ** 20) throw new Error(`${file.name} has ${file.size} bytes, but at most 8 MiB are taken.`);
    const found = await ask("api/image", { method: "POST", body: file,
      headers: { "content-type": "application/octet-stream", "x-file-name": encodeURIComponent(file.name) } });
    if (![...byId("image").options].some((each) => each.value === found.image)) {
      byId("image").add(new Option(found.label, found.image));
    }
    await chooseImage(found.image);
    byId("said").textContent = `${found.label} is shown.`;
  } catch (error) {
    complain(error);
    byId("error").scrollIntoView({ block: "nearest" });
  }
}

const ARROWS = { ArrowUp: [-1, 0], ArrowDown: [1, 0], ArrowLeft: [0, -1], ArrowRight: [0, 1] };

function listen() {
  byId("image").addEventListener("change", (event) => chooseImage(event.target.value));
  byId("layer").addEventListener("change", (event) => chooseLayer(Number(event.target.value)));
  byId("head").addEventListener("change", (event) => chooseHead(Number(event.target.value)));
  byId("channel").addEventListener("change", (event) => {
    state.channel = Number(event.target.value);
    compare();
  });
  for (const name of ["row", "column"]) {
    byId(name).addEventListener("change", () => chooseQuery(Number(byId("row").value), Number(byId("column").value)));
  }
  for (const button of document.querySelectorAll("[data-mode]")) {
    button.addEventListener("click", () => {
      state.mode = button.dataset.mode;
      document.querySelectorAll("[data-mode]").forEach((each) =>
        each.setAttribute("aria-pressed", String(each === button)));
      if (seen) draw();
      say();
    });
  }
  for (const canvas of [byId("picture"), byId("large")]) {
    const move = (event) => {
      const box = canvas.getBoundingClientRect(), [rows, columns] = model.layers[state.layer].grid;
      chooseQuery(((event.clientY - box.top) / box.height) * rows, ((event.clientX - box.left) / box.width) * columns);
    };
    canvas.addEventListener("pointerdown", (event) => {
      canvas.setPointerCapture(event.pointerId);
      move(event);
    });
    canvas.addEventListener("pointermove", (event) => event.buttons && move(event));
  }
  byId("picture").addEventListener("keydown", (event) => {
    const step = ARROWS[event.key];
    if (!step || event.ctrlKey || event.metaKey || event.altKey) return;
    event.preventDefault();
    chooseQuery(state.row + step[0], state.column + step[1]);
  });
  const drop = byId("drop");
  byId("file").addEventListener("change", (event) => send(event.target.files[0]));
  for (const kind of ["dragover", "dragleave", "drop"]) {
    document.addEventListener(kind, (event) => {
      event.preventDefault();
      drop.classList.toggle("over", kind === "dragover");
      if (kind === "drop" && !drop.hidden) send(event.dataTransfer.files[0]);
    });
  }
  const redraw = () => {
    if (seen) draw();
    if (outputs) drawOutputs();
  };
  dark.addEventListener("change", redraw);
  addEventListener("resize", redraw);
}

async function begin() {
  byId("main").hidden = false;
  try {
    model = await ask("api/model");
    byId("name").textContent = model.name;
    byId("kind").textContent = `– ${model.kind}, ${model.layers.length} ${model.layers.length === 1 ? "layer" : "layers"}` +
      (model.image_size ? `, images of ${model.image_size.join(" × ")} pixels` : "");
    byId("notes").textContent = model.notes.join(" ");
    document.title = `${model.name} – convattn explore`;
    byId("conversion").hidden = !model.converted;
    byId("drop").hidden = !model.image_size;
    fill(byId("image"), model.images.map((each) => [each.id, each.label]), model.images[0].id);
    fill(byId("layer"), model.layers.map((each, n) => [n, each.name]), 0);
    listen();
    const [rows, columns] = model.layers[0].grid;
    Object.assign(state, { image: model.images[0].id, row: Math.floor(rows / 2), column: Math.floor(columns / 2) });
    chooseLayer(0);
    await chooseImage(state.image);
  } catch (error) {
    complain(error);
  }
}

begin();
