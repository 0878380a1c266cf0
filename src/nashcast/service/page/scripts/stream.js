// The page of a stream: queries the service, follows its events, and draws updates at most once a frame.

import { Agents, look } from "./agents.js";
import { Chart } from "./chart.js";
import { alike, fixed, percent, whole } from "./format.js";
import { Log, put, showForecast, showStatus } from "./panels.js";
import { Rows, runningRatio } from "./rows.js";
import { Refused, ask, follow, token } from "./service.js";
import { wireTabs } from "./tabs.js";
import { wireTheme } from "./theme_button.js";
import { date, timeAt, timeline } from "./times.js";

const at = (id) => document.getElementById(id);
const LINES = { live: "live", reconnecting: "reconnecting", ended: "ended" };
// Milliseconds: shortest and longest time between two queries of scores and agents.
const OFTEN = 700, SELDOM = 5000;

const rows = new Rows(), agents = new Agents(), log = new Log();
let names = [], coverages = [], k = 0, looked = 0, planned = 0, dirty = false;

// Times of steps, if observations have them; and the forecast steps beyond the last row.
let times = null, ahead = [];
const row = (step) => rows.all.find((each) => each.step === step) ?? later(step);
const placed = (step) => (times === null ? [["step", whole(step)]] : [["step", whole(step)], ["time", date(timeAt(times, step))]]);

// A step of the path in the form of a history row.
function later(step) {
  const found = ahead.find((each) => each.step === step);
  return { step, target: null, forecast: found?.forecast, bounds: found?.bounds.map(({ lower, upper }) => [lower, upper]), weights: null, absent: {} };
}

const series = new Chart(at("series"), "Target, forecast, interval and the steps ahead, over time. Arrow keys read values.", (step) => {
  const here = row(step), last = coverages.length - 1;
  const numbers = [here.target?.[k], here.forecast?.[k], here.bounds?.[last]?.[0][k], here.bounds?.[last]?.[1][k]];
  const [target, forecast, low, high] = alike(numbers.map((value) => value ?? null), 5);
  return [...placed(step), ["target", target], ["forecast", forecast], [percent(coverages[last]), `${low} to ${high}`]];
});
let drawnRatios = [];
const ratios = new Chart(at("ratios"), "Error as a multiple of persistence's, over time. Arrow keys read values.", (step) => {
  const i = rows.all.findIndex((each) => each.step === step);
  return [...placed(step), ...drawnRatios.map(({ name, values }) => [name, fixed(values[i])])];
});
const weights = new Chart(at("weights"), "Weights of the agents over time. Arrow keys read values.", (step) => {
  const here = row(step);
  return [...placed(step), ...names.map((name, i) => [name, name in here.absent ? "absent" : fixed(here.weights?.[i])])];
});

function draw() {
  dirty = false;
  const all = rows.all, steps = all.map((each) => each.step);
  const of = (what) => all.map((each) => each[what]?.[k] ?? null);
  const bound = (c, side) => all.map((each) => each.bounds?.[c]?.[side][k] ?? null);
  const last = all.at(-1), present = rows.standing;
  // The path continues from the newest row if that is in the range.
  ahead = present !== null && last?.step === present.step ? present.path.slice(1) : [];
  times = timeline([...all.map((each) => [each.step, each.time ?? (each.step === present?.step ? present.time : null)]), ...ahead.map((each) => [each.step, each.time])]);
  const none = all.map(() => null), beyond = ahead.map(() => null), every = [...steps, ...ahead.map((each) => each.step)];
  const shade = (c) => `band${c === coverages.length - 1 ? 0 : 1}`;
  const bands = coverages.map((_, c) => ({ look: shade(c), low: [...bound(c, 0), ...beyond], high: [...bound(c, 1), ...beyond] })).reverse();
  // Starts at the newest row, so that there is no gap.
  const from = none.length - 1, join = (values, later) => [...none.slice(1), ...values.slice(from), ...later];
  if (ahead.length) {
    bands.push(...coverages.map((_, c) => ({
      look: shade(c), low: join(bound(c, 0), ahead.map((each) => each.bounds[c].lower[k])), high: join(bound(c, 1), ahead.map((each) => each.bounds[c].upper[k])),
    })).reverse());
  }
  const dots = last && last.target === null && last.forecast ? [{ look: "forecast", step: last.step, value: last.forecast[k] }] : [];
  const path = ahead.length ? [{ name: `${ahead.length + 1} steps ahead`, look: "forecast d2", values: join(of("forecast"), ahead.map((each) => each.forecast[k])) }] : [];
  series.draw({
    steps: every, bands, dots, line: times, now: ahead.length ? last.step - 1 : undefined,
    lines: [...path, { name: "target", look: "target", values: [...of("target"), ...beyond] }, { name: "forecast", look: "forecast", values: [...of("forecast"), ...beyond] }],
  });
  const window = Math.max(20, Math.round(all.length / 5));
  drawnRatios = [["÷ persistence", "persistence", "c0 d0"], ["÷ no game", "beside", "c1 d0"]]
    .map(([name, other, own]) => ({ name, look: own, values: runningRatio(all, window, k, other) }))
    .filter(({ name, values }, i) => i === 0 || values.some((value) => value !== null));
  const worse = drawnRatios[0].values.map((value) => (value !== null && value > 1 ? value : null));
  const red = { look: "worse", low: worse.map((value) => (value === null ? null : 1)), high: worse };
  ratios.draw({ steps, bands: [red], lines: drawnRatios, include: [1], rule: 1, log: true, line: times });
  weights.draw({
    steps, bands: [], include: [0], rule: 0, line: times,
    lines: names.map((name, i) => ({ name, look: look(i), values: all.map((each) => (each.weights === null || name in each.absent ? null : (each.weights?.[i] ?? null))) })),
  });
  showForecast(present, k, coverages);
  if (present !== null) agents.weights(names.map((name) => present.weights[name] ?? 0));
  agents.sparks(all, k);
  const words = all.length ? `steps ${steps[0]} to ${steps.at(-1)}${rows.every > 1 ? `, one in ${rows.every}` : ""}; errors over ${window * rows.every} steps` : "nothing yet";
  put("shown", words);
}

