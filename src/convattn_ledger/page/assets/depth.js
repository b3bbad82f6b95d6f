"use strict";
// Two layers of K heads for one of K² (S.depth). Head a of layer 1 writes the image, moved up or
// down, into block a; head b of layer 2 reads all blocks, moved sideways, through column b.

// The image with so many zeros on each side; a negative number takes them off again.
convattn.framed = ({ height, width, channels, pixels }, border) => {
  const [tall, wide] = [height + 2 * border, width + 2 * border];
  const result = new Float64Array(tall * wide * channels);
  for (let y = Math.max(0, -border); y < height - Math.max(0, -border); y += 1) {
    const from = Math.max(0, -border);
    const line = pixels.subarray((y * width + from) * channels, (y * width + width - from) * channels);
    result.set(line, ((y + border) * wide + from + border) * channels);
  }
  return { height: tall, width: wide, channels, pixels: result };
};

// For each head of layer 1 its block, of layer 2 what it reads of each block, the factors of its map
// and its output; `form` is {leak} or {logit}. The last head's gain takes back the leaks of both
// layers, or of layer 2 "alone", or there is "none"; `left` is what then remains, as a multiple of
// `leaked`, the leak of every block, and of the sum of the kernel.
convattn.twoLayers = (image, kernel, form, last = "both") => {
  const reach = (kernel.length - 1) / 2;
  const steps = kernel.map((_, tap) => tap - reach);
  const wide = convattn.framed(image, reach);
  // Layer 1 runs on the frame of zeros, with more above and below; layer 2 on all that it gives.
  const keys = [(wide.height + 2 * reach) * wide.width, wide.height * wide.width];
  const [one, two] = keys.map((number) => convattn.shares(form, number));
  const leak = form.leak ?? 0;
  const [gain, c] = [1 / (1 - leak), leak / (1 - leak)];
  const mean = convattn.means(wide).map((value) => (value * keys[1]) / keys[0]);
  const blocks = steps.map((down) => {
    const attended = convattn.biasHead(convattn.shifted(wide, [down, 0], "zero"), convattn.filled(wide, mean), one);
    return { shift: [down, 0], output: convattn.sumOfHeads([{ factor: gain, output: attended }], attended) };
  });
  const means = blocks.map(({ output }) => convattn.means(output));
  const heads = steps.map((right, b) => ({
    shift: [0, right],
    factors: kernel.map((row) => gain * row[b]),
    reads: blocks.map(({ output }, a) => convattn.framed(
      convattn.biasHead(convattn.shifted(output, [0, right], "zero"), convattn.filled(output, means[a]), two), -reach)),
  }));
  const gamma = keys[0] / keys[1] + c;
  const taken = { both: 1 + 1 / gamma, alone: 1, none: 0 }[last];
  if (form.leak !== undefined && taken) {
    heads.push({
      shift: null,
      factors: kernel.map((row) => -c * taken * row.reduce((sum, tap) => sum + tap, 0)),
      reads: means.map((values) => convattn.filled(image, values)),
    });
  }
  heads.forEach((head) => {
    head.output = convattn.sumOfHeads(head.reads.map((output, a) => ({ factor: head.factors[a], output })), image);
  });
  const sum = convattn.sumOfHeads(heads.map(({ output }) => ({ factor: 1, output })), image);
  return { blocks, heads, sum, c, gamma, left: 1 + gamma * (1 - taken), leaked: mean.map((value) => c * value) };
};
