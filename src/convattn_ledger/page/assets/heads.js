"use strict";
// How many heads a convolution takes: two axes, square, undilated, K ≤ 15, for which the rank of the
// flattened kernel is min(T, (2P - 1)²·D); and how near fewer heads come to a given kernel.

// How many token offsets an axis has on each side: before and behind.
const reaches = (size, patch) => [Math.ceil(Math.floor((size - 1) / 2) / patch), Math.ceil(Math.floor(size / 2) / patch)];

// For each offset of an axis, how many pixels of a patch the kernel can read there; and how many it
// reads at offsets other than 0.
const supports = (size, patch) => {
  const before = Math.floor((size - 1) / 2);
  const [first, last] = [new Map(), new Map()];
  for (let tap = -before; tap < size - before; tap += 1) {
    const offset = Math.floor(tap / patch);
    const rest = tap - offset * patch;
    first.set(offset, Math.min(rest, first.get(offset) ?? patch));
    if (rest) last.set(offset + 1, Math.max(rest, last.get(offset + 1) ?? 0));
  }
  const away = (edges, least) => Math.max(0, ...[...edges].filter(([offset]) => offset).map(([, rest]) => least(rest)));
  const offsets = [...new Set([...first.keys(), ...last.keys()])].sort((a, b) => (a !== 0) - (b !== 0)); // 0 is the first
  return {
    used: offsets.map((offset) => Math.min(patch, patch - (first.get(offset) ?? patch) + (last.get(offset) ?? 0))),
    shared: Math.min(patch, away(first, (rest) => patch - rest) + away(last, (rest) => rest)),
  };
};

// S.width: heads of this width that share the places of the coordinates, in the limit and exactly.
// The widths are those of the offsets other than 0; `read` of the coordinates are read there.
const narrowHeads = (widths, coordinates, read, width) => {
  const parts = (number) => Math.ceil(number / width);
  const own = widths.reduce((sum, each) => sum + parts(each), 0);
  const spare = own * width - widths.reduce((sum, each) => sum + each, 0);
  const limit = own + parts(coordinates - Math.min(spare, coordinates - read));
  const atToken = Math.max(2, parts(2 * read));
  const spares = [atToken * width - 2 * read, ...widths.filter((one) => one > width).map((one) => parts(one) * width - one)];
  let missing = coordinates - read - spares.reduce((sum, spare) => sum + Math.floor(spare / 2), 0);
  let odd = spares.filter((spare) => width % 2 && spare % 2).length; // groups whose next head gains (d + 1)/2
  let more = 0;
  for (const each of widths.filter((one) => one <= width).sort((a, b) => a - b)) {
    const gain = width - Math.ceil(each / 2);
    if (missing > 0 && 2 * gain >= width) { more += 1; missing -= gain; odd += width % 2 && each % 2; }
  }
  for (; missing > 0 && odd > 0; odd -= 1) { more += 1; missing -= (width + 1) / 2; }
  return [limit, own + atToken + more + Math.max(0, parts(2 * missing))];
};

// Necessary and sufficient heads, in the limit and exactly: the numbers of convattn.heads.
convattn.headCounts = (size, patch, inChannels, outChannels, width = null) => {
  const pairs = inChannels * outChannels;
  const axis = reaches(size, patch).reduce((sum, reach) => sum + reach, 1);
  const offsets = axis ** 2;
  const rankOf = (channelPairs) => Math.min(offsets, (2 * patch - 1) ** 2 * channelPairs);
  const rank = rankOf(pairs);
  const full = rank === offsets;
  let limit = full ? [rank, offsets] : [rank + 1, rank + 1];
  let exact = [rank + 1, full ? offsets + 1 : rank + 1];
  let [bounded, boundedSufficient] = [null, null];
  if (width !== null) {
    const parts = (number) => Math.ceil(number / width);
    const narrow = Math.min(inChannels, outChannels);
    const pixels = patch ** 2;
    const apart = (1 + Math.floor((size - 1) / patch)) ** 2;
    const ranks = (taps) => [pixels * Math.min(inChannels, outChannels * taps), pixels * Math.min(outChannels, inChannels * taps)];
    const free = pairs - (narrow * (narrow + 1)) / 2;
    const rows = free ? rankOf(free) - 1 : 0;
    const whole = parts(pixels * narrow);
    const balanced = patch === 1 ? ranks(size ** 2 - 1) : [0, 0];
    const { used, shared } = supports(size, patch);
    const [, ...widths] = used.flatMap((a) => used.map((b) => a * b * narrow));
    const coordinates = pixels * narrow;
    const places = narrowHeads(widths, coordinates, coordinates - (patch - shared) ** 2 * narrow, width);
    const split = widths.reduce((sum, each) => sum + parts(each), whole);
    const [input, output] = ranks(apart);
    bounded = Math.max(rows + whole, parts(balanced[0] + balanced[1]));
    exact = [Math.max(exact[0], parts(input + output), rows + 1 + whole), Math.min(places[1], exact[1] * whole)];
    limit = [Math.max(limit[0], parts(Math.max(input, output))), Math.min(places[0], limit[1] * whole, exact[1])];
    boundedSufficient = Math.min(split, exact[1]);
    if (bounded <= limit[0]) bounded = null;
    if (boundedSufficient <= limit[1]) boundedSufficient = null;
  }
  return { offsets, rank, limit, exact, bounded, boundedSufficient };
};

