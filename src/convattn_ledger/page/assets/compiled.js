"use strict";
// Figure 6: a network beside the vision transformer that it is compiled into; all of it is data.

(() => {
  const { compiled } = JSON.parse(document.getElementById("figure-data").textContent);
  const decoded = (map, which) => ({ ...map, pixels: Float64Array.from(atob(map[which]), (letter) => letter.charCodeAt(0)) });
  const draw = () => {
    const { size, difference, bound, largest, maps } = compiled.find(({ name }) => name === byId("constants-6").value);
    byId("text-6").textContent = `This is ${size}. Its logits differ by ${shown(difference)} of ${shown(largest)}; derived is at most ${shown(bound)}.`;
    byId("text-6").dataset.value = JSON.stringify({ difference, bound });
    byId("maps-6").replaceChildren(...maps.map((map) => {
      const title = map.blocks ? `tokens after block ${map.blocks}` : "tokens at first";
      return element("div", { class: "pictures wide", role: "group", "aria-label": `${map.name}: ${title}` },
        picture(decoded(map, "network"), 0, 255, `network: ${map.name}`),
        picture(decoded(map, "transformer"), 0, 255, title),
        picture(decoded(map, "gap"), 0, 255, map.difference ? `difference: white is ${shown(map.difference)}` : "no difference"));
    }));
  };
  options(byId("constants-6"), compiled.map(({ name }) => name));
  byId("constants-6").addEventListener("input", draw);
  draw();
})();
