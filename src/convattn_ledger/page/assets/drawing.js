"use strict";
// What the figures draw with: elements, numbers, pictures, tables, charts.

const byId = (name) => document.getElementById(name);
const element = (tag, attributes = {}, ...children) => {
  const svg = ["svg", "path", "line", "text", "circle", "g"].includes(tag);
  const node = svg ? document.createElementNS("http://www.w3.org/2000/svg", tag) : document.createElement(tag);
  Object.entries(attributes).forEach(([name, value]) => node.setAttribute(name, value));
  node.append(...children);
  return node;
};
const options = (select, names) => select.append(...names.map((name) => element("option", { value: name }, name)));
const shown = (number) => (number === 0 ? "0" : Math.abs(number) >= 1e-2 && Math.abs(number) < 1e5
  ? String(Number(number.toPrecision(4))) : number.toExponential(1).replace("-", "−"));
const minus = (number) => String(number).replace("-", "−");

// A canvas: values from `low` to `high` become black to white.
const picture = (image, low, high, caption) => {
  const canvas = element("canvas", { width: image.width, height: image.height, class: "pixels", role: "img", "aria-label": caption });
  const context = canvas.getContext("2d");
  const bytes = context.createImageData(image.width, image.height);
  for (let place = 0; place < image.width * image.height; place += 1) {
    for (let c = 0; c < 3; c += 1) {
      const value = image.pixels[place * image.channels + Math.min(c, image.channels - 1)];
      bytes.data[4 * place + c] = (255 * (value - low)) / (high - low);
    }
    bytes.data[4 * place + 3] = 255;
  }
  context.putImageData(bytes, 0, 0);
  return element("div", {}, canvas, caption);
};
const difference = (one, other) => ({ ...one, pixels: one.pixels.map((value, place) => Math.abs(value - other.pixels[place])) });

const rows = (table, head, body) => table.replaceChildren(
  element("thead", {}, element("tr", {}, ...head.map((text) => element("th", { scope: "col" }, text)))),
  element("tbody", {}, ...body.map((cells) => element("tr", {}, ...cells.map((cell) => (cell instanceof Node ? cell : element("td", {}, cell)))))));

// A chart of lines: series of [x, y], each with a class and a name; `levels` are horizontal lines.
const chart = (series, levels, xTitle, yTitle) => {
  const [width, left, bottom, top] = [640, 56, 46, 26 + 18 * series.length];
  const height = 290 + top;
  const points = series.flatMap(({ line }) => line);
  const [xLow, xHigh] = [Math.min(...points.map(([x]) => x)), Math.max(...points.map(([x]) => x))];
  const yHigh = Math.max(1e-12, ...points.map(([, y]) => y), ...levels.map(({ at }) => at));
  const x = (value) => left + ((width - left - 20) * (value - xLow)) / Math.max(xHigh - xLow, 1);
  const y = (value) => height - bottom - ((height - bottom - top) * value) / yHigh;
  const step = yHigh > 4 ? Math.ceil(yHigh / 4) : yHigh / 4;
  const ticks = Array.from({ length: Math.floor(yHigh / step + 1e-9) + 1 }, (_, k) => step * k);
  const steps = Math.max(1, Math.ceil((xHigh - xLow) / 14));
  const drawn = element("svg", { viewBox: `0 0 ${width} ${height}`, role: "img", "aria-label": `${yTitle} against ${xTitle}` });
  ticks.forEach((tick) => drawn.append(
    element("line", { x1: left, x2: width - 20, y1: y(tick), y2: y(tick), class: "grid" }),
    element("text", { x: left - 6, y: y(tick) + 4, "text-anchor": "end" }, shown(tick))));
  for (let value = xLow; value <= xHigh; value += steps) drawn.append(element("text", { x: x(value), y: height - bottom + 18, "text-anchor": "middle" }, value));
  drawn.append(element("text", { x: (left + width) / 2, y: height - 8, "text-anchor": "middle" }, xTitle),
    element("text", { x: 14, y: (top + height) / 2, transform: `rotate(-90 14 ${(top + height) / 2})`, "text-anchor": "middle" }, yTitle));
  levels.forEach(({ at, name }) => drawn.append(
    element("line", { x1: left, x2: width - 20, y1: y(at), y2: y(at), class: "model" }),
    element("text", { x: left + 8, y: y(at) - 5 }, name)));
  series.forEach(({ line, kind, name, dashed }, index) => {
    const path = line.map(([a, b], k) => `${k ? "L" : "M"}${x(a)} ${y(b)}`).join("");
    drawn.append(element("path", { d: path, class: `line ${kind}`, "stroke-dasharray": dashed ? "3 4" : "none" }));
    line.forEach(([a, b]) => drawn.append(element("circle", { cx: x(a), cy: y(b), r: 3, class: kind })));
    drawn.append(
      element("line", { x1: left + 14, x2: left + 40, y1: 18 + 18 * index, y2: 18 + 18 * index, class: `line ${kind}`, "stroke-dasharray": dashed ? "3 4" : "none" }),
      element("text", { x: left + 46, y: 22 + 18 * index }, name));
  });
  return drawn;
};
