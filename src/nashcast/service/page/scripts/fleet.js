// Table of all streams: polled every two seconds, updated in place, sorted and searched here.

import { element } from "./chart.js";
import { NONE, ago, number, whole } from "./format.js";
import { put } from "./panels.js";
import { Refused, ask, token } from "./service.js";
import { wireTheme } from "./theme_button.js";
import { against, alarms, covered, good, rmseRatio } from "./words.js";

const at = (id) => document.getElementById(id);
const EVERY = 2000;
// Sort key of each column; null is last in either order.
const KEYS = {
  name: (row) => row.name,
  // Failed streams first, then those with alarms.
  state: (row) => (row.state === "failed" ? 0 : row.alarms.length ? 1 : row.state === "loading" ? 2 : 3),
  rmse: (row) => row.rmse,
  error: (row) => row.against_persistence,
  coverage: (row) => gap(row),
  trusted: (row) => row.trusted,
  step: (row) => row.step,
  behind: (row) => row.behind,
  absent: (row) => row.absent,
  at: (row) => row.at,
};
const lines = new Map(); // by name: the row's element, its cells and their contents
let rows = [], sorted = { key: "name", down: false }, timer = 0;

const widest = (row) => row.coverage.at(-1) ?? null;

// Difference of achieved and nominal coverage.
function gap(row) {
  const found = widest(row);
  return found === null || found.achieved === null ? null : Math.abs(found.achieved - found.nominal);
}

function sparkPath(values) {
  const known = values.filter((value) => value !== null);
  if (known.length < 2) return "";
  const low = Math.min(...known), size = Math.max(...known) - low || 1;
  let path = "", pen = "M";
  values.forEach((value, i) => {
    if (value === null) {
      pen = "M";
      return;
    }
    path += `${pen}${((i / (values.length - 1)) * 118 + 1).toFixed(1)} ${(24 - ((value - low) / size) * 22).toFixed(1)}`;
    pen = "L";
  });
  return path;
}

function made(row) {
  const line = document.createElement("tr"), head = document.createElement("th"), link = document.createElement("a");
  head.scope = "row";
  link.href = `streams/${encodeURIComponent(row.name)}`;
  link.textContent = row.name;
  head.title = row.title;
  head.append(link);
  const cells = {};
  line.append(head);
  for (const [name, look] of [["state", ""], ["spark", ""], ["rmse", "number wide-only"], ["error", "number"], ["coverage", "number"], ["trusted", "wide-only"], ["step", "number wide-only"], ["behind", "number wide-only"], ["absent", "number wide-only"], ["at", "number wide-only"]]) {
    cells[name] = document.createElement("td");
    cells[name].className = look;
    line.append(cells[name]);
  }
  const picture = element("svg", { viewBox: "0 0 120 26", preserveAspectRatio: "none", "aria-hidden": "true" });
  cells.path = element("path", {});
  picture.append(cells.path);
  cells.spark.append(picture);
  return { line, cells, shown: "" };
}

const text = (cell, words) => {
  if (cell.textContent !== words) cell.textContent = words;
};

function show(row) {
  let known = lines.get(row.name);
  if (!known) lines.set(row.name, (known = made(row)));
  const { cells } = known, told = JSON.stringify(row), found = widest(row);
  text(cells.at, row.at === null ? NONE : ago(Date.now() / 1000 - row.at));
  if (known.shown === told) return known.line;
  known.shown = told;
  const raised = row.state === "failed" ? "" : alarms(row.alarms);
  text(cells.state, raised || row.state);
  cells.state.dataset.state = raised ? "alarm" : row.state;
  cells.state.title = row.why ?? raised;
  const ratio = rmseRatio(row.against_persistence);
  text(cells.rmse, row.rmse === null ? NONE : `${number(row.rmse, 3)}${row.units ? ` ${row.units}` : ""}`);
  text(cells.error, against(ratio));
  cells.error.dataset.good = good(ratio);
  text(cells.coverage, found === null || found.achieved === null ? NONE : covered(found));
  text(cells.trusted, row.trusted ?? NONE);
  text(cells.step, whole(row.step));
  text(cells.behind, row.behind ? whole(row.behind) : NONE);
  text(cells.absent, row.absent ? `${row.absent} of ${row.agents}` : NONE);
  cells.path.setAttribute("d", sparkPath(row.spark));
  return known.line;
}

function draw() {
  const words = at("search").value.trim().toLowerCase(), key = KEYS[sorted.key];
  const chosen = rows.filter((row) => !words || row.name.toLowerCase().includes(words) || row.title.toLowerCase().includes(words) || row.state.startsWith(words) || alarms(row.alarms).includes(words));
  chosen.sort((a, b) => {
    const [x, y] = [key(a), key(b)];
    if (x === null || y === null) return (x === null) - (y === null);
    const order = x < y ? -1 : x > y ? 1 : a.name < b.name ? -1 : 1;
    return sorted.down && x !== y ? -order : order;
  });
  const body = document.querySelector(".fleet tbody"), wanted = chosen.map(show);
  const same = wanted.length === body.children.length && wanted.every((line, i) => body.children[i] === line);
  if (!same) body.replaceChildren(...wanted);
  const failed = rows.filter((row) => row.state === "failed").length;
  const worse = rows.filter((row) => good(rmseRatio(row.against_persistence)) === "false").length;
  const alarmed = rows.filter((row) => row.alarms.length).length;
  put("shown", `${whole(chosen.length)} of ${whole(rows.length)} streams`);
  put("now", [failed ? `${failed} failed` : "", alarmed ? `${alarmed} with alarms` : "", worse ? `${worse} worse than persistence` : ""].filter(Boolean).join(", "));
}

function line(state, why = "") {
  document.documentElement.dataset.line = state;
  put("line-words", why || state);
}

async function look() {
  clearTimeout(timer);
  try {
    const found = await ask("streams");
    rows = found.streams;
    for (const name of lines.keys()) if (!rows.some((row) => row.name === name)) lines.delete(name);
    put("version", found.version);
    at("token-form").hidden = true;
    at("main").hidden = false;
    at("forget").hidden = !token.get();
    line("live");
    draw();
  } catch (error) {
    if (error instanceof Refused && [401, 403].includes(error.status)) {
      line("ended", token.get() ? error.message : "a token is needed");
      at("token-form").hidden = false;
      put("token-trouble", token.get() ? error.message : "");
      token.forget();
      at("token").focus();
      return;
    }
    line("reconnecting");
  }
  timer = setTimeout(look, EVERY);
}

document.querySelector(".fleet thead").addEventListener("click", (event) => {
  const key = event.target.closest("button")?.dataset.key;
  if (!key) return;
  sorted = { key, down: sorted.key === key ? !sorted.down : ["rmse", "error", "coverage", "behind", "absent", "at"].includes(key) };
  for (const head of document.querySelectorAll(".fleet thead th")) {
    if (head.firstElementChild?.dataset.key === key) head.setAttribute("aria-sort", sorted.down ? "descending" : "ascending");
    else head.removeAttribute("aria-sort");
  }
  draw();
});
at("search").addEventListener("input", draw);
at("find").addEventListener("submit", (event) => event.preventDefault());
at("token-form").addEventListener("submit", (event) => {
  event.preventDefault();
  token.set(at("token").value.trim());
  at("token").value = "";
  look();
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
wireTheme();
token.take();
look();
