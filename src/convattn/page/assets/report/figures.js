"use strict";
// The figures: they read the controls, compute with convattn's functions and draw.

(() => {
  const data = JSON.parse(document.getElementById("figure-data").textContent);
  const byId = (name) => document.getElementById(name);
  const element = (tag, attributes = {}, ...children) => {
    const svg = ["svg", "path", "line", "text", "circle", "g"].includes(tag);
    const made = svg ? document.createElementNS("http://www.w3.org/2000/svg", tag) : document.createElement(tag);
    Object.entries(attributes).forEach(([name, value]) => made.setAttribute(name, value));
    made.append(...children);
    return made;
  };
  const options = (select, names) => select.append(...names.map((name) => element("option", { value: name }, name)));
  const shown = (number) => (number === 0 ? "0" : Math.abs(number) >= 1e-2 && Math.abs(number) < 1e5
    ? String(Number(number.toPrecision(4))) : number.toExponential(1).replace("-", "−"));
  const minus = (number) => String(number).replace("-", "−");

  convattn.readImage = (name) => {
    const image = data.images[name];
    return { ...image, pixels: Float64Array.from(atob(image.pixels), (letter) => letter.charCodeAt(0)) };
  };

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

  // The kernel: inputs in a square; a preset fills them.
  const kernelInputs = () => [...byId("kernel").querySelectorAll("input")];
  const readKernel = () => {
    const size = Number(byId("kernel-size").value);
    const entries = kernelInputs().map((input) => {
      const value = Number.isFinite(input.valueAsNumber) ? input.valueAsNumber : 0;
      return Math.abs(value) > 1e6 ? Math.sign(value) * 1e6 : Math.abs(value) < 1e-6 ? 0 : value;
    });
    return Array.from({ length: size }, (_, row) => entries.slice(row * size, (row + 1) * size));
  };
  const showKernel = (kernel) => {
    byId("kernel-size").value = String(kernel.length);
    byId("kernel").style.gridTemplateColumns = `repeat(${kernel.length}, max-content)`;
    byId("kernel").replaceChildren(...kernel.flatMap((row, i) => row.map((tap, j) => element("input", {
      type: "number", step: "any", value: tap, "aria-label": `row ${i + 1}, column ${j + 1}`,
    }))));
  };
  const resized = (kernel, size) => {
    const move = (size - kernel.length) / 2;
    return Array.from({ length: size }, (_, i) => Array.from({ length: size }, (_, j) => kernel[i - move]?.[j - move] ?? 0));
  };

  // A slider of powers: its ends and its unit for each form of the layer.
  const forms = {
    leak: { symbol: "ε", low: -17, high: -0.01, start: 0.5, marks: Object.entries(data.roundoff).map(([name, value]) => [name, value]) },
    logit: { symbol: "M", low: 0, high: 3, start: 40, marks: Object.entries(data.thresholds).map(([name, [, kept]]) => [name, kept]) },
    alpha: { symbol: "α", low: -2, high: 3, start: 4, marks: Object.entries(data.thresholds).map(([name, [, kept]]) => [name, kept]) },
  };
  const strengthAt = ({ low, high }, place) => Number((10 ** (low + ((high - low) * place) / 1000)).toPrecision(2));
  const placeOf = ({ low, high }, strength) => (1000 * (Math.log10(strength) - low)) / (high - low);
  const chooseForm = () => {
    const form = forms[byId("form").value];
    byId("strength").value = placeOf(form, form.start);
    byId("marks").replaceChildren(...form.marks.sort(([, a], [, b]) => a - b).map(([name, value]) =>
      element("span", { style: `left: ${placeOf(form, value) / 10}%`, class: placeOf(form, value) > 400 ? "late" : "" }, `${name} ${shown(value)}`)));
    byId("note").textContent = byId("form").value === "leak"
      ? "Marked: below this, ε is lost to rounding in that number format."
      : "Marked: from here on, softmax in that number format is exactly one-hot (C20.alpha46).";
  };
  convattn.layerForm = (kind, strength) => (kind === "alpha" ? { encoding: "quadratic", alpha: strength } : { encoding: "bias", [kind]: strength });

  const figureOne = (image, kernel) => {
    const kind = byId("form").value;
    const strength = strengthAt(forms[kind], byId("strength").valueAsNumber);
    byId("strength-label").textContent = `${forms[kind].symbol} = ${shown(strength)}`;
    byId("strength").setAttribute("aria-valuetext", shown(strength));
    const heads = convattn.heads(image, kernel, convattn.layerForm(kind, strength), "zero");
    const sum = convattn.sumOfHeads(heads, image);
    const wanted = convattn.convolution(image, kernel);
    const error = convattn.largestDifference(sum, wanted);
    byId("error-1").textContent = `${shown(error)} (pixels are 0 to 255)`;
    byId("error-1").dataset.value = error;
    byId("error-1").dataset.strength = strength;
    byId("heads-1").replaceChildren(...heads.map(({ shift, factor, output }) =>
      picture(output, 0, 255, `${minus(shown(factor))} × ${shift ? `pixel at (${shift.map(minus).join(",\u00a0")})` : "the mean"}`)));
    const most = wanted.pixels.reduce((largest, value) => Math.max(largest, Math.abs(value)), 1);
    byId("sums-1").replaceChildren(
      picture(image, 0, 255, "image"),
      picture(sum, -most, most, "sum of the heads"),
      picture(wanted, -most, most, "convolution"),
      picture(difference(sum, wanted), 0, error || 1, error ? `difference, white is ${shown(error)}` : "no difference"),
    );
  };

  // A whole number within the bounds of its field, or null; `wrong` says what is not one.
  const number = (name) => {
    const { valueAsNumber, min, max } = byId(name);
    return Number.isInteger(valueAsNumber) && valueAsNumber >= Number(min) && valueAsNumber <= Number(max) ? valueAsNumber : null;
  };
  const wrong = (names) => names.filter((name) => number(name) === null && !(name === "width-2" && byId(name).value === "" && !byId(name).validity.badInput))
    .map((name) => `${byId(name).labels[0].textContent.trim()} is a whole number from ${byId(name).min} to ${byId(name).max}`);

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

  const rows = (table, head, body) => table.replaceChildren(
    element("thead", {}, element("tr", {}, ...head.map((text) => element("th", { scope: "col" }, text)))),
    element("tbody", {}, ...body.map((cells) => element("tr", {}, ...cells.map((cell) => (cell instanceof Node ? cell : element("td", {}, cell)))))));

  convattn.enough = (model, counts) => {
    if (!model.holdsPatch || model.heads < counts.limit[0]) return "no";
    if (model.heads >= counts.exact[1]) return "exactly";
    if (model.heads >= counts.limit[1]) return model.heads >= (counts.boundedSufficient ?? 0) ? "limit" : "growing";
    return model.heads >= (counts.bounded ?? counts.limit[0]) ? "open" : "bounded: no";
  };

  const figureTwo = () => {
    const refused = wrong(["size-2", "patch-2", "in-2", "out-2", "width-2"]);
    if (refused.length) {
      byId("text-2").textContent = `${refused.join("; ")}.`;
      ["chart-2", "models-2"].forEach((name) => byId(name).replaceChildren());
      return;
    }
    const [size, patch, input, output, width] = ["size-2", "patch-2", "in-2", "out-2", "width-2"].map(number);
    const counts = convattn.headCounts(size, patch, input, output, width);
    const range = ([low, high]) => (low === high ? `${low}` : `${low} to ${high}`);
    byId("text-2").textContent = `K = ${size}, P = ${patch}, ${input} to ${output} channels: ${counts.offsets} token offsets, rank ${counts.rank}. Heads in the limit: ${range(counts.limit)}`
      + `${counts.bounded ? ` (if the value maps stay bounded: ${range([counts.bounded, counts.boundedSufficient ?? counts.limit[1]])})` : ""}; exactly: ${range(counts.exact)}.`;
    byId("text-2").dataset.value = JSON.stringify(counts);
    const all = Array.from({ length: 15 }, (_, k) => [k + 1, convattn.headCounts(k + 1, patch, input, output, width)]);
    const line = (pick) => all.map(([k, found]) => [k, pick(found)]);
    const model = data.models.find((each) => each.model === byId("model").value);
    byId("chart-2").replaceChildren(chart([
      { line: line((found) => found.exact[1]), kind: "two", name: "sufficient, exactly" },
      { line: line((found) => found.exact[0]), kind: "two", name: "necessary, exactly", dashed: true },
      { line: line((found) => found.limit[1]), kind: "one", name: "sufficient, in the limit" },
      { line: line((found) => found.limit[0]), kind: "one", name: "necessary, in the limit", dashed: true },
    ], model ? [{ at: model.heads, name: `${model.model}: ${model.heads} heads` }] : [], "kernel size K", "heads"));
    rows(byId("models-2"), ["layer", "P", "heads", "head width", "in the limit", "exactly", `enough for K = ${size}`],
      data.models.map((each) => {
        const found = convattn.headCounts(size, each.patch, 3, 3, each.width);
        return [each.model, each.patch, each.heads, each.width, range(found.limit), range(found.exact), convattn.enough(each, found)];
      }));
  };

  const layers = [
    ["quadratic heads, bare grid", { encoding: "quadratic", alpha: 1000 }, "bare"],
    ["bias heads, exact, bare grid", { encoding: "bias", leak: 0.5 }, "bare"],
    ["bias heads, exact, ring of zeros", { encoding: "bias", leak: 0.5 }, "zero"],
    ["bias heads, exact, ring that wraps", { encoding: "bias", leak: 0.5 }, "circular"],
  ];
  const paddings = ["zero", "edge", "mean", "circular"];
  convattn.borderErrors = (image, kernel) => {
    const wanted = paddings.map((padding) => convattn.convolution(image, kernel, padding));
    return layers.map(([, form, border]) => {
      const found = convattn.sumOfHeads(convattn.heads(image, kernel, form, border), image);
      return { found, errors: wanted.map((each) => convattn.largestDifference(found, each)) };
    });
  };
  const figureThree = (image, kernel) => {
    const found = convattn.borderErrors(image, kernel);
    const largest = 255 * kernel.flat().reduce((sum, tap) => sum + Math.abs(tap), 0);
    const cell = (error) => {
      const equal = error <= 1e-11 * largest;
      return element("td", { class: equal ? "equal" : "", "data-value": error }, equal ? "equal" : shown(error));
    };
    rows(byId("table-3"), ["layer", ...paddings.map((padding) => `${padding} padding`)],
      layers.map(([name], k) => [element("th", { scope: "row" }, name), ...found[k].errors.map(cell)]));
    const chosen = convattn.convolution(image, kernel, byId("padding-3").value);
    byId("pictures-3").replaceChildren(...layers.map(([name], k) => {
      const gap = difference(found[k].found, chosen);
      const most = found[k].errors[paddings.indexOf(byId("padding-3").value)];
      const equal = most <= 1e-11 * largest;
      return picture(gap, 0, equal ? largest || 1 : most, equal ? `${name}: equal` : `${name}: white is ${shown(most)}`);
    }));
  };

  const figureFour = (kernel) => {
    const [patch, channels] = [Number(byId("patch-4").value), Number(byId("channels-4").value)];
    const { rank, rows: found } = convattn.approximation(kernel, patch, channels);
    const relative = Math.sqrt;
    byId("text-4").textContent = rank === 0 ? "The kernel is zero: no head is needed."
      : `The flattened kernel has rank ${rank}: ${rank + 1} heads are exact at finite scores, and no fewer (S.kernel).`;
    byId("text-4").dataset.value = JSON.stringify({ rank, found });
    byId("chart-4").replaceChildren(chart([
      { line: found.map((row) => [row.heads, relative(row.reached)]), kind: "one", name: "reached with N heads" },
      { line: found.map((row) => [row.heads, relative(row.bound)]), kind: "two", name: "N heads cannot go below", dashed: true },
    ], [], "number of heads N", "relative distance"));
    rows(byId("table-4"), ["heads", "cannot go below", "reached"],
      found.map((row) => [row.heads, shown(relative(row.bound)), shown(relative(row.reached))]));
  };

  let waiting = false;
  const update = () => {
    if (waiting) return;
    waiting = true;
    requestAnimationFrame(() => {
      waiting = false;
      const [image, kernel] = [convattn.readImage(byId("image").value), readKernel()];
      figureOne(image, kernel);
      figureThree(image, kernel);
      figureFour(kernel);
    });
  };

  options(byId("preset"), [...Object.keys(data.kernels), "drawn"]);
  options(byId("image"), Object.keys(data.images));
  byId("model").append(element("option", { value: "" }, "none"));
  options(byId("model"), data.models.map((each) => each.model));
  showKernel(data.kernels[byId("preset").value]);
  byId("preset").addEventListener("change", () => {
    const kernel = data.kernels[byId("preset").value];
    if (kernel) showKernel(kernel);
    update();
  });
  byId("kernel-size").addEventListener("change", () => {
    const inputs = kernelInputs().map((input) => input.valueAsNumber || 0);
    const side = Math.sqrt(inputs.length);
    const kernel = Array.from({ length: side }, (_, i) => inputs.slice(i * side, (i + 1) * side));
    const size = Number(byId("kernel-size").value);
    showKernel(resized(kernel, size));
    byId("preset").value = "drawn";
    update();
  });
  byId("kernel").addEventListener("input", () => { byId("preset").value = "drawn"; update(); });
  byId("form").addEventListener("change", () => { chooseForm(); update(); });
  ["image", "strength", "padding-3", "patch-4", "channels-4"].forEach((name) => byId(name).addEventListener("input", update));
  byId("model").addEventListener("change", () => {
    const model = data.models.find((each) => each.model === byId("model").value);
    if (model) [["patch-2", model.patch], ["in-2", 3], ["out-2", 3], ["width-2", model.width]].forEach(([name, value]) => { byId(name).value = value; });
    figureTwo();
  });
  ["size-2", "patch-2", "in-2", "out-2", "width-2"].forEach((name) => byId(name).addEventListener("input", figureTwo));
  chooseForm();
  update();
  figureTwo();
})();
