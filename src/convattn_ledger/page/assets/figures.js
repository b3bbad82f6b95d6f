"use strict";
// The figures: they read the controls, compute with convattn's functions and draw.

(() => {
  const data = JSON.parse(document.getElementById("figure-data").textContent);
  convattn.readImage = (name) => {
    const image = data.images[name];
    return { ...image, pixels: Float64Array.from(atob(image.pixels), (letter) => letter.charCodeAt(0)) };
  };

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

  // A slider of powers: its ends and its unit for each form of the layer; `suffix` ends the names of its parts.
  const forms = {
    leak: { symbol: "ε", low: -17, high: -0.01, start: 0.5, marks: Object.entries(data.roundoff).map(([name, value]) => [name, value]) },
    logit: { symbol: "M", low: 0, high: 3, start: 40, marks: Object.entries(data.thresholds).map(([name, [, value]]) => [name, value]) },
    alpha: { symbol: "α", low: -2, high: 3, start: 4, marks: Object.entries(data.thresholds).map(([name, [, value]]) => [name, value]) },
  };
  const strengthAt = ({ low, high }, place) => Number((10 ** (low + ((high - low) * place) / 1000)).toPrecision(2));
  const placeOf = ({ low, high }, strength) => (1000 * (Math.log10(strength) - low)) / (high - low);
  const slider = (suffix) => {
    const part = (name) => byId(name + suffix);
    const choose = () => {
      const form = forms[part("form").value];
      part("strength").value = placeOf(form, form.start);
      part("marks").replaceChildren(...form.marks.sort(([, a], [, b]) => a - b).map(([name, value]) =>
        element("span", { style: `left: ${placeOf(form, value) / 10}%`, class: placeOf(form, value) > 400 ? "late" : "" }, `${name} ${shown(value)}`)));
      part("note").textContent = part("form").value === "leak"
        ? "Marked: below this, ε is lost to rounding in that number format."
        : "Marked: from here on, softmax in that number format is exactly one-hot (C20.alpha46).";
    };
    part("form").addEventListener("change", () => { choose(); update(); });
    part("strength").addEventListener("input", () => update());
    choose();
    return () => {
      const kind = part("form").value;
      const strength = strengthAt(forms[kind], part("strength").valueAsNumber);
      part("strength-label").textContent = `${forms[kind].symbol} = ${shown(strength)}`;
      part("strength").setAttribute("aria-valuetext", shown(strength));
      return [kind, strength];
    };
  };
  const [strengthOne, strengthFive] = ["", "-5"].map(slider);
  convattn.layerForm = (kind, strength) => (kind === "alpha" ? { encoding: "quadratic", alpha: strength } : { encoding: "bias", [kind]: strength });

  const highest = (...images) => images.reduce((all, { pixels }) =>
    pixels.reduce((most, value) => Math.max(most, Math.abs(value)), all), 1);

  // The sum of the heads and the convolution, in `sums-`, and how far apart they are, in `error-`.
  const besideConvolution = (figure, image, sum, expected, strength) => {
    const most = highest(expected);
    const error = convattn.largestDifference(sum, expected);
    const output = byId(`error-${figure}`);
    output.textContent = `${shown(error)} (pixels are 0 to 255)`;
    Object.assign(output.dataset, { value: error, strength });
    byId(`sums-${figure}`).replaceChildren(
      picture(image, 0, 255, "image"),
      picture(sum, -most, most, "sum of the heads"),
      picture(expected, -most, most, "convolution"),
      picture(difference(sum, expected), 0, error || 1, error ? `difference, white is ${shown(error)}` : "no difference"),
    );
  };
  const figureOne = (image, kernel) => {
    const [kind, strength] = strengthOne();
    const heads = convattn.heads(image, kernel, convattn.layerForm(kind, strength), "zero");
    const sum = convattn.sumOfHeads(heads, image);
    const expected = convattn.convolution(image, kernel);
    besideConvolution(1, image, sum, expected, strength);
    const parts = heads.map((head) => convattn.sumOfHeads([head], image));
    const most = highest(...parts);
    byId("heads-1").replaceChildren(...heads.map(({ shift, factor }, head) =>
      picture(parts[head], -most, most, `${minus(shown(factor))} × ${shift ? `pixel at (${shift.map(minus).join(",\u00a0")})` : "the mean"}`)));
  };

  // A whole number within the bounds of its field, or null; `wrong` says what is not one.
  const number = (name) => {
    const { valueAsNumber, min, max } = byId(name);
    return Number.isInteger(valueAsNumber) && valueAsNumber >= Number(min) && valueAsNumber <= Number(max) ? valueAsNumber : null;
  };
  const wrong = (names) => names.filter((name) => number(name) === null && !(name === "width-2" && byId(name).value === "" && !byId(name).validity.badInput))
    .map((name) => `${byId(name).labels[0].textContent.trim()} is a whole number from ${byId(name).min} to ${byId(name).max}`);

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
    const line = (pick) => all.map(([k, needed]) => [k, pick(needed)]);
    const model = data.models.find((each) => each.model === byId("model").value);
    byId("chart-2").replaceChildren(chart([
      { line: line((needed) => needed.exact[1]), kind: "two", name: "sufficient, exactly" },
      { line: line((needed) => needed.exact[0]), kind: "two", name: "necessary, exactly", dashed: true },
      { line: line((needed) => needed.limit[1]), kind: "one", name: "sufficient, in the limit" },
      { line: line((needed) => needed.limit[0]), kind: "one", name: "necessary, in the limit", dashed: true },
    ], model ? [{ at: model.heads, name: `${model.model}: ${model.heads} heads` }] : [], "kernel size K", "heads"));
    rows(byId("models-2"), ["layer", "P", "heads", "head width", "in the limit", "exactly", `enough for K = ${size}`],
      data.models.map((each) => {
        const needed = convattn.headCounts(size, each.patch, 3, 3, each.width);
        return [each.model, each.patch, each.heads, each.width, range(needed.limit), range(needed.exact), convattn.enough(each, needed)];
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
    const expected = paddings.map((padding) => convattn.convolution(image, kernel, padding));
    return layers.map(([, form, border]) => {
      const output = convattn.sumOfHeads(convattn.heads(image, kernel, form, border), image);
      return { output, errors: expected.map((each) => convattn.largestDifference(output, each)) };
    });
  };
  const figureThree = (image, kernel) => {
    const results = convattn.borderErrors(image, kernel);
    const largest = 255 * kernel.flat().reduce((sum, tap) => sum + Math.abs(tap), 0);
    const cell = (error) => {
      const equal = error <= 1e-11 * largest;
      return element("td", { class: equal ? "equal" : "", "data-value": error }, equal ? "equal" : shown(error));
    };
    rows(byId("table-3"), ["layer", ...paddings.map((padding) => `${padding} padding`)],
      layers.map(([name], k) => [element("th", { scope: "row" }, name), ...results[k].errors.map(cell)]));
    const chosen = convattn.convolution(image, kernel, byId("padding-3").value);
    byId("pictures-3").replaceChildren(...layers.map(([name], k) => {
      const gap = difference(results[k].output, chosen);
      const most = results[k].errors[paddings.indexOf(byId("padding-3").value)];
      const equal = most <= 1e-11 * largest;
      return picture(gap, 0, equal ? largest || 1 : most, equal ? `${name}: equal` : `${name}: white is ${shown(most)}`);
    }));
  };

  const figureFour = (kernel) => {
    const [patch, channels] = [Number(byId("patch-4").value), Number(byId("channels-4").value)];
    const { rank, rows: budgets } = convattn.approximation(kernel, patch, channels);
    const relative = Math.sqrt;
    byId("text-4").textContent = rank === 0 ? "The kernel is zero: no head is needed."
      : `The flattened kernel has rank ${rank}: ${rank + 1} heads are exact at finite scores, and no fewer (S.kernel).`;
    byId("text-4").dataset.value = JSON.stringify({ rank, budgets });
    byId("chart-4").replaceChildren(chart([
      { line: budgets.map((row) => [row.heads, relative(row.reached)]), kind: "one", name: "reached with N heads" },
      { line: budgets.map((row) => [row.heads, relative(row.bound)]), kind: "two", name: "N heads cannot go below", dashed: true },
    ], [], "number of heads N", "relative distance"));
    rows(byId("table-4"), ["heads", "cannot go below", "reached"],
      budgets.map((row) => [row.heads, shown(relative(row.bound)), shown(relative(row.reached))]));
  };

  // What leaks, and what of it the last head leaves, in words.
  const leakText = ({ c, gamma, left, leaked }, last, total) => {
    const colours = (factor) => `(${[...leaked].map((value) => minus(shown(factor * value))).join(", ")})`;
    const said = `c = ε/(1 − ε) = ${shown(c)} and γ = ${shown(gamma)}. Every block holds c·m/N₁ = ${colours(1)} too much in red, green and blue: m is the sum of all pixels, N₁ the number of keys of layer 1. `;
    if (last === "both") return `${said}With the gain −c(1 + 1/γ) = ${minus(shown(-c * (1 + 1 / gamma)))} the last head takes back the leaks of both layers.`;
    const remains = last === "alone" ? "With the gain −c the last head takes back the leak of layer 2 alone, and c·m/N₁" : "Without the last head (1\u00a0+\u00a0γ)·c·m/N₁";
    return `${said}${remains} times the sum of the kernel's entries, ${minus(shown(total))}, remains: ${total === 0 ? "nothing for this kernel; choose blur to see something" : colours(left * total)}.`;
  };

  const figureFive = (image, kernel) => {
    const [kind, strength] = strengthFive();
    const [exact, last, size] = [kind === "leak", byId("last-5").value, kernel.length];
    byId("last-5").disabled = !exact;
    const network = convattn.twoLayers(image, kernel, { [kind]: strength }, last);
    const expected = convattn.convolution(image, kernel);
    byId("text-5").textContent = exact ? leakText(network, last, kernel.flat().reduce((sum, tap) => sum + tap, 0))
      : "In the limit of a large M nothing leaks, and no last head is needed.";
    rows(byId("counts-5"), ["", "in the limit", "exactly, at finite scores"], [
      [element("th", { scope: "row" }, "one layer"), size ** 2, size ** 2 + 1],
      [element("th", { scope: "row" }, "two layers"), `${size} + ${size} = ${2 * size}`, `${size} + ${size + 1} = ${2 * size + 1}`]]);
    const name = ([down, right]) => `pixel at (${minus(down)},\u00a0${minus(right)})`;
    const white = highest(...network.blocks.map(({ output }) => output));
    byId("blocks-5").replaceChildren(...network.blocks.map(({ shift, output }, a) => picture(output, 0, white, `block ${a + 1}: ${name(shift)}`)),
      ...(exact ? [picture(convattn.filled(image, network.leaked), 0, white, "the leak in every block")] : []));
    const most = highest(expected, ...network.heads.map(({ output }) => output));
    byId("heads-5").replaceChildren(...network.heads.flatMap(({ shift, factors, reads, output }, b) => {
      const title = shift ? `Head ${b + 1}: column ${b + 1} of the kernel, ${name(shift)}` : "The last head: the mean of every block";
      return [element("p", {}, title), element("div", { class: "pictures small", role: "group", "aria-label": title },
        ...reads.map((read, a) => picture(read, 0, white, `${minus(shown(factors[a]))} × block\u00a0${a + 1}`)),
        picture(output, -most, most, `head\u00a0${b + 1} adds`))];
    }));
    besideConvolution(5, image, network.sum, expected, strength);
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
      figureFive(image, kernel);
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
  ["image", "last-5", "padding-3", "patch-4", "channels-4"].forEach((name) => byId(name).addEventListener("input", update));
  byId("model").addEventListener("change", () => {
    const model = data.models.find((each) => each.model === byId("model").value);
    if (model) [["patch-2", model.patch], ["in-2", 3], ["out-2", 3], ["width-2", model.width]].forEach(([name, value]) => { byId(name).value = value; });
    figureTwo();
  });
  ["size-2", "patch-2", "in-2", "out-2", "width-2"].forEach((name) => byId(name).addEventListener("input", figureTwo));
  update();
  figureTwo();
})();
