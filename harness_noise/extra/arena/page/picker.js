"use strict";
// Any two models of an arena: their difference, its slices, its questions, from the numbers that the page holds.
(() => {
  const block = document.getElementById("board");
  if (!block) return;
  const data = JSON.parse(block.textContent);
  const bytes = (text) => Uint8Array.from(atob(text), (c) => c.charCodeAt(0)).buffer;
  const kept = new Map();
  const array = (key, text, Kind) => {
    if (!kept.has(key)) kept.set(key, new Kind(bytes(text)));
    return kept.get(key);
  };
  const floats = (key) => array(key, data[key], Float32Array);
  const P = data.n_pairs;
  const A = array("a", data.a, Uint16Array), B = array("b", data.b, Uint16Array);
  const ends = (row) => [A[row], B[row]];
  const find = (a, b) => {  // the row of a pair, and whether it is there as B − A
    for (let i = 0; i < P; i++) {
      if (A[i] === a && B[i] === b) return [i, 1];
      if (A[i] === b && B[i] === a) return [i, -1];
    }
    return [-1, 1];
  };

  const digitsOf = (size) => size > 0 ? Math.min(6, Math.max(1, 1 - Math.floor(Math.log10(size)))) : 3;
  const T = data.times, unit = T === 1 ? "" : " points", axis = T === 1 ? "" : ", points";
  const number = (x, digits) => {  // per cent and points of 0/1 scores
    if (!Number.isFinite(x)) return "–";
    const text = (T * x * (1 + 1e-12)).toFixed(T === 1 ? digits : Math.max(0, digits - 2));
    return (Number(text) ? text : text.replace("-", "")).replace("-", "−");
  };
  const mean = (x, digits) => `${number(x, digits)}${T === 1 ? "" : "%"}`;
  const p = (x) => !Number.isFinite(x) ? "–" : x < 0.0001 ? "< 0.0001" : `= ${x.toFixed(x < 0.001 ? 4 : 3)}`;
  const interval = (low, high, digits) => Number.isFinite(low) && Number.isFinite(high)
    ? `[${number(low, digits)}, ${number(high, digits)}]` : "–";
  const turned = (word, sign) => sign > 0 ? word : word.replace(/^[AB](?= better)/, (c) => c === "A" ? "B" : "A");
  const read = (verdict) => verdict === "not separable" ? "not shown to differ" : verdict;
  const facts = (row, sign) => {
    const [low, high] = sign > 0 ? [floats("low")[row], floats("high")[row]] : [-floats("high")[row], -floats("low")[row]];
    const diff = sign * floats("diff")[row], se = floats("se")[row], digits = digitsOf(se);
    const verdict = turned(data.words[array("verdict", data.verdict, Uint8Array)[row]], sign);
    return { diff, low, high, se, digits, verdict, p: floats("p")[row], total: floats("total")[row] };
  };
  const describe = (row) => {
    const [a, b] = ends(row), f = facts(row, 1);
    const total = Number.isFinite(f.total) ? `, SE (1 answer) ${number(f.total, f.digits)}` : "";
    return `${data.names[a]} − ${data.names[b]}: ${number(f.diff, f.digits)}${unit} ${interval(f.low, f.high, f.digits)}${total}; ${read(f.verdict)}`;
  };

  const points = (figure) => {
    const held = data.figures[figure];
    if (!held) return null;
    const rows = held.rows ? array(`${figure} rows`, held.rows, Uint32Array) : null;
    return {
      rows, x: array(`${figure} x`, held.x, Uint16Array), y: array(`${figure} y`, held.y, Uint16Array),
      models: (i, row) => ends(row ?? (rows ? rows[i] : i)),
    };
  };

  const NS = "http://www.w3.org/2000/svg", WIDTH = 420;
  const node = (name, attributes, ...inside) => {
    const made = document.createElementNS(NS, name);
    for (const [key, value] of Object.entries(attributes)) made.setAttribute(key, value);
    made.append(...inside);
    return made;
  };
  const titled = (text) => { const made = node("title", {}); made.textContent = text; return made; };
  const words = (x, y, text, more = {}) => { const made = node("text", { x, y, fill: "var(--ink)", ...more }); made.textContent = text; return made; };
  const scaled = (low, high, most) => ticks(T * low, T * high, most).map(([v, text]) => [v / T, text]);
  const ticks = (low, high, most, whole) => {
    const rough = (high - low) / most, unit = 10 ** Math.floor(Math.log10(rough));
    const step = [1, 2, 2.5, 5, 10].map((f) => f * unit).find((s) => s >= rough * 0.999 && !(whole && s < 1)) ?? 1;
    const out = [];
    for (let i = Math.ceil(low / step - 1e-9); i * step <= high + 1e-9 * step; i++) out.push(i * step);
    const digits = Math.max(0, ...out.map((x) => (String(+x.toPrecision(6)).split(".")[1] ?? "").length));
    return out.map((x) => [x, Math.abs(x) < 1e-12 ? "0" : x.toFixed(digits).replace("-", "−")]);
  };
  const figure = (name, title, alt, height, parts) => {
    const svg = node("svg", { viewBox: `0 0 ${WIDTH} ${height}`, role: "img", "aria-label": `${title}. ${alt}`, "data-figure": name }, ...parts);
    const out = document.createElement("figure"), below = document.createElement("figcaption"), bold = document.createElement("b");
    bold.textContent = `${title}.`;
    below.append(bold, ` ${alt}`);
    out.append(svg, below);
    return out;
  };
  const colour = (verdict) => verdict.startsWith("A ") ? "var(--fig1)" : verdict.startsWith("B ") ? "var(--fig2)" : "var(--muted)";

  const forest = (a, b, row, sign) => {
    const whole = facts(row, sign), rows = [{ label: "all questions", bold: true, ...whole, open: !/better/.test(whole.verdict) }];
    const slices = data.slices;
    for (let s = 0; slices && s < slices.labels.length && rows.length < 40; s++) {
      const at = s * P + row, get = (key) => array(`slice ${key}`, slices[key], Float32Array)[at];
      const ends = sign > 0 ? [get("low"), get("high")] : [-get("high"), -get("low")], diff = sign * get("diff");
      if (!Number.isFinite(diff)) continue;
      const q = get("p"), told = q < 1 - data.level, better = diff > 0 === data.sign > 0 ? "A " : "B ";
      rows.push({ label: slices.labels[s], diff, low: ends[0], high: ends[1], digits: digitsOf((ends[1] - ends[0]) / 4), p: q,
        verdict: told ? better : "", open: !told, n: slices.n[s] });
    }
    const values = rows.flatMap((r) => [r.low, r.high, r.diff]).filter(Number.isFinite).concat(0);
    const room = 0.05 * (Math.max(...values) - Math.min(...values)) || 0.5;
    const low = Math.min(...values) - room, high = Math.max(...values) + room;
    const left = Math.min(168, 16 + 6.6 * Math.min(23, Math.max(...rows.map((r) => r.label.length))));
    const height = 52 + 19 * rows.length, x = (v) => left + (WIDTH - left - 10) * (v - low) / (high - low);
    const parts = [];
    for (const [v, text] of scaled(low, high, 6))
      parts.push(node("path", { d: `M${x(v)} 8V${height - 40}`, stroke: "var(--line)", "stroke-width": 0.7 }),
        words(Math.min(x(v), WIDTH - 3.6 * text.length), height - 25, text, { "text-anchor": "middle", fill: "var(--muted)" }));
    parts.push(node("path", { d: `M${x(0)} 8V${height - 40}`, stroke: "var(--ink)", "stroke-dasharray": "4 3" }));
    rows.forEach((r, i) => {
      const y = 17.5 + 19 * i, mine = r.open ? "var(--muted)" : colour(r.verdict);
      const text = `${r.label}: ${number(r.diff, r.digits)}${unit} ${interval(r.low, r.high, r.digits)}, adjusted p ${p(r.p)}${r.n ? `, n = ${r.n}` : ""}`;
      const label = r.label.length > 23 ? `${r.label.slice(0, 7)}…${r.label.slice(-15)}` : r.label;
      parts.push(words(left - 8, y + 4, label, { "text-anchor": "end", ...(r.bold ? { "font-weight": 600 } : {}) }));
      const ends = [r.low, r.high].map((v) => x(Number.isFinite(v) ? v : r.diff));
      parts.push(node("g", { class: "iv" }, titled(text),
        node("path", { d: `M${ends[0]} ${y}H${ends[1]}`, stroke: mine, "stroke-width": 2, "stroke-linecap": "round" }),
        node("circle", { cx: x(r.diff), cy: y, r: 3.6, fill: r.open ? "var(--paper)" : mine, stroke: mine, "stroke-width": 1.6 })));
    });
    parts.push(words(left + (WIDTH - left - 10) / 2, height - 6, `A − B${axis}`, { "text-anchor": "middle" }));
    const what = rows.length > 1 ? `The difference and ${rows.length - 1} slices with their intervals` : "With its interval";
    return figure("picked-slices", rows.length > 1 ? slices.title : "The difference", `${what}; filled: differs from 0 after adjustment.`, height, parts);
  };

  const rounded = data.questions && data.questions.rounded ? ` Scores are rounded here, to ${data.questions.levels.length} steps.` : "";
  const scoresOf = (model) => {
    const { levels, n, halves } = data.questions, codes = array("scores", data.questions.scores, Uint8Array);
    const code = (i) => halves ? (codes[i >> 1] >> 4 * (i & 1)) & 15 : codes[i];
    return Float64Array.from({ length: n }, (_, i) => levels[code(model * n + i)] ?? NaN);
  };
  const bins = (d) => {
    const counts = new Map();
    for (const v of d) { const key = Math.round(v * 1e9) / 1e9 || 0; counts.set(key, (counts.get(key) ?? 0) + 1); }
    const values = [...counts.keys()].sort((a, b) => a - b);
    if (values.length <= 31) {
      const half = values.length > 1 ? Math.min(...values.slice(1).map((v, i) => v - values[i])) / 2 : 0.5;
      return values.map((v) => [v - half, v + half, `= ${number(v, 3)}${unit}`, counts.get(v)]);
    }
    const reach = Math.max(...values.map(Math.abs)), wide = 2 * reach / 21, out = Array(21).fill(0);
    for (const v of d) out[Math.min(20, Math.floor((v + reach) / wide))]++;
    return out.map((n, i) => [i * wide - reach, (i + 1) * wide - reach, `from ${number(i * wide - reach, 3)} to ${number((i + 1) * wide - reach, 3)}${unit}`, n]);
  };
  const histogram = (d) => {
    const bars = bins(d), most = Math.max(...bars.map((bar) => bar[3])), height = 230, left = 46;
    const low = bars[0][0], high = bars.at(-1)[1];
    const x = (v) => left + (WIDTH - left - 10) * (v - low) / (high - low), y = (n) => 10 + 180 * (1 - n / (1.05 * most));
    const parts = [];
    for (const [n, text] of ticks(0, 1.05 * most, 5, true))
      parts.push(node("path", { d: `M${left} ${y(n)}H${WIDTH - 10}`, stroke: "var(--line)", "stroke-width": 0.7 }),
        words(left - 5, y(n) + 4, text, { "text-anchor": "end", fill: "var(--muted)" }));
    const least = d.reduce((a, v) => Math.min(a, v), Infinity), largest = d.reduce((a, v) => Math.max(a, v), -Infinity);
    const told = least < largest ? scaled(least, largest, 6) : [[least, number(least, 3)]];  // no tick beyond the scores
    for (const [v, text] of told) parts.push(words(x(v), 205, text, { "text-anchor": "middle", fill: "var(--muted)" }));
    for (const [from, to, text, n] of bars) {
      const middle = (from + to) / 2, side = Math.abs(middle) < 1e-12 ? 0 : data.sign * middle, inset = 0.06 * (to - from);
      parts.push(node("rect", { x: x(from + inset), y: y(n), width: x(to - inset) - x(from + inset), height: Math.max(0.5, 190 - y(n)),
        fill: side > 0 ? "var(--fig1)" : side < 0 ? "var(--fig2)" : "var(--muted)" }, titled(`A − B ${text}: ${n} questions`)));
    }
    parts.push(words(left + (WIDTH - left - 10) / 2, height - 6, `A − B of the question${axis}`, { "text-anchor": "middle" }));
    const count = (test) => d.reduce((sum, v) => sum + test(v), 0), better = (v) => data.sign * v > 1e-12;
    const alt = `${d.length} questions by the means of their answers: A is better on ${count(better)}, B on ${count((v) => better(-v))}, and ${count((v) => Math.abs(v) < 1e-12)} are equal.${rounded}`;
    return figure("picked-questions", "Questions by their difference", alt, height, parts);
  };
  const listed = (title, heads, lines) => {  // a table of texts, the first of each line flush left
    const table = document.createElement("table"), head = table.createTHead().insertRow(), body = table.createTBody();
    table.createCaption().textContent = title;
    heads.forEach((text, c) => {
      const cell = document.createElement("th");
      cell.scope = "col"; cell.className = c ? "" : "text"; cell.textContent = text;
      head.append(cell);
    });
    for (const line of lines) {
      const row = body.insertRow();
      line.forEach((text, c) => {
        const cell = row.insertCell();
        cell.textContent = text;
        if (c === 0) cell.className = text.length <= 34 ? "text tight" : "text";
      });
    }
    const out = document.createElement("div");
    out.className = "scroll";
    out.tabIndex = 0;
    out.setAttribute("role", "region");
    out.setAttribute("aria-label", title);
    out.append(table);
    return out;
  };
  const flips = (a, b) => {
    const every = [...a.keys()].filter((i) => Number.isFinite(a[i] - b[i]) && Math.abs(a[i] - b[i]) > 1e-12)
      .sort((i, j) => Math.abs(a[j] - b[j]) - Math.abs(a[i] - b[i]));
    const order = every.slice(0, 15), size = (i) => Math.abs(a[i] - b[i]);
    const asMuch = every.filter((i) => size(i) >= size(order.at(-1)) * (1 - 1e-7)).length;  // the levels have ten digits
    const first = asMuch > order.length ? ` (${order.length} of ${asMuch.toLocaleString("en")} that flipped at least as much as the last)` : "";
    const row = (i) => {
      const digits = Math.max(2, digitsOf(Math.abs(a[i] - b[i])));
      return [data.questions.names[i], mean(a[i], digits), mean(b[i], digits), number(a[i] - b[i], digits)];
    };
    return order.length ? listed(`Questions that flipped most${first}${rounded && `.${rounded}`}`, ["Question", "A", "B", "A − B"], order.map(row)) : "";
  };
  // every model's answers of a question, on a click on its row
  const dialog = document.querySelector("dialog");
  const ask = (i) => {
    const scores = data.names.map((name, m) => [name, scoresOf(m)[i]]).sort(([, x], [, y]) => Number.isFinite(x) - Number.isFinite(y) ? Number.isFinite(y) - Number.isFinite(x) : y - x);
    const lines = scores.map(([name, x]) => [name, Number.isFinite(x) ? mean(x, 2) : "no answer"]);
    dialog.replaceChildren(listed(data.questions.names[i], ["Model", "mean of its answers"], lines), button("Close", "Close", () => dialog.close()));
    dialog.showModal();
  };
  for (const row of data.questions ? document.querySelectorAll("tr[data-q]") : []) {
    const cell = row.cells[0], opener = button("", "", (event) => { event.stopPropagation(); ask(Number(row.dataset.q)); });
    opener.removeAttribute("aria-label");
    opener.append(...cell.childNodes);
    cell.append(opener);
    row.addEventListener("click", () => ask(Number(row.dataset.q)));
  }

  const picker = document.getElementById("picker"), [first, second] = picker.querySelectorAll("select");
  const out = picker.querySelector("[data-picked]"), said = picker.querySelector("output");
  const link = picker.querySelector("a");
  const show = () => {
    const a = Number(first.value), b = Number(second.value), [row, sign] = a === b ? [-1, 1] : find(a, b);
    if (row < 0) { said.textContent = a === b ? "Choose two different models." : "These two share no question."; out.replaceChildren(); return; }
    link.href = `#${new URLSearchParams({ a: data.names[a], b: data.names[b] })}`;
    const f = facts(row, sign), who = f.verdict.startsWith("A ") ? data.names[a] : f.verdict.startsWith("B ") ? data.names[b] : "";
    said.textContent = `${data.names[a]} − ${data.names[b]} = ${number(f.diff, f.digits)} ± ${number(f.se, f.digits)}${unit}, ${100 * data.level}% CI ${interval(f.low, f.high, f.digits)}, `
      + `adjusted p ${p(f.p)}: ${who ? `${who} is better.` : `${read(f.verdict)}.`}`;
    const box = document.createElement("div");
    box.className = "figures";
    box.append(forest(a, b, row, sign));
    if (data.questions) {
      const [x, y] = [scoresOf(a), scoresOf(b)], d = [...x.keys()].map((i) => x[i] - y[i]).filter(Number.isFinite);
      if (d.length) box.append(histogram(d));
      out.replaceChildren(box, flips(x, y));
    } else out.replaceChildren(box);
    page.wake();
  };
  const pick = (a, b) => { first.value = a; second.value = b; show(); };
  picker.hidden = false;
  picker.querySelector("button").addEventListener("click", () => pick(second.value, first.value));
  for (const select of [first, second]) select.addEventListener("change", () => { show(); page.mark([Number(first.value), Number(second.value)].sort((x, y) => x - y), true); });
  const linked = () => {  // the pair that the address names
    const asked = new URLSearchParams(location.hash.slice(1)), pair = ["a", "b"].map((key) => data.names.indexOf(asked.get(key)));
    if (pair.includes(-1)) return false;
    pick(...pair);
    picker.scrollIntoView();
    return true;
  };
  addEventListener("hashchange", linked);
  page.use({ names: data.names, points, describe, chosen: (ids) => { if (ids.length === 2) pick(ids[0], ids[1]); } });
  if (!linked()) show();
  const tools = document.querySelector("[data-save]");
  tools.hidden = false;
  tools.append(button("JSON", "Save all pairs as JSON", () => {
    const names = { diff: "diff", low: "ci_low", high: "ci_high", se: "se", total: "se_total", p: "p_adjusted", verdict: "verdict" };
    const pairs = Array.from({ length: P }, (_, row) => {
      const [a, b] = ends(row), f = facts(row, 1);
      return { model_a: data.names[a], model_b: data.names[b], ...Object.fromEntries(Object.entries(names).map(([key, name]) => [name, f[key]])) };
    });
    const text = JSON.stringify({ level: data.level, pairs }, (_, x) => typeof x !== "number" ? x : Number.isFinite(x) ? Number(x.toPrecision(7)) : null, 1);
    save(`${document.title}-pairs.json`, text, "application/json");
  }));
})();
