"use strict";
// The page around the figures: theme, filters, graph, folded parts, printing.

(() => {
  const byId = (name) => document.getElementById(name);

  document.querySelectorAll(".scripted").forEach((node) => { node.hidden = false; });

  // The theme: what the system says, unless chosen; kept for the next visit where that is allowed.
  const storage = { read: () => { try { return localStorage.getItem("theme") ?? ""; } catch { return ""; } },
    write: (value) => { try { localStorage.setItem("theme", value); } catch { /* a file may not store */ } } };
  const setTheme = (value) => {
    if (value) document.documentElement.dataset.theme = value;
    else delete document.documentElement.dataset.theme;
  };
  byId("theme").value = storage.read();
  setTheme(byId("theme").value);
  byId("theme").addEventListener("change", () => { setTheme(byId("theme").value); storage.write(byId("theme").value); });

  // Filters.
  const claims = [...document.querySelectorAll(".claim")].map((node) => ({
    node, id: node.dataset.id ?? "", verdict: node.dataset.verdict, levels: (node.dataset.levels ?? "").split(" "),
    text: node.textContent.toLowerCase(),
  }));
  const order = ["PROVED", "CERTIFIED", "ENCLOSED", "BOUNDED", "TESTED", "MEASURED"];
  const fill = (name, values) => byId(name).append(...[...new Set(values)].filter(Boolean).map((value) => new Option(value)));
  fill("paper", claims.map(({ id }) => id.split(".")[0]));
  fill("verdict", claims.map(({ verdict }) => verdict));
  fill("level", order.filter((level) => claims.some(({ levels }) => levels.includes(level))));
  const filter = () => {
    const words = byId("search").value.toLowerCase().split(/\s+/).filter(Boolean);
    const [paper, verdict, level] = ["paper", "verdict", "level"].map((name) => byId(name).value);
    let visible = 0;
    claims.forEach((claim) => {
      const fits = (!paper || claim.id.startsWith(`${paper}.`)) && (!verdict || claim.verdict === verdict)
        && (!level || claim.levels.includes(level)) && words.every((word) => claim.text.includes(word));
      claim.node.hidden = !fits;
      visible += fits;
    });
    document.querySelectorAll(".paper").forEach((section) => {
      section.hidden = ![...section.querySelectorAll(".claim")].some((node) => !node.hidden);
    });
    byId("count").textContent = `${visible} of ${claims.length} claims`;
  };
  const form = document.querySelector(".filters");
  form.addEventListener("input", filter);
  form.addEventListener("submit", (event) => event.preventDefault());
  form.addEventListener("reset", () => setTimeout(filter));
  filter();

  // What a link leads to is shown: folded parts open, filters give way.
  const reveal = () => {
    const name = location.hash.slice(1);
    const decoded = () => { try { return decodeURIComponent(name); } catch { return name; } };
    const target = name && (byId(name) ?? byId(decoded()));
    if (!target) return;
    if (target.closest(".claim")?.hidden) { form.reset(); setTimeout(() => target.scrollIntoView()); }
    for (let node = target; node; node = node.parentElement) if (node.tagName === "DETAILS") node.open = true;
    target.scrollIntoView();
  };
  addEventListener("hashchange", reveal);
  document.addEventListener("click", (event) => {
    const link = event.target.closest("a[href^='#']");
    if (link && link.getAttribute("href") === location.hash) reveal();
  });
  reveal();

  // The graph: a node, all it stands on, and all that stands on it.
  const uses = JSON.parse(byId("graph-data").textContent);
  const usedBy = {};
  Object.entries(uses).forEach(([name, targets]) => targets.forEach((other) => (usedBy[other] ??= []).push(name)));
  const reach = (from, name) => {
    const reached = new Set([name]);
    const waiting = [name];
    while (waiting.length) (from[waiting.pop()] ?? []).forEach((next) => { if (!reached.has(next)) { reached.add(next); waiting.push(next); } });
    return reached;
  };
  convattn.neighbourhood = (name) => ({ below: reach(uses, name), above: reach(usedBy, name) });
  const graph = document.querySelector(".graph");
  const choose = (name) => {
    graph.classList.toggle("chosen", Boolean(name));
    graph.querySelectorAll(".near").forEach((node) => node.classList.remove("near"));
    byId("graph-text").textContent = "No node is chosen.";
    if (!name) return;
    const { below, above } = convattn.neighbourhood(name);
    graph.querySelectorAll(".node").forEach((node) => node.classList.toggle("near", below.has(node.dataset.node) || above.has(node.dataset.node)));
    graph.querySelectorAll("path").forEach((path) => {
      const { from, to } = path.dataset;
      path.classList.toggle("near", (below.has(from) && below.has(to)) || (above.has(from) && above.has(to)));
    });
    byId("graph-text").textContent = `${name} stands on ${below.size - 1} others; ${above.size - 1} stand on it.`;
  };
  ["mouseover", "focusin"].forEach((kind) => graph.addEventListener(kind, (event) => choose(event.target.closest(".node")?.dataset.node)));
  ["mouseleave", "focusout"].forEach((kind) => graph.addEventListener(kind, () => choose(null)));

  // Printing: everything is unfolded; or one page of errata alone.
  let folded = [];
  addEventListener("beforeprint", () => {
    folded = [...document.querySelectorAll("details:not([open])")].filter((node) => !node.closest("#sources, #environment"));
    folded.forEach((node) => { node.open = true; });
  });
  addEventListener("afterprint", () => {
    folded.forEach((node) => { node.open = false; });
    document.body.classList.remove("one");
    document.querySelectorAll(".errata").forEach((node) => node.classList.remove("chosen"));
  });
  document.querySelectorAll("[data-print]").forEach((button) => button.addEventListener("click", () => {
    document.body.classList.add("one");
    byId(button.dataset.print).classList.add("chosen");
    print();
  }));
})();
