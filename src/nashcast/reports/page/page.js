"use strict";
(() => {
  const all = (what, where = document) => Array.from(where.querySelectorAll(what));

  // Tables: a click on a heading sorts by it, a second one turns the order round; rows without a value stay last.
  const compare = (a, b) => {
    const x = Number(a), y = Number(b);
    return Number.isNaN(x) || Number.isNaN(y) ? a.localeCompare(b, "en", { numeric: true }) : x - y;
  };
  for (const button of all("th button")) {
    button.addEventListener("click", () => {
      const head = button.parentElement, body = head.closest("table").tBodies[0];
      const way = head.getAttribute("aria-sort") === "ascending" ? "descending" : "ascending";
      for (const other of head.parentElement.cells) other.setAttribute("aria-sort", "none");
      head.setAttribute("aria-sort", way);
      const turn = way === "ascending" ? 1 : -1;
      const rows = Array.from(body.rows, (row) => [row.cells[head.cellIndex].dataset.value, row]);
      rows.sort(([a], [b]) => {
        if (a === undefined || b === undefined) return (a === undefined) - (b === undefined);
        return turn * (a === b ? 0 : compare(a, b));
      });
      for (const [, row] of rows) body.append(row);
    });
  }

  for (const button of all("button[data-copies]")) {
    button.addEventListener("click", async () => {
      const source = document.getElementById(button.dataset.copies);
      try {
        await navigator.clipboard.writeText(source.textContent);
        button.textContent = "Copied";
      } catch {
        getSelection().selectAllChildren(source);
        button.textContent = document.execCommand("copy") ? "Copied" : "Selected";
      }
      setTimeout(() => { button.textContent = "Copy"; }, 2000);
    });
  }

  const holder = document.getElementById("plots");
  if (!holder || typeof Plotly === "undefined") return;
  const data = JSON.parse(holder.textContent);
  const TYPES = { f4: Float32Array, f8: Float64Array, i4: Int32Array, u2: Uint16Array };
  const unpacked = new Map();
  const numbers = (i) => {
    if (!unpacked.has(i)) {
      const [type, text] = data.arrays[i];
      unpacked.set(i, new TYPES[type](Uint8Array.from(atob(text), (letter) => letter.charCodeAt(0)).buffer));
    }
    return unpacked.get(i);
  };

  // Names are not markup: plotly would read tags in them.
  const plain = (text) => text.replace(/&/g, "&amp;").replace(/</g, "&lt;").replace(/>/g, "&gt;");
  const wrapped = (text, most) => {
    const lines = [""];
    for (const word of text.split(" ")) {
      if (lines.at(-1) && lines.at(-1).length + word.length >= most) lines.push(word);
      else lines[lines.length - 1] += (lines.at(-1) ? " " : "") + word;
    }
    return lines.map(plain).join("<br>");
  };

  const LINE = { thin: 1.2, thick: 1.9 };
  // A printed page is light and narrow, whatever the screen is; the print style does not hold yet when it is drawn.
  const PRINTED = { ink: "#000", quiet: "#444", grid: "#ddd", rule: "#bbb", paper: "#fff", raised: "#fff", reference: "#b2182b" };
  const PRINTED_WIDTH = 660;
  const theme = (printing) => {
    const family = getComputedStyle(document.body).fontFamily;
    if (printing) return { ...PRINTED, family };
    const style = getComputedStyle(document.documentElement);
    const colour = (name) => style.getPropertyValue(name).trim();
    return { ink: colour("--ink"), quiet: colour("--quiet"), grid: colour("--grid"), rule: colour("--rule"),
      paper: colour("--paper"), raised: colour("--raised"), reference: colour("--reference"), family };
  };

  // Thin lines last, hence above: they would vanish under thick ones, and do not hide them.
  const inOrder = (figure, panel) => panel.lines.slice().sort((a, b) => figure.labels[a.label].thin - figure.labels[b.label].thin);
  const traces = (figure, hidden, colours) => figure.panels.flatMap((panel, p) => inOrder(figure, panel).map((line) => {
    const look = figure.labels[line.label], colour = look.colour === "ink" ? colours.ink : look.colour;
    const points = line.style.includes("points"), drawn = line.style !== "points";
    const trace = {
      type: "scatter", name: plain(look.label), y: numbers(line.y), visible: !hidden.has(line.label), showlegend: false,
      mode: [drawn ? "lines" : "", points ? "markers" : ""].filter(Boolean).join("+"),
      xaxis: p ? `x${p + 1}` : "x", yaxis: p ? `y${p + 1}` : "y",
      line: { color: colour, width: look.thin ? LINE.thin : LINE.thick, dash: look.dash, shape: line.style === "step" ? "hv" : "linear" },
      marker: { color: colour, symbol: look.marker, size: drawn ? 7 : 4, opacity: drawn ? 1 : 0.7 },
      hovertemplate: `%{y:.4~g}<extra>${plain(look.label)}</extra>`,
    };
    if (points && drawn) trace.marker.maxdisplayed = 30;
    if (line.x === null) Object.assign(trace, { x0: 0, dx: 1 });
    else trace.x = numbers(line.x);
    return trace;
  }));

  // Plotly places panels in shares of the whole; sizes and gaps here are in pixels, so that they suit any width.
  const EDGE = { left: 50, right: 12, bottom: 46 }, NARROWEST = 260, ACROSS = 58, TEXT = 17;
  // What y is stands above the panel, not along its side: it can be read, and takes no width on a phone.
  const head = (panel, width) => {
    const most = width / 6.8, lines = [];
    if (panel.title) lines.push(`<b>${wrapped(panel.title, most)}</b>`);
    if (panel.y_label) lines.push(wrapped(panel.y_label, most));
    return lines.join("<br>");
  };
  const shape = (figure, width) => {
    const columns = Math.max(1, Math.min(figure.columns, Math.floor(width / NARROWEST)));
    const rows = Math.ceil(figure.panels.length / columns);
    const panelWidth = (width - EDGE.left - EDGE.right - ACROSS * (columns - 1)) / columns;
    const panelHeight = Math.round(Math.max(190, Math.min(340, panelWidth * 0.6)));
    const heads = figure.panels.map((panel) => head(panel, panelWidth + EDGE.left - 8));
    const top = 10 + TEXT * Math.max(...heads.map((text) => text.split("<br>").length)), down = EDGE.bottom + top;
    const height = top + EDGE.bottom + rows * panelHeight + (rows - 1) * down;
    return { columns, panelWidth, panelHeight, heads, down, top, height };
  };

  const layout = (figure, width, colours) => {
    const s = shape(figure, width), inner = width - EDGE.left - EDGE.right;
    const tall = s.height - s.top - EDGE.bottom;
    const axis = { gridcolor: colours.grid, linecolor: colours.rule, zeroline: false, showline: true, ticks: "outside",
      ticklen: 4, tickcolor: colours.rule, exponentformat: "power", showexponent: "all", hoverformat: ".5~g", nticks: 6,
      spikethickness: 1, spikedash: "solid", spikecolor: colours.quiet };
    const result = {
      width, height: s.height, uirevision: "kept", margin: { l: EDGE.left, r: EDGE.right, t: s.top, b: EDGE.bottom },
      paper_bgcolor: "rgba(0,0,0,0)", plot_bgcolor: colours.paper, showlegend: false, annotations: [], shapes: [],
      font: { family: colours.family, size: 12, color: colours.ink }, hoverlabel: { bgcolor: colours.raised, bordercolor: colours.rule, font: { color: colours.ink } },
      hovermode: figure.panels.some((panel) => panel.lines.some((line) => line.style === "points")) ? "closest" : "x unified",
      dragmode: matchMedia("(pointer: coarse)").matches ? false : "zoom",
      modebar: { bgcolor: "rgba(0,0,0,0)", color: colours.quiet, activecolor: colours.ink, orientation: "h" },
    };
    figure.panels.forEach((panel, p) => {
      const n = p ? p + 1 : "", column = p % s.columns, row = Math.floor(p / s.columns);
      const left = column * (s.panelWidth + ACROSS) / inner, high = 1 - row * (s.panelHeight + s.down) / tall;
      const domain = [left, Math.min(1, left + s.panelWidth / inner)], span = [Math.max(0, high - s.panelHeight / tall), high];
      result[`xaxis${n}`] = { ...axis, domain, anchor: `y${n}`, type: panel.log_x ? "log" : "linear", title: { text: plain(panel.x_label), standoff: 5 } };
      if (panel.ticks) Object.assign(result[`xaxis${n}`], { tickmode: "array", tickvals: panel.ticks, ticktext: panel.ticks.map(String) });
      result[`yaxis${n}`] = { ...axis, domain: span, anchor: `x${n}`, type: panel.log_y ? "log" : "linear", showspikes: false };
      result[`xaxis${n}`].unifiedhovertitle = { text: `${plain(panel.x_label)} %{x:.5~g}` };
      // As many ticks as powers of ten, so that plotly labels these and not 2 and 5 between them.
      if (panel.log_y) result[`yaxis${n}`].nticks = Math.max(3, Math.min(6, Math.ceil(1.11 * panel.decades)));
      if (panel.limits) result[`yaxis${n}`].range = panel.log_y ? panel.limits.map(Math.log10) : panel.limits;
      result.annotations.push({ text: s.heads[p], xref: "paper", yref: "paper", x: left, y: high, xshift: 8 - EDGE.left, yshift: 3,
        xanchor: "left", yanchor: "bottom", align: "left", showarrow: false });
      if (panel.reference !== null) result.shapes.push({ type: "line", xref: `x${n} domain`, yref: `y${n}`, x0: 0, x1: 1, y0: panel.reference, y1: panel.reference,
        layer: "above", line: { color: colours.reference, width: 1.2 } });
    });
    return result;
  };

  // Named one by one: by default plotly also offers to send the data to its makers.
  const BUTTONS = ["toImage", "zoom2d", "pan2d", "zoomIn2d", "zoomOut2d", "resetScale2d"];
  const OPTIONS = { displaylogo: false, responsive: false, modeBarButtons: [BUTTONS], plotlyServerURL: "", doubleClick: "reset" };
  const SVG = "http://www.w3.org/2000/svg", STROKES = { solid: "", dash: "7 3", dashdot: "7 3 2 3", dot: "2 3" };
  const SYMBOLS = {
    circle: "M12 7m-3.5 0a3.5 3.5 0 1 0 7 0a3.5 3.5 0 1 0 -7 0", square: "M9 4h6v6h-6z", "triangle-up": "M12 3l4 7h-8z", diamond: "M12 2.5l4 4.5l-4 4.5l-4 -4.5z",
    "triangle-down": "M12 11l4 -7h-8z", cross: "M10.5 3h3v2.5h2.5v3h-2.5v2.5h-3v-2.5h-2.5v-3h2.5z", x: "M9 3l3 2.4l3 -2.4l1.4 1.4l-2.6 2.6l2.6 2.6l-1.4 1.4l-3 -2.4l-3 2.4l-1.4 -1.4l2.6 -2.6l-2.6 -2.6z",
  };
  const part = (name, attributes) => {
    const made = document.createElementNS(SVG, name);
    for (const [key, value] of Object.entries(attributes)) made.setAttribute(key, value);
    return made;
  };
  const sample = (look) => {
    const colour = look.colour === "ink" ? "currentColor" : look.colour;
    const svg = part("svg", { width: 24, height: 14, viewBox: "0 0 24 14", "aria-hidden": "true" });
    if (look.style !== "points") svg.append(part("path", { d: "M0 7h24", stroke: colour, "stroke-width": look.thin ? 1.4 : 2.2, "stroke-dasharray": STROKES[look.dash] }));
    if (look.style.includes("points")) svg.append(part("path", { d: SYMBOLS[look.marker], fill: colour }));
    return svg;
  };

  const shown = all(".plot").map((box, i) => {
    const figure = data.figures[i], canvas = box.querySelector(".canvas"), keys = box.querySelector(".keys");
    const hidden = new Set();
    const self = { box, drawn: false, width: 0 };
    self.reserve = (width = canvas.clientWidth) => { canvas.style.minHeight = `${shape(figure, width).height}px`; };
    self.draw = (printing = false) => {
      const colours = theme(printing), width = printing ? Math.min(PRINTED_WIDTH, canvas.clientWidth) : canvas.clientWidth;
      if (!width) return;
      self.width = width;
      Plotly.react(canvas, traces(figure, hidden, colours), layout(figure, width, colours), OPTIONS);
      self.drawn = true;
      self.reserve(width);
      box.dataset.drawn = "yes";
    };
    self.resized = () => {
      if (canvas.clientWidth === self.width) return;
      if (self.drawn) self.draw();
      else self.reserve();
    };
    figure.labels.forEach((look, label) => {
      const button = document.createElement("button");
      button.type = "button";
      button.setAttribute("aria-pressed", "true");
      button.append(sample(look), look.text);
      button.addEventListener("click", () => {
        const off = hidden.has(label);
        if (off) hidden.delete(label); else hidden.add(label);
        button.setAttribute("aria-pressed", String(off));
        self.draw();
      });
      const item = document.createElement("li");
      item.append(button);
      keys.append(item);
    });
    self.reserve();
    return self;
  });

  const drawAll = (printing) => shown.forEach((each) => each.draw(printing));
  const wanted = new URLSearchParams(location.search);
  if (wanted.has("all") || typeof IntersectionObserver === "undefined") {
    drawAll(false);
  } else {
    const watch = new IntersectionObserver((entries) => {
      for (const entry of entries) {
        const each = shown.find((one) => one.box === entry.target);
        if (entry.isIntersecting && !each.drawn) { each.draw(); watch.unobserve(entry.target); }
      }
    }, { rootMargin: "300px" });
    shown.forEach((each) => watch.observe(each.box));
  }
  let pending = 0;
  addEventListener("resize", () => {
    cancelAnimationFrame(pending);
    pending = requestAnimationFrame(() => shown.forEach((each) => each.resized()));
  });
  const again = () => shown.forEach((each) => { if (each.drawn) each.draw(); });
  matchMedia("(prefers-color-scheme: dark)").addEventListener("change", again);
  addEventListener("beforeprint", () => drawAll(true));
  addEventListener("afterprint", again);
})();
