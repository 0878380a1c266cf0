// The displayed steps: from the history, then from events; wide ranges are thinned to every n-th step.

import { ask } from "./service.js";

// Approximate number of rows of a wide range, and number at which it is thinned again.
const WANTED = 800, MOST = 1700;
const PAGE = 1000;

export class Rows {
  #rows = new Map();
  #sorted = null;
  #loading = 0;
  #waiting = [];
  range = { last: 500 };
  begun = false; // whether there is a forecast to query
  every = 1;
  newest = null; // step of the current forecast
  standing = null; // the current forecast, independent of the range

  // Queries the whole range. Events that arrive meanwhile are applied afterwards.
  async load() {
    const mine = ++this.#loading;
    this.#waiting = [];
    try {
      const found = await this.#found();
      if (mine !== this.#loading) return;
      Object.assign(this, found.about);
      [this.#rows, this.#sorted] = [found.rows, null];
    } finally {
      if (mine === this.#loading) this.#loading = 0;
    }
    const waiting = this.#waiting;
    this.#waiting = [];
    if (waiting.filter((message) => this.merge(message)).length) await this.load();
  }

  async #found() {
    const rows = new Map();
    if (!this.begun) return { rows, about: { standing: null, newest: null, every: 1 } };
    const standing = await ask("forecast");
    const newest = standing.step;
    const [from, to] = await this.#ends(newest);
    const every = Math.max(1, Math.ceil((to - from + 1) / WANTED));
    for (let at = from; at !== null;) {
      const part = await ask("history", { from: at, to, every, limit: PAGE });
      for (const row of part.rows) rows.set(row.step, row);
      at = part.next;
    }
    if (every > 1 && to === newest) {
      // The newest row is always included, on the grid or not.
      const end = await ask("history", { from: Math.max(0, newest - 1), to: newest, limit: 2 });
      for (const row of end.rows) rows.set(row.step, row);
    }
    return { rows, about: { standing, newest, every } };
  }

  async #ends(newest) {
    const { last, from, to } = this.range;
    if (from !== undefined) return [from, Math.max(from, Math.min(to, newest))];
    if (last !== null) return [Math.max(0, newest - last + 1), newest];
    const first = await ask("history", { from: 0, limit: 1 });
    return [first.rows[0]?.step ?? 0, newest];
  }

  // Applies an event. Returns whether the history must be queried again: steps are missing, withdrawn or too many.
  merge(message) {
    const { targets, forecasts, skipped, log } = message;
    if (this.#loading) {
      this.#waiting.push(message);
      return false;
    }
    if (skipped || log.some((each) => each.kind === "restore")) return true;
    const to = this.range.to ?? Infinity;
    for (const forecast of forecasts) {
      const { step } = forecast;
      this.begun = true;
      this.newest = step;
      if (step > to) continue;
      const before = this.#rows.get(step - 1)?.target ?? null;
      const row = this.#rows.get(step) ?? { step, at: null, time: null, target: null, late: false, persistence: before };
      this.#rows.set(step, Object.assign(row, forecast));
    }
    if (message.standing) this.standing = message.standing;
    for (const { step, at, time, target, late } of targets) {
      const row = this.#rows.get(step), next = this.#rows.get(step + 1);
      // A late target has no time of its step.
      if (row !== undefined) Object.assign(row, { at, target, late, time: time ?? row.time });
      if (next !== undefined) next.persistence = target;
    }
    this.#thin();
    return this.#rows.size > MOST;
  }

  #thin() {
    const from = this.range.from ?? (this.range.last === null ? 0 : this.newest - this.range.last + 1);
    const last = Math.min(this.newest, this.range.to ?? Infinity);
    for (const step of this.#rows.keys()) {
      if (step < from || (step % this.every && step < last - 1)) this.#rows.delete(step);
    }
    this.#sorted = null;
  }

  // In the order of their steps.
  get all() {
    this.#sorted ??= Array.from(this.#rows.values()).sort((a, b) => a.step - b.step);
    return this.#sorted;
  }
}

// Root mean squared errors of the last `window` rows, the federation's divided by another's, at each row.
export function runningRatio(rows, window, k, other) {
  const found = [], ours = [], theirs = [];
  let up = 0, down = 0;
  for (const row of rows) {
    const y = row.target?.[k], f = row.forecast?.[k], g = row[other]?.[k];
    if (y === undefined || f === undefined || g === undefined || g === null) {
      found.push(null);
      continue;
    }
    ours.push((f - y) ** 2);
    theirs.push((g - y) ** 2);
    up += ours.at(-1);
    down += theirs.at(-1);
    if (ours.length > window) {
      up -= ours[ours.length - window - 1];
      down -= theirs[theirs.length - window - 1];
    }
    found.push(ours.length >= Math.min(5, window) && down > 0 && up > 0 ? Math.sqrt(up / down) : null);
  }
  return found;
}
