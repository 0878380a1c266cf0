// Tiles, agents, log and settings: what is not drawn over steps.

import { element, spark } from "./chart.js";
import { NONE, ago, alike, clock, fixed, moment, number, percent, ratio, whole } from "./format.js";

const at = (id) => document.getElementById(id);
const COLOURS = 6, DASHES = 4;
const ENTRIES = 200, SPARK = 60;

// The same for an agent wherever it is drawn.
export const look = (i) => `c${i % COLOURS} d${Math.floor(i / COLOURS) % DASHES}`;

export function put(id, text) {
  const place = at(id);
  if (place.textContent !== text) place.textContent = text;
}

export function showForecast(standing, k, coverages) {
  if (standing === null) {
    put("forecast-step", "");
    put("forecast", NONE);
    put("forecast-bounds", "no observation yet");
    return;
  }
  put("forecast-step", `of step ${standing.step}`);
  at("forecast").dataset.step = standing.step;
  at("forecast").dataset.value = standing.forecast[k];
  const last = standing.bounds.length - 1, [lower, upper] = standing.bounds[last] ?? [[null], [null]];
  const [said, low, high] = alike([standing.forecast[k], lower[k], upper[k]], 5), share = percent(coverages[last]);
  put("forecast", said);
  put("forecast-bounds", lower[k] === null ? `${share} interval: not yet` : `${low} to ${high} with ${share}`);
}

export function showStatus(status) {
  const { scores, game, settings } = status;
  const name = status.title === status.name ? status.name : `${status.name}: ${status.title}`;
  put("name", name);
  document.title = `${name} – nashcast`;
  const widest = status.coverage.at(-1);
  put("coverage-nominal", widest ? `of ${percent(widest.nominal)}` : "");
  put("coverage", widest && widest.achieved !== null ? percent(Number(widest.achieved.toFixed(3))) : NONE);
  put("coverage-words", status.coverage.slice(0, -1).map((each) => `${percent(each.nominal)}: ${each.achieved === null ? NONE : percent(Number(each.achieved.toFixed(3)))}`).join(", "));
  const root = (mse) => (mse === null ? NONE : `${number(Math.sqrt(mse), 4)}${status.units ? ` ${status.units}` : ""}`);
  put("rmse", root(scores.recent.mse));
  put("rmse-total", root(scores.total.mse));
  for (const tile of document.querySelectorAll(".of-compare")) tile.hidden = scores.total.no_game_mse === null;
  for (const recent of document.querySelectorAll(".recent")) {
    const words = `last ${scores.window}`;
    if (recent.textContent !== words) recent.textContent = words;
  }
  for (const [id, key] of [["persistence", "against_persistence"], ["no-game", "against_no_game"]]) {
    put(`${id}-recent`, ratio(scores.recent[key]));
    put(`${id}-total`, ratio(scores.total[key]));
    const value = scores.recent[key];
    at(`${id}-recent`).dataset.good = value === null ? "" : String(value <= 1);
  }
  put("late", whole(game.late_labels));
  put("missing", whole(game.missing_labels));
  put("suspect", whole(game.suspect_labels));
  // Only the paper's look-back game is counted and certified.
  for (const tile of document.querySelectorAll(".of-lookback")) tile.hidden = game.games === null;
  for (const tile of document.querySelectorAll(".of-joint")) tile.hidden = game.games !== null;
  put("games", whole(game.games));
  put("fallbacks", whole(game.fallbacks));
  put("fallbacks-word", game.fallbacks === 1 ? "fallback" : "fallbacks");
  put("gain", number(game.largest_gain, 3));
  put("condition", number(game.condition, 3));
  put("error-together", number(scores.recent.mse, 3));
  put("window", `last ${settings.serve.window}`);
  put("version", status.version);
  const retained = status.journal.retain === null ? "" : `, the last ${whole(status.journal.retain)} steps kept`;
  put("journal", ` · journal: ${whole(status.journal.entries)} entries${retained}`);
  showSettings(settings);
}

function showSettings(settings) {
  const list = document.querySelector("#settings dl"), text = JSON.stringify(settings);
  if (list.dataset.shown === text) return;
  list.dataset.shown = text;
  list.replaceChildren(...flat("", settings).flatMap(([key, value]) => {
    const term = document.createElement("dt"), told = document.createElement("dd");
    [term.textContent, told.textContent] = [key, value];
    return [term, told];
  }));
}

