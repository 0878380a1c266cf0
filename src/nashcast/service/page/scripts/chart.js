// Lines and bands over steps, in SVG, independent of their meaning.

import { number } from "./format.js";
import { dateTicks } from "./times.js";

const SVG = "http://www.w3.org/2000/svg";
const LEFT = 54, RIGHT = 12, TOP = 10, BOTTOM = 24;
const shared = new Set(); // charts with a common pointer

export function element(name, attributes = {}, parent = null) {
  const made = document.createElementNS(SVG, name);
  for (const [key, value] of Object.entries(attributes)) made.setAttribute(key, value);
  parent?.append(made);
  return made;
}

// A path through points; a gap where a value is missing, a dot for an isolated value.
export function path(xs, ys) {
  let found = "", pen = false;
  for (let i = 0; i < ys.length; i++) {
    if (ys[i] === null || !Number.isFinite(ys[i])) {
      pen = false;
    } else {
      found += pen ? `L${xs[i].toFixed(1)} ${ys[i].toFixed(1)}` : `M${xs[i].toFixed(1)} ${ys[i].toFixed(1)}h0`;
      pen = true;
    }
  }
  return found;
}

function area(xs, low, high) {
  let found = "";
  for (let i = 0; i < low.length; i++) {
    if (low[i] === null || high[i] === null) continue;
    const first = i;
    while (i + 1 < low.length && low[i + 1] !== null && high[i + 1] !== null) i++;
    const there = [], back = [];
    for (let j = first; j <= i; j++) {
      there.push(`${xs[j].toFixed(1)} ${high[j].toFixed(1)}`);
      back.unshift(`${xs[j].toFixed(1)} ${low[j].toFixed(1)}`);
    }
    found += `M${there.join("L")}L${back.join("L")}Z`;
  }
  return found;
}

function ticks(low, high, wanted, leastStep = 0) {
  const raw = (high - low) / wanted, power = 10 ** Math.floor(Math.log10(raw)), head = raw / power;
  const step = Math.max(power * (head < 1.5 ? 1 : head < 3.5 ? 2 : head < 7.5 ? 5 : 10), leastStep);
  const found = [];
  for (let at = Math.ceil(low / step) * step; at <= high + step * 1e-9; at += step) {
    found.push(Math.abs(at) < step * 1e-9 ? 0 : at);
  }
  return found;
}

function logTicks(low, high) {
  const found = [];
  for (let power = Math.floor(Math.log10(low)); power <= Math.log10(high); power++) {
    for (const unit of high / low > 200 ? [1] : high / low > 20 ? [1, 2, 5] : [1, 1.5, 2, 3, 5, 7]) {
      const at = unit * 10 ** power;
      if (at >= low && at <= high) found.push(at);
    }
  }
  return found.length > 1 ? found : [low, high];
}

export class Chart {
  #figure; #svg; #parts = {}; #drawn = null; #at = null; #note; #hidden = new Set();

