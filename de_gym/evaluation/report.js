// Sort a table by the column whose heading was clicked; a second click turns the order round.
for (const table of document.querySelectorAll("table.sortable")) {
  const headings = [...table.tHead.rows[0].cells];
  headings.forEach((heading, column) => heading.firstElementChild.addEventListener("click", () => {
    const descending = heading.getAttribute("aria-sort") === "ascending";
    headings.forEach((other) => other.removeAttribute("aria-sort"));
    heading.setAttribute("aria-sort", descending ? "descending" : "ascending");
    const value = (row) => row.cells[column].dataset.value;
    const number = (text) => (text === "inf" ? Infinity : text === "-inf" ? -Infinity : Number(text));
    const compare = (one, other) => {
      const [left, right] = [number(value(one)), number(value(other))];
      if (Number.isNaN(left) || Number.isNaN(right)) return value(one).localeCompare(value(other));
      return left === right ? 0 : left - right;
    };
    const rows = [...table.tBodies[0].rows].sort(compare);
    table.tBodies[0].append(...(descending ? rows.reverse() : rows));
  }));
}

// What the charts show: the data beside this script, without the methods that were switched off.
const data = JSON.parse(document.getElementById("data").textContent);
const darkness = matchMedia("(prefers-color-scheme: dark)");
// JSON has no infinity; an error that is none is beyond all others.
for (const rows of Object.values(data.errors)) rows.forEach((row, place) => { rows[place] = row.map((value) => value ?? Infinity); });
const off = new Set();
const byId = (id) => document.getElementById(id);
const chosen = { index: 0 };

const color = (method) => method.colors[darkness.matches ? 1 : 0];
const present = () => data.methods.filter((method) => !off.has(method.name));
const withCurves = () => present().filter((method) => data.curves[method.name]);
const atLeast = (value) => Math.max(value, data.floor);

function courseOf(method, index) {
  const { grid, quartiles } = data.curves[method.name];
  const known = grid.map((count, place) => place).filter((place) => quartiles[2][index][place] !== null);
  const look = { label: method.label, color: color(method), dash: method.dash, strong: method.reference };
  const points = known.map((place) => [grid[place], atLeast(quartiles[1][index][place])]);
  const band = known.map((place) => [grid[place], atLeast(quartiles[0][index][place]), atLeast(quartiles[2][index][place])]);
  return { ...look, points, band: method.reference ? band : undefined };
}

function domainOf(values) {
  const [low, high] = [Math.min(...values), Math.max(...values)];
  return [low, high > low ? high : low * 10];
}

function drawCourse(holder, index, options) {
  const series = withCurves().map((method) => courseOf(method, index)).filter((one) => one.points.length);
  if (!series.length) { holder.replaceChildren(); return; }
  const all = series.flatMap((one) => one.points);
  const axes = {
    x: { domain: domainOf(all.map(([count]) => count)), log: true, title: "evaluations" },
    y: { domain: domainOf(all.map(([, error]) => error)), log: true, title: "median error", smallFirst: true },
  };
  lineChart(holder, series, axes, options);
}

function drawRuntimes() {
  if (!byId("runtimes")) return;
  const series = withCurves().map((method) => {
    const { grid, shares } = data.curves[method.name];
    const begin = Math.max(0, shares.findIndex((share) => share > 0) - 1);  // nothing is reached before
    const points = grid.map((count, place) => [count / data.dimension, shares[place]]).slice(begin);
    return { label: method.label, color: color(method), dash: method.dash, strong: method.reference, points };
  });
  if (!series.length) { byId("runtimes").replaceChildren(); return; }
  const all = series.flatMap((one) => one.points);
  const axes = {
    x: { domain: domainOf(all.map(([count]) => count)), log: true, title: "evaluations / dimension" },
    y: { domain: [0, Math.min(1, 1.1 * Math.max(0.01, ...all.map(([, share]) => share)))], title: "share reached" },
  };
  lineChart(byId("runtimes"), series, axes, { stepped: true, height: 360 });
}

function drawOverview() {
  if (!byId("overview")) return;
  byId("overview").replaceChildren(...data.functions.map((label, index) => {
    const panel = document.createElement("a");
    panel.href = `#${label.split(" ")[0]}`;
    panel.append(Object.assign(document.createElement("span"), { textContent: label }), document.createElement("div"));
    return panel;
  }));
  [...byId("overview").children].forEach((panel, index) => drawCourse(panel.lastChild, index, { height: 120, small: true }));
}