function flat(prefix, value) {
  const plain = value === null || typeof value !== "object" || (Array.isArray(value) && value.every((part) => typeof part !== "object"));
  if (plain) return [[prefix, value === null ? NONE : Array.isArray(value) ? value.join(", ") : String(value)]];
  if (Array.isArray(value)) return value.flatMap((part, i) => flat(`${prefix}[${i}]`, part));
  return Object.entries(value).flatMap(([key, part]) => flat(prefix ? `${prefix}.${key}` : key, part));
}

export class Agents {
  #body = document.querySelector("#agents tbody");
  #rows = [];
  #told = [];

  // names: in the order of weights.
  build(names) {
    if (this.#rows.map((row) => row.name).join("\n") === names.join("\n")) return;
    this.#rows = names.map((name, i) => {
      const line = document.createElement("tr"), cells = {};
      line.setAttribute("role", "row");
      const head = document.createElement("th");
      head.setAttribute("role", "rowheader");
      head.scope = "row";
      const sample = element("svg", { viewBox: "0 0 22 10", "aria-hidden": "true" });
      element("path", { d: "M1 5H21", class: `line ${look(i)}` }, sample);
      head.append(sample, name);
      line.append(head);
      for (const part of ["state", "weight", "error", "seen", "spark"]) {
        cells[part] = document.createElement("td");
        cells[part].setAttribute("role", "cell");
        cells[part].className = part === "state" || part === "spark" ? part : "number";
        line.append(cells[part]);
      }
      cells.line = element("svg", { viewBox: "0 0 120 26", preserveAspectRatio: "none", role: "img", "aria-label": `misses of ${name}` }, cells.spark);
      element("path", {}, cells.line);
      cells.weight.dataset.label = "weight";
      cells.error.dataset.label = "error";
      cells.seen.dataset.label = "seen";
      return { name, look: look(i), line, cells };
    });
    this.#body.replaceChildren(...this.#rows.map((row) => row.line));
  }

  // What the service says of each.
  show(agents) {
    this.#told = agents;
    agents.forEach((agent, i) => {
      const row = this.#rows[i];
      if (row === undefined) return;
      const { cells } = row;
      if (cells.state.dataset.state !== agent.state) {
        cells.state.dataset.state = agent.state;
        cells.state.textContent = agent.state;
      }
      cells.state.title = agent.reason ?? "";
      cells.error.textContent = number(agent.error, 3);
      this.weigh(i, agent.weight);
    });
    this.sum(agents.map((agent) => agent.weight));
    this.tick();
  }

  weigh(i, weight) {
    const cell = this.#rows[i].cells.weight;
    cell.textContent = fixed(weight);
    cell.dataset.value = weight;
  }

  weights(weights) {
    weights.forEach((weight, i) => this.#rows[i] && this.weigh(i, weight));
    this.sum(weights);
  }

  sum(weights) {
    put("weight-sum", fixed(weights.reduce((a, b) => a + b, 0)));
  }

  // Time passes also where nothing happens.
  tick() {
    this.#told.forEach((agent, i) => {
      const cell = this.#rows[i]?.cells.seen;
      if (cell === undefined) return;
      const text = agent.last_seen === null ? "never" : agent.state === "in" ? "now" : ago(Date.now() / 1000 - agent.last_seen);
      if (cell.textContent !== text) cell.textContent = text;
      cell.title = agent.last_seen === null ? "" : moment(agent.last_seen);
    });
  }

  sparks(rows, k) {
    const last = rows.filter((row) => row.target !== null && row.agents !== null).slice(-SPARK);
    this.#rows.forEach(({ name, look: own, cells }, i) => {
      spark(cells.line, last.map((row) => (name in row.absent || row.agents[i][k] === null ? null : Math.abs(row.agents[i][k] - row.target[k]))), own);
    });
  }
}

export class Log {
  #list = document.querySelector("#log ol");

  load(entries) {
    this.#list.replaceChildren(...entries.map(line).reverse());
  }

  add(entries) {
    for (const entry of entries) this.#list.prepend(line(entry));
    while (this.#list.children.length > ENTRIES) this.#list.lastChild.remove();
  }
}

function line({ at: when, step, kind, text }) {
  const item = document.createElement("li"), time = document.createElement("time"), what = document.createElement("b");
  item.dataset.kind = kind;
  time.dateTime = new Date(when * 1000).toISOString();
  time.textContent = clock(when);
  time.title = moment(when);
  what.textContent = kind;
  const said = document.createElement("span"), place = document.createElement("span");
  [place.className, place.textContent] = ["quiet", step === null ? "" : `step ${step}: `];
  said.append(place, text);
  item.append(time, what, said);
  return item;
}
