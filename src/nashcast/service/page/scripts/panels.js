// Tiles, games, log and settings: everything except charts.

import { NONE, alike, clock, moment, number, percent, ratio, whole } from "./format.js";
import { date } from "./times.js";
import { against, alarms, covered, good, rmseRatio } from "./words.js";

const at = (id) => document.getElementById(id);
const ENTRIES = 200;

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
  put("forecast-step", standing.time === null ? `of step ${standing.step}` : `for ${date(Date.parse(standing.time))}`);
  at("forecast").dataset.step = standing.step;
  at("forecast").dataset.value = standing.forecast[k];
  const { lower, upper } = standing.bounds.at(-1), share = percent(coverages.at(-1));
  const [said, low, high] = alike([standing.forecast[k], lower[k], upper[k]], 5);
  put("forecast", standing.units ? `${said} ${standing.units}` : said);
  put("forecast-bounds", lower[k] === null ? `${share} interval: not yet` : `${low} to ${high} with ${share}${standing.path.length > 1 ? `; ${standing.path.length} steps ahead` : ""}`);
}

export function showStatus(status) {
  const { scores, game, settings } = status;
  const name = status.title === status.name ? status.name : `${status.name}: ${status.title}`;
  put("name", name);
  document.title = `${name} – nashcast`;
  at("alarms").hidden = !status.alarms.length;
  put("alarms", status.alarms.length ? `Alarms: ${alarms(status.alarms)}. See the log for details.` : "");
  const coverage = [...status.coverage].reverse().map(covered);
  put("coverage", coverage[0] ?? NONE);
  put("coverage-words", coverage.slice(1).join(", "));
  const units = status.units ? ` ${status.units}` : "";
  const root = (mse) => (mse === null ? NONE : `${number(Math.sqrt(mse), 4)}${units}`);
  put("rmse", root(scores.recent.mse));
  put("rmse-persistence", root(scores.recent.persistence_mse));
  for (const recent of document.querySelectorAll(".recent")) {
    const words = `last ${scores.window}`;
    if (recent.textContent !== words) recent.textContent = words;
  }
  const compared = rmseRatio(scores.recent.against_persistence);
  put("persistence-recent", against(compared));
  put("persistence-total", against(rmseRatio(scores.total.against_persistence)));
  for (const id of ["rmse", "persistence-recent"]) at(id).dataset.good = good(compared);
  for (const part of document.querySelectorAll(".of-compare")) part.hidden = scores.total.no_game_mse === null;
  put("no-game-recent", ratio(scores.recent.against_no_game));
  put("no-game-total", ratio(scores.total.against_no_game));
  at("no-game-recent").dataset.good = scores.recent.against_no_game === null ? "" : String(scores.recent.against_no_game <= 1);
  put("late", whole(game.late_labels));
  put("missing", whole(game.missing_labels));
  put("suspect", whole(game.suspect_labels));
  // Only the paper's look-back game is counted and certified.
  for (const part of document.querySelectorAll(".of-lookback")) part.hidden = game.games === null;
  for (const part of document.querySelectorAll(".of-joint")) part.hidden = game.games !== null;
  put("games", whole(game.games));
  put("fallbacks", whole(game.fallbacks));
  put("fallbacks-word", game.fallbacks === 1 ? "fallback" : "fallbacks");
  put("gain", number(game.largest_gain, 3));
  put("condition", number(game.condition, 3));
  put("error-together", root(scores.recent.mse));
  put("window", `last ${settings.serve.window}`);
  put("version", status.version);
  const retained = status.journal.retain === null ? "" : `, the last ${whole(status.journal.retain)} steps stored`;
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
