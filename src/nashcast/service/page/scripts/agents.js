// Table of agents, the most useful first, with their states, weights and errors.

import { element, spark } from "./chart.js";
import { NONE, ago, fixed, moment, number } from "./format.js";
import { put } from "./panels.js";
import { VERDICTS, trust } from "./words.js";

const COLOURS = 6, DASHES = 4, SPARK = 60;

// Line style of an agent, the same in all charts.
export const look = (i) => `c${i % COLOURS} d${Math.floor(i / COLOURS) % DASHES}`;

export class Agents {
  #body = document.querySelector("#agents tbody");
  #rows = [];
  #told = [];
  #sorted = "";

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
      for (const part of ["state", "trust", "weight", "error", "spark"]) {
        cells[part] = document.createElement("td");
        cells[part].setAttribute("role", "cell");
        cells[part].className = ["state", "trust", "spark"].includes(part) ? part : "number";
        line.append(cells[part]);
      }
      [cells.verdict, cells.why] = [document.createElement("b"), document.createElement("span")];
      cells.why.className = "quiet";
      cells.trust.append(cells.verdict, cells.why);
      cells.line = element("svg", { viewBox: "0 0 120 26", preserveAspectRatio: "none", role: "img", "aria-label": `misses of ${name}` }, cells.spark);
      element("path", {}, cells.line);
      cells.weight.dataset.label = "weight";
      cells.error.dataset.label = "RMSE";
      return { name, look: look(i), line, cells };
    });
    this.#sorted = "";
    this.#body.replaceChildren(...this.#rows.map((row) => row.line));
  }

  // Updates the table from the service's data. persistence: its mean squared error over the same steps.
  show(agents, persistence) {
    this.#told = agents;
    agents.forEach((agent, i) => {
      const row = this.#rows[i];
      if (row === undefined) return;
      const { cells } = row, [verdict, why] = trust(agent);
      if (cells.state.dataset.state !== agent.state) {
        cells.state.dataset.state = agent.state;
        cells.state.textContent = agent.state;
      }
      cells.state.title = agent.reason ?? "";
      cells.verdict.textContent = verdict;
      cells.verdict.dataset.verdict = VERDICTS[verdict] ?? "";
      if (agent.state === "in") cells.why.textContent = why;
      cells.why.title = why;
      cells.error.textContent = agent.error === null ? NONE : number(Math.sqrt(agent.error), 3);
      cells.error.dataset.good = agent.error === null || persistence === null ? "" : String(agent.error <= 1.01 * persistence);
      this.weigh(i, agent.weight);
    });
    this.sum(agents.map((agent) => agent.weight));
    this.#rank();
    this.#best();
    this.tick();
  }

  // The order changes only when the page opens and when an agent leaves or returns.
  #rank() {
    const states = this.#told.map((agent) => `${agent.state === "in"} ${agent.rank === null}`).join();
    if (states === this.#sorted || this.#told.length !== this.#rows.length) return;
    this.#sorted = states;
    const key = (i) => (this.#told[i].state === "in" ? 0 : 1e6) + (this.#told[i].rank ?? 1e3);
    const order = this.#rows.map((_, i) => i).sort((a, b) => key(a) - key(b) || a - b);
    this.#body.replaceChildren(...order.map((i) => this.#rows[i].line));
  }

  #best() {
    const there = this.#told.filter((agent) => agent.state === "in" && agent.rank !== null);
    const best = there.sort((a, b) => a.rank - b.rank)[0];
    put("trusted", best?.name ?? NONE);
    put("trusted-words", best ? trust(best).filter(Boolean).reverse()[0] : "not known yet");
    const listed = (wanted) => this.#told.filter((agent) => agent.in_game === wanted).map((agent) => agent.name).join(", ") || NONE;
    put("joint-in", listed(true));
    put("joint-out", listed(false));
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

  // Updates relative times also without events.
  tick() {
    this.#told.forEach((agent, i) => {
      const cell = this.#rows[i]?.cells.why;
      if (cell === undefined || agent.state === "in") return;
      const seen = agent.last_seen === null ? "never seen" : `seen ${ago(Date.now() / 1000 - agent.last_seen)}`;
      cell.textContent = `${seen}: ${agent.reason ?? agent.state}`;
      cell.title = agent.last_seen === null ? cell.textContent : `${moment(agent.last_seen)}: ${agent.reason ?? agent.state}`;
    });
  }

  sparks(rows, k) {
    const last = rows.filter((row) => row.target !== null && row.agents !== null).slice(-SPARK);
    this.#rows.forEach(({ name, look: own, cells }, i) => {
      spark(cells.line, last.map((row) => (name in row.absent || row.agents[i][k] === null ? null : Math.abs(row.agents[i][k] - row.target[k]))), own);
    });
  }
}