  // say(step): lines of [name, text] for the note at a step.
  constructor(figure, label, say) {
    this.#figure = figure;
    this.say = say;
    const box = document.createElement("div");
    box.className = "canvas";
    this.#svg = element("svg", { role: "img", tabindex: "0", "aria-label": label });
    this.#note = document.createElement("dl");
    this.#note.className = "note";
    this.#note.setAttribute("role", "status");
    this.#note.hidden = true;
    box.append(this.#svg, this.#note);
    figure.append(box);
    const clip = `${figure.id}-inside`;
    this.#parts.clip = element("rect", {}, element("clipPath", { id: clip }, element("defs", {}, this.#svg)));
    this.#parts.grid = element("g", { class: "grid" }, this.#svg);
    const inside = element("g", { "clip-path": `url(#${clip})` }, this.#svg);
    this.#parts.bands = element("g", {}, inside);
    this.#parts.lines = element("g", { class: "lines" }, inside);
    this.#parts.dots = element("g", {}, this.#svg);
    this.#parts.pointer = element("line", { class: "pointer", visibility: "hidden" }, this.#svg);
    this.#listen();
    new ResizeObserver(() => this.#redraw()).observe(box);
    shared.add(this);
  }

  // steps: step of each row.   lines: {name, look, values}.   bands: {look, low, high}.   dots: {look, step, value}.
  // include: values the scale must contain.   log: logarithmic scale.   to: the last step of the axis.
  // line: times of steps, for dates along the axis.   now: the last observed step.
  draw(content) {
    this.#drawn = content;
    this.#keys(content.lines);
    this.#redraw();
  }

  #redraw() {
    const drawn = this.#drawn, { width, height } = this.#svg.getBoundingClientRect();
    if (!drawn || !width) return;
    const { steps, bands, dots = [] } = drawn;
    const lines = drawn.lines.filter((line) => !this.#hidden.has(line.name));
    this.#svg.setAttribute("viewBox", `0 0 ${width} ${height}`);
    const set = (part, values) => {
      for (const [key, value] of Object.entries(values)) part.setAttribute(key, value);
    };
    set(this.#parts.clip, { x: LEFT, y: TOP - 4, width: width - LEFT - RIGHT + 4, height: height - TOP - BOTTOM + 8 });
    const first = steps[0] ?? 0, last = Math.max(drawn.to ?? steps.at(-1) ?? 1, first + 1);
    const x = (step) => LEFT + ((step - first) / (last - first)) * (width - LEFT - RIGHT);
    const [low, high] = this.#reach(lines, bands, dots, drawn);
    const scale = drawn.log ? Math.log : (value) => value;
    const y = (value) => height - BOTTOM - ((scale(value) - scale(low)) / (scale(high) - scale(low))) * (height - TOP - BOTTOM);
    this.#x = x;
    const wantedY = Math.min(8, Math.max(2, Math.floor((height - TOP - BOTTOM) / 36)));
    const across = drawn.log ? logTicks(low, high) : ticks(low, high, wantedY);
    const along = drawn.line
      ? dateTicks(drawn.line, first, last, Math.max(2, Math.floor((width - LEFT) / 120)))
      : ticks(first, last, Math.max(2, Math.floor((width - LEFT) / 75)), 1).map((at) => ({ at, text: String(at) }));
    this.#grid(across, along, x, y, width, height, drawn.rule);
    if (drawn.now !== undefined && drawn.now > first && drawn.now < last) {
      element("line", { x1: x(drawn.now), x2: x(drawn.now), y1: TOP - 4, y2: height - BOTTOM, class: "rule" }, this.#parts.grid);
    }

    const xs = steps.map(x), mapped = (values) => values.map((value) => (value === null || !Number.isFinite(value) || (drawn.log && value <= 0) ? null : y(value)));
    const pool = (group, name, count) => {
      while (group.children.length < count) element(name, {}, group);
      while (group.children.length > count) group.lastChild.remove();
      return group.children;
    };
    const shades = pool(this.#parts.bands, "path", bands.length);
    bands.forEach((band, i) => set(shades[i], { class: `band ${band.look}`, d: area(xs, mapped(band.low), mapped(band.high)) }));
    const strokes = pool(this.#parts.lines, "path", lines.length);
    lines.forEach((line, i) => set(strokes[i], { class: `line ${line.look}`, d: path(xs, mapped(line.values)) }));
    const points = dots.filter((dot) => dot.value !== null && dot.step <= last && dot.step >= first);
    const marks = pool(this.#parts.dots, "circle", points.length);
    points.forEach((dot, i) => set(marks[i], { class: `end ${dot.look}`, r: 4, cx: x(dot.step), cy: Math.min(Math.max(y(dot.value), TOP), height - BOTTOM) }));
    this.#point();
  }

  #x = null;

  #reach(lines, bands, dots, { include = [], log }) {
    const values = [...include, ...dots.map((dot) => dot.value)];
    for (const line of lines) values.push(...line.values);
    const kept = values.filter((value) => value !== null && Number.isFinite(value) && !(log && value <= 0));
    // Bands may be far too wide at first: the widest few are ignored.
    for (const band of bands) {
      for (const [side, share] of [[band.low, 0.04], [band.high, 0.96]]) {
        const known = side.filter((value) => value !== null).sort((a, b) => a - b);
        if (known.length) kept.push(known[Math.floor(share * (known.length - 1))]);
      }
    }
    if (!kept.length) return log ? [0.5, 2] : [0, 1];
    let low = Infinity, high = -Infinity;
    for (const value of kept) [low, high] = [Math.min(low, value), Math.max(high, value)];
    if (log) {
      const room = Math.max(Math.sqrt(high / low), 1.1) ** 0.15;
      return [low / Math.max(room, 1.05), high * Math.max(room, 1.05)];
    }
    const room = (high - low || Math.abs(high) || 1) * 0.06;
    return [low - room, high + room];
  }

  #grid(across, along, x, y, width, height, rule) {
    const group = this.#parts.grid;
    group.replaceChildren();
    for (const at of across) {
      element("line", { x1: LEFT, x2: width - RIGHT, y1: y(at), y2: y(at), class: at === rule ? "rule" : "" }, group);
      element("text", { x: LEFT - 8, y: y(at) + 4, "text-anchor": "end" }, group).textContent = tidy(at, across);
    }
    if (rule !== undefined && !across.includes(rule)) {
      element("line", { x1: LEFT, x2: width - RIGHT, y1: y(rule), y2: y(rule), class: "rule" }, group);
    }
    let taken = -Infinity; // end of the previous label
    for (const { at, text: words } of along) {
      const half = 3.2 * words.length, place = Math.max(x(at), half);
      if (place - half < taken + 8) continue;
      taken = place + half;
      const text = element("text", { x: place, y: height - 6, "text-anchor": "middle" }, group);
      text.textContent = words;
      if (place > width - half) text.setAttribute("text-anchor", "end");
      element("line", { x1: x(at), x2: x(at), y1: height - BOTTOM, y2: height - BOTTOM + 4 }, group);
    }
  }

  #keys(lines) {
    const list = this.#figure.querySelector(".keys"), names = lines.map((line) => line.name).join("\n");
    if (list.dataset.names === names) return;
    list.dataset.names = names;
    list.replaceChildren(...lines.map(({ name, look }) => {
      const item = document.createElement("li"), button = document.createElement("button");
      button.type = "button";
      button.setAttribute("aria-pressed", String(!this.#hidden.has(name)));
      const sample = element("svg", { viewBox: "0 0 22 10", "aria-hidden": "true" });
      element("path", { d: "M1 5H21", class: `line ${look}` }, sample);
      button.append(sample, name);
      button.addEventListener("click", () => {
        if (!this.#hidden.delete(name)) this.#hidden.add(name);
        button.setAttribute("aria-pressed", String(!this.#hidden.has(name)));
        this.#redraw();
      });
      item.append(button);
      return item;
    }));
  }

  #listen() {
    const svg = this.#svg, all = (step) => shared.forEach((chart) => chart.point(step, chart === this));
    svg.addEventListener("pointermove", (event) => all(this.#nearest(event.clientX - svg.getBoundingClientRect().left)));
    svg.addEventListener("pointerleave", () => all(null));
    svg.addEventListener("blur", () => all(null));
    svg.addEventListener("keydown", (event) => {
      const steps = this.#drawn?.steps ?? [];
      const far = Math.max(1, Math.round(steps.length / 20));
      const ways = { ArrowLeft: -1, ArrowRight: 1, PageUp: -far, PageDown: far, Home: -Infinity, End: Infinity };
      if (event.key === "Escape") all(null);
      if (!(event.key in ways) || !steps.length) return;
      event.preventDefault();
      const now = this.#at === null ? steps.length : steps.findIndex((step) => step >= this.#at);
      all(steps[Math.min(Math.max(now + ways[event.key], 0), steps.length - 1)]);
    });
  }

  #nearest(at) {
    const steps = this.#drawn?.steps ?? [];
    let best = null;
    for (const step of steps) if (best === null || Math.abs(this.#x(step) - at) < Math.abs(this.#x(best) - at)) best = step;
    return best;
  }

  // noted: whether to show the numbers at the pointer.
  point(step, noted) {
    this.#at = step;
    this.#note.hidden = !noted || step === null;
    this.#point();
  }

  #point() {
    const steps = this.#drawn?.steps ?? [], pointer = this.#parts.pointer;
    const there = this.#at !== null && steps.length && this.#at >= steps[0] && this.#at <= steps.at(-1);
    pointer.setAttribute("visibility", there ? "visible" : "hidden");
    if (!there) {
      this.#note.hidden = true;
      return;
    }
    const { width, height } = this.#svg.getBoundingClientRect(), x = this.#x(this.#at);
    for (const [key, value] of Object.entries({ x1: x, x2: x, y1: TOP - 4, y2: height - BOTTOM })) pointer.setAttribute(key, value);
    if (this.#note.hidden) return;
    this.#note.replaceChildren(...this.say(this.#at).flatMap(([name, text]) => {
      const term = document.createElement("dt"), told = document.createElement("dd");
      [term.textContent, told.textContent] = [name, text];
      return [term, told];
    }));
    const room = this.#note.offsetWidth + 14;
    this.#note.style.left = `${x + room > width ? Math.max(x - room, 0) : x + 14}px`;
  }
}

// As many digits as needed to distinguish the ticks.
function tidy(at, all) {
  const gap = Math.min(...all.slice(1).map((other, i) => Math.abs(other - all[i])));
  const size = Math.max(...all.map(Math.abs));
  if (!Number.isFinite(gap) || size >= 1e6 || size < 1e-3) return number(at, 3);
  return at.toFixed(Math.min(8, Math.max(0, -Math.floor(Math.log10(gap) + 1e-9)))).replace("-", "\u2212");
}

// A small line without axes.
export function spark(svg, values, look) {
  const [width, height] = [120, 26];
  const known = values.filter((value) => value !== null);
  const top = Math.max(...known, 1e-300);
  const xs = values.map((_, i) => 2 + (i / Math.max(values.length - 1, 1)) * (width - 4));
  svg.firstElementChild.setAttribute("class", `line ${look}`);
  svg.firstElementChild.setAttribute("d", path(xs, values.map((value) => (value === null ? null : height - 3 - (value / top) * (height - 6)))));
}
