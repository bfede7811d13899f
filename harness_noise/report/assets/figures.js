"use strict";
// Figures that answer: hover, focus and arrow keys show what a mark is, a click marks its models in every figure.
// Without this script the marks still carry their titles.
const page = (() => {
  const svgs = () => [...document.querySelectorAll("figure svg, .figure svg")];
  const tip = document.createElement("output");
  tip.className = "tip";
  tip.hidden = true;
  tip.setAttribute("aria-live", "polite");
  document.querySelector("main").append(tip);
  let marked = [], names = [], points = () => null, describe = () => "", chosen = () => {};
  const bar = document.querySelector(".marked");

  const words = (mark) => {
    const title = mark.querySelector(":scope > title");
    if (title) { mark.dataset.t = title.textContent; title.remove(); }  // the browser's own tip would come on top
    return mark.dataset.t;
  };
  const markOf = (node) => {
    for (let at = node; at && at.tagName !== "svg"; at = at.parentNode)
      if (at.dataset?.t || at.querySelector?.(":scope > title")) return at;
    return null;
  };
  const show = (text, x, y) => {
    tip.textContent = text;
    tip.hidden = !text;
    if (!text) return;
    const box = tip.getBoundingClientRect(), wide = document.documentElement.clientWidth;
    tip.style.left = `${Math.max(8, Math.min(x + 12, wide - box.width - 8))}px`;
    tip.style.top = `${y + 18 + box.height > innerHeight ? y - box.height - 10 : y + 18}px`;
  };
  const hide = () => {
    show("");
    for (const old of document.querySelectorAll(".at")) old.classList.remove("at");
    for (const ring of document.querySelectorAll(".ring")) ring.remove();
  };

  const ring = (svg, x, y, kind) => {
    const made = document.createElementNS("http://www.w3.org/2000/svg", "circle");
    for (const [key, value] of Object.entries({ cx: x, cy: y, r: 5.5, class: kind })) made.setAttribute(key, value);
    svg.append(made);
    return made;
  };
  const inUnits = (svg, event) => {
    const place = new DOMPoint(event.clientX, event.clientY).matrixTransform(svg.getScreenCTM().inverse());
    return [place.x, place.y];
  };
  const nearest = (svg, event) => {  // of the pairs that are one picture
    const held = points(svg.dataset.figure);
    if (!held) return null;
    const [x, y] = inUnits(svg, event);
    let best = 36, found = null;
    for (let i = 0; i < held.x.length; i++) {
      const far = (held.x[i] / 100 - x) ** 2 + (held.y[i] / 100 - y) ** 2;
      if (far < best) { best = far; found = i; }
    }
    return found === null ? null : { row: held.rows ? held.rows[found] : found, x: held.x[found] / 100, y: held.y[found] / 100 };
  };

  const about = (node) => (node.closest("[data-m]")?.dataset.m ?? "").split(" ").filter(Boolean).map(Number);
  const on = (ids) => marked.length === 1 ? ids.includes(marked[0]) : ids.every((id) => marked.includes(id));
  const paint = () => {
    for (const node of document.querySelectorAll("[data-m]"))
      node.classList.toggle("on", marked.length > 0 && on(node.dataset.m.split(" ").map(Number)));
    for (const old of document.querySelectorAll(".over")) old.remove();
    for (const svg of svgs()) {
      svg.classList.toggle("some", marked.length > 0 && svg.querySelector("[data-m]") !== null);
      const held = marked.length ? points(svg.dataset.figure) : null;
      for (let i = 0; held && i < held.x.length; i++)
        if (on(held.models(i))) ring(svg, held.x[i] / 100, held.y[i] / 100, "over");
    }
    if (!bar) return;
    bar.hidden = !marked.length;
    bar.querySelector("output").textContent = marked.map((id) => names[id] ?? `model ${id + 1}`).join(" and ");
  };
  const mark = (ids, quiet) => {
    marked = String(ids) === String(marked) ? [] : ids;
    paint();
    if (!quiet && marked.length) chosen(marked);
  };

  document.addEventListener("pointermove", (event) => {
    const svg = event.target.closest?.("figure svg, .figure svg");
    if (!svg) { if (!tip.hidden && !document.activeElement.matches("svg")) hide(); return; }
    const found = markOf(event.target);
    hide();
    if (found) { found.classList.add("at"); show(words(found), event.clientX, event.clientY); return; }
    const pair = nearest(svg, event);
    if (pair) { ring(svg, pair.x, pair.y, "ring"); show(describe(pair.row), event.clientX, event.clientY); }
  });
  document.addEventListener("click", (event) => {
    const svg = event.target.closest?.("figure svg, .figure svg");
    if (!svg) return;
    const ids = about(event.target);
    const found = markOf(event.target);
    if (found) { hide(); found.classList.add("at"); show(words(found), event.clientX, event.clientY); }  // a finger does not hover
    if (ids.length) { mark(ids); return; }
    const pair = nearest(svg, event);
    if (pair) mark(points(svg.dataset.figure).models(null, pair.row));
    else if (marked.length) mark([]);
  });
  bar?.querySelector("button").addEventListener("click", () => mark([]));

  const marks = (svg) => [...svg.querySelectorAll("use, rect, g.iv, path, circle")]
    .filter((node) => node.dataset.t || node.querySelector(":scope > title"))
    .map((node) => [node, node.getBoundingClientRect()])
    .sort(([, a], [, b]) => a.left - b.left || a.top - b.top || a.right - b.right)
    .map(([node]) => node);
  const rows = (svg) => svg.querySelector("g.iv") ? marks(svg).filter((node) => node.matches("g.iv"))
    .sort((a, b) => a.getBoundingClientRect().top - b.getBoundingClientRect().top) : marks(svg);
  const step = (svg, by) => {
    const all = rows(svg), at = all.findIndex((node) => node.classList.contains("at"));
    const next = all[by === Infinity ? all.length - 1 : by === -Infinity ? 0 : Math.max(0, Math.min(all.length - 1, at + by))];
    hide();
    if (!next) return;
    next.classList.add("at");
    const box = next.getBoundingClientRect();
    show(words(next), box.left + box.width / 2, box.bottom - 8);
  };
  const saved = (svg) => {  // with the colours that it has here, in a file of its own
    const copy = svg.cloneNode(true), style = getComputedStyle(document.documentElement);
    for (const node of [copy, ...copy.querySelectorAll("*")])
      for (const name of ["class", "tabindex", "data-m", "data-t", "data-awake", "aria-roledescription"]) node.removeAttribute(name);
    for (const [name, value] of Object.entries({ xmlns: "http://www.w3.org/2000/svg", role: "img", width: 840,
      style: `font: 12px system-ui, sans-serif; background: ${style.getPropertyValue("--paper")}` })) copy.setAttribute(name, value);
    return new XMLSerializer().serializeToString(copy).replace(/var\((--[\w-]+)\)/g, (_, name) => style.getPropertyValue(name).trim());
  };
  const keys = { ArrowRight: 1, ArrowDown: 1, ArrowLeft: -1, ArrowUp: -1, PageDown: 10, PageUp: -10, Home: -Infinity, End: Infinity };
  const wake = (svg) => {
    if ("awake" in svg.dataset || !svg.querySelector("title")) return;
    svg.dataset.awake = "";
    const figure = svg.closest("figure"), title = svg.getAttribute("aria-label").split(". ")[0];
    (figure.querySelector("figcaption") ?? figure).append(" ", button("SVG", `Save the figure ${title} as SVG`,
      () => save(`${document.title}-${svg.dataset.figure}.svg`, saved(svg), "image/svg+xml")));
    svg.setAttribute("role", "application");
    svg.setAttribute("aria-roledescription", "figure, arrow keys move over its marks");
    svg.tabIndex = 0;
    svg.addEventListener("focus", () => { if (svg.matches(":focus-visible")) step(svg, 1); });
    svg.addEventListener("blur", hide);
    svg.addEventListener("keydown", (event) => {
      if (event.key in keys) step(svg, keys[event.key]);
      else if (event.key === "Enter" || event.key === " ") {
        const ids = about(svg.querySelector(".at") ?? svg);
        if (ids.length) mark(ids);
      } else if (event.key === "Escape") { hide(); if (marked.length) mark([]); }
      else return;
      event.preventDefault();
    });
  };
  svgs().forEach(wake);
  for (const hint of document.querySelectorAll(".hint")) hint.hidden = false;

  // of several details that a page holds, the one that is chosen
  for (const select of document.querySelectorAll("select[data-choose]")) {
    select.closest(".tools").hidden = false;
    const choose = () => {
      for (const detail of document.querySelectorAll("[data-detail]")) detail.hidden = detail.id !== select.value;
    };
    select.addEventListener("change", choose);
    choose();
  }
  return {
    wake: () => { svgs().forEach(wake); paint(); }, mark,
    use: (held) => { ({ names, points, describe, chosen } = held); },
  };
})();