function redraw() {
  if (!dirty) {
    dirty = true;
    requestAnimationFrame(draw);
  }
}

async function load() {
  try {
    await rows.load();
    at("trouble").hidden = true;
  } catch (error) {
    if (error instanceof Refused && error.status !== 401) {
      at("trouble").textContent = error.message;
      at("trouble").hidden = false;
    }
    return; // the connection broke: missing rows are queried after reconnection
  }
  redraw();
}

// Schedules a query of scores, games and agents' states; changes until then are included.
function lookSoon() {
  if (!planned) planned = setTimeout(lookNow, Math.max(0, looked + OFTEN - Date.now()));
}

async function lookNow() {
  clearTimeout(planned);
  planned = 0;
  looked = Date.now();
  try {
    const [status, told] = await Promise.all([ask("status"), ask("agents")]);
    showStatus(status);
    agents.show(told.agents, status.scores.recent.persistence_mse);
    at("trouble").hidden = status.ready;
    if (!status.ready) at("trouble").textContent = status.why ?? "Observations are not accepted at present: /readyz says why.";
    targets(status.settings.serve.y_dim);
    put("now", status.step === null ? "no observation yet" : `step ${whole(status.step)}`);
  } catch { /* the connection status shows it */ }
}

function targets(count) {
  const choice = at("target");
  if (choice.options.length === count) return;
  choice.replaceChildren(...Array.from({ length: count }, (_, i) => new Option(String(i + 1), String(i))));
  at("target-choice").hidden = count < 2;
}

function line(state, why = "") {
  document.documentElement.dataset.line = state;
  put("line-words", why ? `${LINES[state]}: ${why}` : LINES[state]);
}

function told(kind, data) {
  if (kind === "hello") {
    [names, coverages] = [data.agents, data.coverages];
    put("intervals", `${coverages.map(percent).join(" and ")} ${coverages.length > 1 ? "intervals" : "interval"}`);
    agents.build(names);
    rows.begun = data.step !== null;
    ask("log", { limit: 50 }).then((found) => log.load(found.log), () => {});
    load();
    lookNow();
  } else if (kind === "missed") {
    load();
  } else if (kind === "steps") {
    log.add(data.log);
    if (rows.merge(data)) load();
    if (data.targets.length) put("now", `step ${whole(Math.max(...data.targets.map((each) => each.step)))}`);
    redraw();
    lookSoon();
  }
}

async function start() {
  try {
    at("token-form").hidden = true;
    await ask("status");
    at("main").hidden = false;
    at("forget").hidden = !token.get();
    await follow(told, line);
  } catch (error) {
    if (!(error instanceof Refused)) {
      line("reconnecting");
      setTimeout(start, 2000);
      return;
    }
    line("ended", error.status === 401 && !token.get() ? "a token is needed" : error.message);
    at("token-form").hidden = false;
    put("token-trouble", token.get() ? error.message : "");
    token.forget();
    at("forget").hidden = true;
    at("token").focus();
  }
}

at("token-form").addEventListener("submit", (event) => {
  event.preventDefault();
  token.set(at("token").value.trim());
  at("token").value = "";
  start();
});
at("forget").addEventListener("click", () => {
  token.forget();
  location.reload();
});
addEventListener("hashchange", () => {
  if (!location.hash.startsWith("#token=")) return;
  token.take();
  location.reload();
});

function choose() {
  const chosen = at("range").elements.range.value, custom = chosen === "custom";
  at("custom").hidden = !custom;
  if (custom) {
    if (at("to").value === "" && rows.newest !== null) at("to").value = rows.newest;
    if (at("from").value === "") at("from").value = rows.all[0]?.step ?? 0;
    const [from, to] = [Number(at("from").value), Number(at("to").value)];
    if (!Number.isInteger(from) || !Number.isInteger(to) || from < 0 || to < from) return;
    rows.range = { from, to };
  } else {
    rows.range = { last: chosen === "all" ? null : Number(chosen) };
  }
  load();
}
at("range").addEventListener("change", (event) => {
  if (event.target.id === "target") {
    k = Number(event.target.value);
    redraw();
  } else {
    choose();
  }
});
at("range").addEventListener("submit", (event) => {
  event.preventDefault();
  choose();
});

token.take();
wireTheme();
wireTabs(document.querySelector("[role=tablist]"), redraw);
setInterval(() => agents.tick(), 1000);
setInterval(() => {
  if (!at("main").hidden && Date.now() - looked > SELDOM) lookNow();
}, 1000);
start();