// The kernel of a channel pair: the given one, turned by so many quarters.
convattn.turned = (kernel, quarters) => {
  let turned = kernel;
  for (let turn = 0; turn < quarters % 4; turn += 1) {
    turned = turned.map((_, i) => turned.map((row) => row[turned.length - 1 - i]));
  }
  return turned;
};

// The rows of the flattened kernel F for one channel pair, each with the number of its copies.
const rowsOf = (kernel, patch) => {
  const reach = (kernel.length - 1) / 2;
  const most = Math.ceil(reach / patch);
  const result = [];
  for (let down = 1 - patch; down < patch; down += 1) {
    for (let right = 1 - patch; right < patch; right += 1) {
      const row = [];
      for (let a = -most; a <= most; a += 1) {
        for (let b = -most; b <= most; b += 1) row.push(kernel[patch * a + down + reach]?.[patch * b + right + reach] ?? 0);
      }
      result.push({ row, count: (patch - Math.abs(down)) * (patch - Math.abs(right)) });
    }
  }
  return result;
};

const pairRows = (kernel, patch, channels) =>
  Array.from({ length: channels ** 2 }, (_, pair) => rowsOf(convattn.turned(kernel, pair), patch)).flat();

// A double as an integer, all with one power of two: exact.
const exactIntegers = (rows) => {
  const parts = (value) => {
    if (value === 0) return [0n, 0];
    let exponent = Math.max(Math.floor(Math.log2(Math.abs(value))) - 52, -1074);
    let scaled = value / 2 ** exponent;
    while (!Number.isInteger(scaled)) { scaled *= 2; exponent -= 1; }
    return [BigInt(scaled), exponent];
  };
  const all = rows.map((row) => row.map(parts));
  const low = Math.min(...all.flat().map(([, exponent]) => exponent));
  return all.map((row) => row.map(([whole, exponent]) => whole << BigInt(exponent - low)));
};

// The rank of F, exactly: Bareiss' elimination in integers.
convattn.exactRank = (kernel, patch, channels) => {
  const rows = exactIntegers(pairRows(kernel, patch, channels).map(({ row }) => row));
  let rank = 0;
  let before = 1n;
  for (let column = 0; column < rows[0].length; column += 1) {
    const at = rows.findIndex((row, k) => k >= rank && row[column] !== 0n);
    if (at < 0) continue;
    [rows[rank], rows[at]] = [rows[at], rows[rank]];
    for (let k = rank + 1; k < rows.length; k += 1) {
      const factor = rows[k][column];
      rows[k] = rows[k].map((value, j) => (value * rows[rank][column] - factor * rows[rank][j]) / before);
    }
    before = rows[rank][column];
    rank += 1;
  }
  return rank;
};

// The Gram matrix FᵀF of the flattened kernel; pair (i, j) of the channels has the kernel turned by
// i·channels + j quarters.
convattn.gram = (kernel, patch, channels) => {
  const rows = pairRows(kernel, patch, channels);
  const size = rows[0].row.length;
  const gram = Array.from({ length: size }, () => new Float64Array(size));
  rows.forEach(({ row, count }) => row.forEach((x, i) => row.forEach((y, j) => { gram[i][j] += count * x * y; })));
  return gram;
};

// The eigenvalues of a symmetric matrix, falling, by Jacobi's rotations.
convattn.eigenvalues = (matrix) => {
  const a = matrix.map((row) => Float64Array.from(row));
  const size = a.length;
  for (let sweep = 0; sweep < 60; sweep += 1) {
    let rest = 0;
    for (let p = 0; p < size; p += 1) for (let q = 0; q < p; q += 1) rest += a[p][q] ** 2;
    if (rest < 1e-300) break;
    for (let p = 0; p < size; p += 1) {
      for (let q = p + 1; q < size; q += 1) {
        if (a[p][q] === 0) continue;
        const theta = (a[q][q] - a[p][p]) / (2 * a[p][q]);
        const t = (theta >= 0 ? 1 : -1) / (Math.abs(theta) + Math.hypot(theta, 1));
        const c = 1 / Math.hypot(t, 1);
        const s = t * c;
        for (let k = 0; k < size; k += 1) [a[k][p], a[k][q]] = [c * a[k][p] - s * a[k][q], s * a[k][p] + c * a[k][q]];
        for (let k = 0; k < size; k += 1) [a[p][k], a[q][k]] = [c * a[p][k] - s * a[q][k], s * a[p][k] + c * a[q][k]];
      }
    }
  }
  return Array.from(a, (row, k) => Math.max(0, row[k])).sort((x, y) => y - x);
};

// For N = 1, 2, …: the least squared distance that N heads cannot go below, and one that they reach,
// relative to the kernel's own; the rank is exact, the distances are to double precision.
convattn.approximation = (kernel, patch, channels) => {
  const largest = Math.max(...kernel.flat().map(Math.abs));
  const rank = largest === 0 ? 0 : convattn.exactRank(kernel, patch, channels);
  const scaled = kernel.map((row) => row.map((tap) => (largest === 0 ? 0 : tap / largest)));
  const values = convattn.eigenvalues(convattn.gram(scaled, patch, channels)).slice(0, rank);
  const total = values.reduce((sum, value) => sum + value, 0);
  const tails = values.map((_, n) => values.slice(n).reduce((sum, value) => sum + value, 0) / total).concat(0);
  const heads = Array.from({ length: rank + 1 }, (_, n) => n + 1);
  return { rank, rows: heads.map((n) => ({ heads: n, bound: tails[Math.min(n, rank)], reached: tails[n - 1] })) };
};
