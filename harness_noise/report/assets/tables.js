"use strict";
// Sorts a table by a click on its head, filters its rows, saves it; without it the page is complete, only still.
const button = (text, words, done) => {
  const made = document.createElement("button");
  made.type = "button";
  made.className = "small";
  made.textContent = text;
  made.setAttribute("aria-label", words);
  made.addEventListener("click", done);
  return made;
};
const save = (name, text, type) => {
  const link = document.createElement("a");
  link.href = URL.createObjectURL(new Blob([text], { type }));
  link.download = name.toLowerCase().replace(/[^a-z0-9.]+/g, "-").replace(/^-|-(?=\.)/g, "");
  link.click();
  setTimeout(() => URL.revokeObjectURL(link.href), 1000);
};
{
  const held = document.getElementById("result"), tools = document.querySelector("[data-save]");
  if (held && tools) {
    tools.hidden = false;
    tools.append(button("JSON", "Save the result as JSON", () => save(`${document.title}.json`, held.textContent, "application/json")));
  }
}
for (const box of document.querySelectorAll("[data-table]")) {
  const table = box.querySelector("table"), body = table.tBodies[0], heads = [...table.tHead.rows[0].cells];
  const rows = [...body.rows], name = box.querySelector("[role=region]").getAttribute("aria-label");
  let tools = box.querySelector(".tools");
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
    const sorter = document.createElement("button");
    sorter.type = "button";
    sorter.append(...head.childNodes);
    head.append(sorter);
    const text = head.classList.contains("text");
    sorter.addEventListener("click", () => {
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
  if (!tools) {
    tools = document.createElement("div");
    tools.className = "tools";
    box.prepend(tools);
  }
  tools.hidden = false;
  const kept = heads.flatMap((head, i) => head.dataset.still === undefined ? [i] : []);
  const quoted = (cell) => {  // what a spreadsheet would run is quoted; a number stays one
    const text = cell.textContent.trim().replaceAll("\u2212", "-").replace(/^\u2013$/, "");
    const safe = /^[=+@-]/.test(text) && Number.isNaN(Number(text)) ? `'${text}` : text;
    return /[",\n]/.test(safe) ? `"${safe.replaceAll('"', '""')}"` : safe;
  };
  tools.append(button("CSV", `Save ${name} as CSV, as it is shown`, () => {
    const lines = [table.tHead.rows[0], ...[...body.rows].filter((row) => !row.hidden)];
    save(`${document.title}-${name}.csv`, lines.map((row) => kept.map((i) => quoted(row.cells[i])).join(",")).join("\n") + "\n", "text/csv");
  }));
  const input = tools.querySelector("input"), status = tools.querySelector("output");
  input?.addEventListener("input", () => {
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
