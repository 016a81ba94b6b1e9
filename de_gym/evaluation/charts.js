// Charts in SVG: axes, curves that tell their values under the pointer, and rows of dots.
"use strict";
const SVG = "http://www.w3.org/2000/svg";

function element(name, attributes = {}, text = "") {
  const made = document.createElementNS(SVG, name);
  for (const [key, value] of Object.entries(attributes)) made.setAttribute(key, value);
  if (text) made.textContent = text;
  return made;
}

// A number as the tables print it, or as short as it can be read.
function shown(value) {
  if (value === 0) return "0";
  const size = Math.abs(value);
  return size >= 1e-3 && size < 1e5 ? String(Number(value.toPrecision(3))) : value.toExponential(1);
}

// Return a function from a domain to pixels, with the ticks that fit.
function makeScale({ domain: [low, high], log = false }, [from, to], space = 60) {
  const place = log ? Math.log10 : (value) => value;
  const [first, last] = [place(low), place(high)];
  const scale = (value) => from + ((to - from) * (place(value) - first)) / (last - first || 1);
  const count = Math.max(2, Math.floor(Math.abs(to - from) / space));
  const span = last - first || 1;
  const steps = log ? [1, 2, 3, 4, 5, 6, 8, 10, 20] : [0.002, 0.005, 0.01, 0.02, 0.05, 0.1, 0.2, 0.25, 0.5, 1];
  const step = steps.find((size) => span / size <= count) ?? steps[steps.length - 1];
  scale.ticks = [];
  for (let tick = Math.ceil(first / step - 1e-9) * step; tick <= last + 1e-9; tick += step)
    scale.ticks.push(log ? 10 ** tick : Number(tick.toFixed(6)));
  if (log && span < 2 && scale.ticks.length < 2) scale.ticks = ticksWithinDecades(low, high, count);
  return scale;
}

// Where a log scale spans hardly a power of ten: 1, 2 and 5 times one, or evenly spaced round numbers.
function ticksWithinDecades(low, high, count) {
  const decade = 10 ** Math.floor(Math.log10(low));
  const marks = [1, 2, 5, 10, 20, 50].map((factor) => factor * decade).filter((mark) => mark >= low && mark <= high);
  if (marks.length > 1) return marks.slice(0, count + 1);
  const size = 10 ** Math.floor(Math.log10((high - low) / 2 || low));
  const step = size * Math.max(1, Math.round((high - low) / 3 / size));
  const even = [];
  for (let mark = Math.ceil(low / step) * step; mark <= high && even.length <= count; mark += step) even.push(mark);
  return even;
}

// The middle one of ascending values, or the mean of the two in the middle.
function medianOf(values) {
  const half = values.length >> 1;
  return values.length % 2 ? values[half] : (values[half - 1] + values[half]) / 2;
}

function powerLabel(value) {
  const power = Math.round(Math.log10(value));
  if (Math.abs(Math.log10(value) - power) > 1e-6) return shown(value);
  const digits = "⁰¹²³⁴⁵⁶⁷⁸⁹";
  return "10" + [...String(power)].map((sign) => (sign === "-" ? "⁻" : digits[sign])).join("");
}

function drawAxes(svg, frame, x, y, axes, small) {
  for (const tick of x.ticks) {
    svg.append(element("line", { x1: x(tick), x2: x(tick), y1: frame.top, y2: frame.bottom, class: "grid" }));
    const label = axes.x.log ? powerLabel(tick) : shown(tick);
    svg.append(element("text", { x: x(tick), y: frame.bottom + 13, "text-anchor": "middle" }, label));
  }
  for (const tick of y.ticks) {
    svg.append(element("line", { x1: frame.left, x2: frame.right, y1: y(tick), y2: y(tick), class: "grid" }));
    const label = axes.y.log ? powerLabel(tick) : shown(tick);
    svg.append(element("text", { x: frame.left - 5, y: y(tick) + 3.5, "text-anchor": "end" }, label));
  }
  if (small) return;
  const middle = { x: (frame.left + frame.right) / 2, y: (frame.top + frame.bottom) / 2 };
  svg.append(element("text", { x: middle.x, y: frame.bottom + 30, "text-anchor": "middle", class: "title" }, axes.x.title));
  const turned = { x: 12, y: middle.y, "text-anchor": "middle", class: "title", transform: `rotate(-90 12 ${middle.y})` };
  svg.append(element("text", turned, axes.y.title));
}

function pathOf(points, x, y, stepped) {
  return points.map(([place, value], index) => {
    const here = `${x(place).toFixed(1)},${y(value).toFixed(1)}`;
    if (index === 0) return `M${here}`;
    return stepped ? `H${x(place).toFixed(1)}V${y(value).toFixed(1)}` : `L${here}`;
  }).join("");
}

