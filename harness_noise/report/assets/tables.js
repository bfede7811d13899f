"use strict";
// Sorts a table by a click on its head and filters its rows; without it the page is complete, only still.
for (const box of document.querySelectorAll("[data-table]")) {
  const table = box.querySelector("table"), body = table.tBodies[0], heads = [...table.tHead.rows[0].cells];
  const rows = [...body.rows], tools = box.querySelector(".tools");
  const number = (text) => {
    const found = text.replaceAll("\u2212", "-").match(/-?\d[\d,]*\.?\d*(e[-+]?\d+)?/i);
    return found ? parseFloat(found[0].replaceAll(",", "")) : NaN;
  };
  const key = (row, i, text) => {
    const cell = row.cells[i], value = cell.dataset.value ?? cell.textContent.trim();
    return text ? value : number(value);
  };
  heads.forEach((head, i) => {
    if (head.dataset.still !== undefined) return;
    const button = document.createElement("button");
    button.type = "button";
    button.append(...head.childNodes);
    head.append(button);
    const text = head.classList.contains("text");
    button.addEventListener("click", () => {
      const up = head.getAttribute("aria-sort") !== (text ? "ascending" : "descending");
      const order = (up ? 1 : -1) * (text ? 1 : -1);  // numbers start with the largest
      for (const other of heads) other.removeAttribute("aria-sort");
      head.setAttribute("aria-sort", order > 0 ? "ascending" : "descending");
      const keyed = rows.map((row, at) => [key(row, i, text), at, row]);
      keyed.sort(([x, m], [y, n]) => {
        if (text) return order * x.localeCompare(y, undefined, { numeric: true }) || m - n;
        if (Number.isNaN(x) || Number.isNaN(y)) return Number.isNaN(x) - Number.isNaN(y) || m - n;
        return order * (x - y) || m - n;
      });
      body.append(...keyed.map((item) => item[2]));
    });
  });
  if (!tools) continue;
  tools.hidden = false;
  const input = tools.querySelector("input"), status = tools.querySelector("output");
  input.addEventListener("input", () => {
    const words = input.value.toLowerCase().split(/\s+/).filter(Boolean);
    let shown = 0;
    for (const row of rows) {
      const text = row.textContent.toLowerCase();
      row.hidden = !words.every((word) => text.includes(word));
      shown += !row.hidden;
    }
    status.textContent = words.length ? `${shown} of ${rows.length} rows` : "";
  });
}