function drawRuns(index) {
  const rows = present().map((method) => {
    const values = data.errors[method.name][index].filter(Number.isFinite).map(atLeast);
    return { label: method.label, color: color(method), values, strong: method.reference };
  });
  const axis = { domain: domainOf(rows.flatMap((row) => row.values)), log: true, title: "final error of every run" };
  if (rows.some((row) => row.values.length)) dotChart(byId("runs"), rows, axis);
  else byId("runs").replaceChildren();
}

// As in the tables beside it: 1.50E+03.
function printedForm(value) {
  const [digits, power] = value.toExponential(2).split("e");
  return Number.isFinite(value) ? `${digits}E${power[0]}${power.slice(1).padStart(2, "0")}` : String(value);
}

function figuresOf(method, index) {
  const values = data.errors[method.name][index];
  const mean = values.reduce((sum, value) => sum + value, 0) / values.length;
  const deviation = Math.sqrt(values.reduce((sum, value) => sum + (value - mean) ** 2, 0) / values.length);
  const numbers = [mean, deviation, medianOf(values), values[0], values[values.length - 1]];
  const printed = data.paper[method.name]?.[index];
  const verdict = { "+": "better", "~": "similar", "-": "worse" }[data.marks[method.name]?.[index]] ?? "reference";
  return [...numbers.map(printedForm), verdict, printed === undefined ? "" : printedForm(printed)];
}

function drawFigures(index) {
  const table = document.createElement("table");
  const titles = ["method", "mean", "deviation", "median", "best", "worst", "against the reference", "paper's mean"];
  const rows = present().map((method) => [method.label, ...figuresOf(method, index)]);
  if (!Object.keys(data.paper).length) [titles, ...rows].forEach((cells) => cells.pop());
  table.append(Object.assign(document.createElement("thead"), {}), document.createElement("tbody"));
  [titles, ...rows].forEach((cells, place) => {
    const row = document.createElement("tr");
    for (const cell of cells) row.append(Object.assign(document.createElement(place ? "td" : "th"), { textContent: cell }));
    (place ? table.tBodies[0] : table.tHead).append(row);
  });
  byId("figures").replaceChildren(table);
}

function drawFunction() {
  byId("function").selectedIndex = chosen.index;
  drawCourse(byId("course"), chosen.index, { height: 340 });
  drawRuns(chosen.index);
  drawFigures(chosen.index);
}

function markTables() {
  const hidden = new Set(data.methods.filter((method) => off.has(method.name)).map((method) => method.label));
  for (const row of document.querySelectorAll(".score")) row.classList.toggle("off", hidden.has(row.dataset.label));
  for (const table of document.querySelectorAll("table.sortable")) {
    const headings = [...table.tHead.rows[0].cells];
    const columns = headings.map((heading) => hidden.has(heading.textContent));
    for (const row of table.rows) {
      row.classList.toggle("off", hidden.has(row.cells[0].textContent));
      [...row.cells].forEach((cell, place) => cell.classList.toggle("off", columns[place]));
    }
  }
}

function drawAll() {
  drawRuntimes();
  drawOverview();
  drawFunction();
  markTables();
}

function makeSwitches() {
  const switches = data.methods.map((method) => {
    const made = Object.assign(document.createElement("button"), { type: "button", textContent: method.label });
    made.dataset.method = method.name;
    made.addEventListener("click", () => { off.has(method.name) ? off.delete(method.name) : off.add(method.name); show(); });
    return made;
  });
  const all = Object.assign(document.createElement("button"), { type: "button", textContent: "all", className: "all" });
  all.addEventListener("click", () => { off.clear(); show(); });
  const show = () => {
    switches.forEach((made, place) => {
      made.setAttribute("aria-pressed", String(!off.has(data.methods[place].name)));
      made.style.setProperty("--series", color(data.methods[place]));
      made.style.setProperty("--stroke", data.methods[place].dash ? "dashed" : "solid");
    });
    drawAll();
  };
  byId("methods").replaceChildren(...switches, all);
  return show;
}

function choose(index) {
  chosen.index = (index + data.functions.length) % data.functions.length;
  drawFunction();
}

function followAddress() {
  const index = data.functions.findIndex((label) => `#${label.split(" ")[0]}` === location.hash);
  if (index < 0) return;
  choose(index);
  byId("function").closest("section").scrollIntoView();
}

byId("function").append(...data.functions.map((label) => new Option(label)));
byId("function").addEventListener("change", (event) => choose(event.target.selectedIndex));
byId("previous").addEventListener("click", () => choose(chosen.index - 1));
byId("next").addEventListener("click", () => choose(chosen.index + 1));
addEventListener("hashchange", followAddress);
darkness.addEventListener("change", makeSwitches());
addEventListener("resize", drawAll);
makeSwitches()();
followAddress();
