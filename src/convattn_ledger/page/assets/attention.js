"use strict";
// The mathematics of the figures: no document, no drawing. An image is {height, width, channels,
// pixels}, row-major; a kernel is a square array of rows, applied to each channel by itself.

const convattn = {};

convattn.offsets = (kernel) => {
  const reach = (kernel.length - 1) / 2;
  return kernel.flatMap((row, i) => row.map((tap, j) => ({ tap, shift: [i - reach, j - reach] })));
};

const blank = (image) => ({ ...image, pixels: new Float64Array(image.pixels.length) });

// The key that a query reads where its target lies outside, or -1 for none.
const outside = {
  zero: () => -1,
  edge: (at, size) => Math.min(Math.max(at, 0), size - 1),
  circular: (at, size) => ((at % size) + size) % size,
};

convattn.means = (image) => {
  const { height, width, channels, pixels } = image;
  const sums = new Float64Array(channels);
  pixels.forEach((value, place) => { sums[place % channels] += value; });
  return sums.map((sum) => sum / (height * width));
};

// The image moved so that each pixel shows the one at `shift` from it, filled by a padding.
convattn.shifted = (image, [down, right], padding) => {
  const { height, width, channels, pixels } = image;
  const result = blank(image);
  const means = padding === "mean" ? convattn.means(image) : null;
  for (let y = 0; y < height; y += 1) {
    for (let x = 0; x < width; x += 1) {
      let [row, column] = [y + down, x + right];
      const inside = row >= 0 && row < height && column >= 0 && column < width;
      if (!inside && !means) {
        [row, column] = [outside[padding](row, height), outside[padding](column, width)];
      }
      for (let c = 0; c < channels; c += 1) {
        const place = (y * width + x) * channels + c;
        if (!inside && means) result.pixels[place] = means[c];
        else if (row >= 0 && column >= 0) result.pixels[place] = pixels[(row * width + column) * channels + c];
      }
    }
  }
  return result;
};

const add = (total, image, factor) => {
  image.pixels.forEach((value, place) => { total.pixels[place] += factor * value; });
  return total;
};

convattn.convolution = (image, kernel, padding = "zero") =>
  convattn.offsets(kernel).reduce(
    (total, { tap, shift }) => add(total, convattn.shifted(image, shift, padding), tap), blank(image));

// Rows of attention of one axis of a quadratic head: softmax of -α(key - query - center)².
const axisWeights = (size, ring, alpha, center) => {
  const rows = [];
  for (let query = 0; query < size; query += 1) {
    const scores = [];
    for (let key = -ring; key < size + ring; key += 1) scores.push(-alpha * (key - query - center) ** 2);
    const most = Math.max(...scores);
    const powers = scores.map((score) => Math.exp(score - most));
    const total = powers.reduce((sum, power) => sum + power, 0);
    rows.push(powers.map((power) => power / total));
  }
  return rows;
};

// A quadratic head: the weights factor over the axes, the keys of a ring hold zeros.
const quadraticHead = (image, alpha, [down, right], ring) => {
  const { height, width, channels, pixels } = image;
  const rows = axisWeights(height, ring, alpha, down);
  const columns = axisWeights(width, ring, alpha, right);
  const between = new Float64Array(pixels.length);
  const result = blank(image);
  for (let y = 0; y < height; y += 1) {
    for (let key = 0; key < height; key += 1) {
      const weight = rows[y][key + ring];
      if (weight === 0) continue;
      for (let at = 0; at < width * channels; at += 1) {
        between[y * width * channels + at] += weight * pixels[key * width * channels + at];
      }
    }
  }
  for (let x = 0; x < width; x += 1) {
    for (let key = 0; key < width; key += 1) {
      const weight = columns[x][key + ring];
      if (weight === 0) continue;
      for (let y = 0; y < height; y += 1) {
        for (let c = 0; c < channels; c += 1) {
          result.pixels[(y * width + x) * channels + c] += weight * between[(y * width + key) * channels + c];
        }
      }
    }
  }
  return result;
};

// What a bias head gives its target, and the share of the mean of all keys: M at the target, 0 else.
convattn.biasShares = (logit, keys) => {
  const other = Math.exp(-logit);
  const total = 1 + (keys - 1) * other;
  return { target: (1 - other) / total, uniform: (keys * other) / total };
};

// The same of a layer {logit}, or {leak}, the share of the mean.
convattn.shares = ({ leak, logit }, keys) =>
  convattn.biasShares(leak === undefined ? logit : Math.log1p(keys * (1 / leak - 1)), keys);

// What a bias head sees: its target, and the mean of all keys.
convattn.biasHead = (attended, mean, { target, uniform }) => add(add(blank(attended), attended, target), mean, uniform);

// The heads of a layer: for each its output image, the factor of its value map, and its shift.
// `form` is {encoding: "quadratic", alpha}, {encoding: "bias", logit} or {encoding: "bias", leak};
// `border` is "bare", or what fills the ring: "zero" or "circular".
convattn.heads = (image, kernel, form, border) => {
  const ring = border === "bare" ? 0 : (kernel.length - 1) / 2;
  const offsets = convattn.offsets(kernel);
  if (form.encoding === "quadratic") {
    return offsets.map(({ tap, shift }) =>
      ({ shift, factor: tap, output: quadraticHead(image, form.alpha, shift, ring) }));
  }
  const { height, width } = image;
  const keys = (height + 2 * ring) * (width + 2 * ring);
  const exact = form.leak !== undefined;
  const shares = convattn.shares(form, keys);
  const mean = convattn.keyMean(image, ring, border);
  const heads = offsets.map(({ tap, shift }) => {
    const padding = border === "bare" ? "mean" : border;
    const output = convattn.biasHead(convattn.shifted(image, shift, padding), mean, shares);
    return { shift, factor: exact ? tap / (1 - form.leak) : tap, output };
  });
  if (exact) {
    const sum = offsets.reduce((total, { tap }) => total + tap, 0);
    heads.push({ shift: null, factor: (-form.leak / (1 - form.leak)) * sum, output: mean });
  }
  return heads;
};

// These values of the channels at every query.
convattn.filled = (image, values) =>
  ({ ...image, pixels: image.pixels.map((_, place) => values[place % image.channels]) });

// The mean over all keys, those of the ring included, at every query.
convattn.keyMean = (image, ring, border) => {
  const { height, width, channels, pixels } = image;
  const sums = new Float64Array(channels);
  let keys = 0;
  for (let y = -ring; y < height + ring; y += 1) {
    for (let x = -ring; x < width + ring; x += 1) {
      keys += 1;
      const inside = y >= 0 && y < height && x >= 0 && x < width;
      if (!inside && border !== "circular") continue;
      const place = (outside.circular(y, height) * width + outside.circular(x, width)) * channels;
      for (let c = 0; c < channels; c += 1) sums[c] += pixels[place + c];
    }
  }
  return convattn.filled(image, sums.map((sum) => sum / keys));
};

convattn.sumOfHeads = (heads, image) =>
  heads.reduce((total, { factor, output }) => add(total, output, factor), blank(image));

convattn.largestDifference = (one, other) =>
  one.pixels.reduce((most, value, place) => Math.max(most, Math.abs(value - other.pixels[place])), 0);