// Draw curves: series have label, color, dash, strong, points [[x, y]] and perhaps band [[x, low, high]].
function lineChart(holder, series, axes, { height = 320, small = false, stepped = false } = {}) {
  const width = Math.max(small ? 150 : 260, holder.clientWidth);
  const frame = { left: small ? 34 : 58, right: width - 8, top: 8, bottom: height - (small ? 18 : 40) };
  const svg = element("svg", { width, height, viewBox: `0 0 ${width} ${height}`, role: "img", class: "chart" });
  const x = makeScale(axes.x, [frame.left, frame.right], small ? 40 : 60);
  const y = makeScale(axes.y, [frame.bottom, frame.top], small ? 28 : 36);
  drawAxes(svg, frame, x, y, axes, small);
  for (const { band, color } of series.filter((one) => one.band)) {
    const upper = band.map(([place, , high]) => [place, high]);
    const lower = band.map(([place, low]) => [place, low]).reverse();
    const within = (value) => Math.min(frame.bottom, Math.max(frame.top, y(value)));
    const outline = pathOf(upper, x, within) + pathOf(lower, x, within).replace("M", "L") + "Z";
    svg.append(element("path", { d: outline, fill: color, "fill-opacity": 0.15 }));
  }
  for (const { points, color, dash, strong } of series) {
    const look = { stroke: color, "stroke-dasharray": dash, "stroke-width": strong ? 2.6 : 1.5, fill: "none" };
    svg.append(element("path", { d: pathOf(points, x, y, stepped), ...look }));
  }
  holder.replaceChildren(svg);
  if (!small) tellValues(holder, svg, series, { x, y, frame, axes, stepped });
}

// The value of every curve at the pointer, in the order of the curves there.
function tellValues(holder, svg, series, { x, frame, axes, stepped }) {
  const line = element("line", { y1: frame.top, y2: frame.bottom, class: "pointer", visibility: "hidden" });
  svg.append(line);
  const tip = document.createElement("div");
  tip.className = "tip";
  tip.hidden = true;
  holder.append(tip);
  svg.addEventListener("pointermove", (event) => {
    const at = event.clientX - svg.getBoundingClientRect().left;
    const nearest = (points) => points.reduce((best, point) => {
      if (stepped && x(point[0]) > at) return best;
      return Math.abs(x(point[0]) - at) < Math.abs(x(best[0]) - at) ? point : best;
    });
    const found = series.filter((one) => one.points.length).map((one) => ({ ...one, point: nearest(one.points) }));
    if (!found.length) return;
    found.sort((one, other) => (one.point[1] - other.point[1]) * (axes.y.smallFirst ? 1 : -1));
    const place = x(found[0].point[0]);
    line.setAttribute("x1", place);
    line.setAttribute("x2", place);
    line.setAttribute("visibility", "visible");
    tip.replaceChildren(tipLine("", `${axes.x.title}: ${shown(found[0].point[0])}`));
    for (const { label, color, dash, point } of found) tip.append(tipLine(color, `${label}  ${shown(point[1])}`, dash));
    tip.hidden = false;
    tip.style.left = `${place < frame.right / 2 ? place + 14 : Math.max(0, place - tip.offsetWidth - 14)}px`;
  });
  svg.addEventListener("pointerleave", () => {
    tip.hidden = true;
    line.setAttribute("visibility", "hidden");
  });
}

function tipLine(color, text, dash = "") {
  const row = document.createElement("div");
  if (color) {
    const sample = document.createElement("span");
    sample.style.borderTop = `3px ${dash ? "dashed" : "solid"} ${color}`;
    row.append(sample);
  }
  row.append(text);
  return row;
}

// Draw one row of dots per method: every final error, and a line at the median.
function dotChart(holder, rows, axis) {
  const width = Math.max(260, holder.clientWidth);
  const names = Math.min(150, width * 0.34);
  const [line, height] = [22, rows.length * 22 + 42];
  const frame = { left: names, right: width - 14, top: 4, bottom: height - 38 };
  const svg = element("svg", { width, height, viewBox: `0 0 ${width} ${height}`, role: "img", class: "chart" });
  const x = makeScale(axis, [frame.left + 6, frame.right]);
  const y = Object.assign(() => 0, { ticks: [] });
  drawAxes(svg, frame, x, y, { x: axis, y: { title: "" } }, false);
  rows.forEach(({ label, color, values, strong }, index) => {
    const middle = frame.top + line * (index + 0.5);
    const name = { x: names - 8, y: middle + 4, "text-anchor": "end", "font-weight": strong ? 700 : 400 };
    svg.append(element("text", { ...name, class: "name" }, label));
    values.forEach((value, place) => {
      const lift = ((place * 7) % 9) - 4;
      const dot = element("circle", { cx: x(value), cy: middle + lift, r: 2.6, fill: color, "fill-opacity": 0.45 });
      dot.append(element("title", {}, `${label}: ${shown(value <= axis.domain[0] ? 0 : value)}`));
      svg.append(dot);
    });
    if (!values.length) return;
    const median = x(medianOf(values));
    svg.append(element("line", { x1: median, x2: median, y1: middle - 8, y2: middle + 8, stroke: color, "stroke-width": 2.5 }));
  });
  holder.replaceChildren(svg);
  for (const name of svg.querySelectorAll(".name")) squeeze(name, names - 8);
}

// Make a text that would leave its place as wide as the place; only texts on the page have a length.
function squeeze(text, room) {
  if (text.getComputedTextLength() <= room) return;
  text.setAttribute("textLength", room);
  text.setAttribute("lengthAdjust", "spacingAndGlyphs");
}
