// An agent of a nashcast federation without nashcast: its forecasts are mixed with those of all other agents.
//
//     node agent.mjs tls://HOST:PORT/FEDERATION NAME --key NAME.seed --certs FOLDER
//
// Node 18 or later, no packages. The model is in forecaster.mjs; this file follows the hub's log and answers it. What
// the messages are is in docs/reference/remote-protocol.md.

import { parseArgs } from "node:util";

import { Forecaster } from "./forecaster.mjs";
import { decode, encode, Tensor } from "./msgpack.mjs";
import { connect, Refused } from "./nats.mjs";

const PROTOCOL = 2;
const RETRY_MS = 250;
const LOG_MS = 2000;

export class Agent {
  // readLog(first): the parts of the hub's durable log that hold events from `first` on.
  constructor(name, readLog) {
    Object.assign(this, { name, readLog, run: -1, number: 0, model: null });
  }

  hello() {
    const at = this.run === -1 ? -1 : this.number;
    return encode({ v: 1, type: "hello", version: PROTOCOL, name: this.name, share: "forecasts", public_key: null, at, run: this.run });
  }

  // The answer to a message, or null if none is asked for.
  async hear(told) {
    const began = performance.now();
    let found;
    try {
      await this.follow(told);
      found = this.answer(told.ask);
    } catch (error) {
      found = { reason: String(error.message).replace(/[^ -~]/g, " ").slice(0, 500) };
      console.error(`${this.name}: ${found.reason}`);
    }
    if (told.ask === "") return null;
    const { own = null, terms = null, reason = "" } = found;
    const traits = this.model && { type: "traits", experts: 1, quantiles: false };
    const seconds = (performance.now() - began) / 1000;
    return encode({ v: 1, type: "said", run: this.run, name: this.name, number: this.number, traits, own, terms, reason, seconds });
  }

  // Take all events up to the end of a message; those before it are read from the log.
  async follow({ run, number, events }) {
    const have = run === this.run ? this.number : 0;
    if (number > have) for (const part of await this.readLog(run)) this.takeAll(part);
    this.takeAll({ run, number, events });
  }

  takeAll({ run, number, events }) {
    events.forEach((bytes, i) => {
      if (run === this.run && number + i < this.number) return; // known
      if (number + i !== (run === this.run ? this.number : 0)) throw new Error(`events before ${number + i} were missed`);
      this.take(decode(bytes), run);
      this.run = run;
      this.number = number + i + 1;
    });
  }

  take(event, run) {
    if (event.type === "opening") {
      if (!event.names.includes(this.name)) throw new Error(`run ${run} goes on without ${this.name}`);
      this.form = { targets: event.start.values.length, horizon: event.horizon };
      this.model = new Forecaster({ start: [...event.start.values], horizon: event.horizon });
    } else if (event.type === "input") {
      this.forecasts = this.model.forecast([...event.x.values]);
    } else if (event.type === "label") {
      this.model.learn([...(event.target ?? event.stand_in).values], event.target !== null);
    } // sums, recalled, keys: of the joint game. late_label: this model learns labels in time only
  }

  answer(ask) {
    if (ask === "hello") return {};
    if (ask === "recall") return { terms: [] };
    const { targets, horizon } = this.form;
    const experts = new Tensor([targets, horizon, 1], Float64Array.from(this.forecasts.flat()));
    return { own: { type: "own", experts, leverage: Tensor.zeros(targets, 1), distance: null }, terms: [] };
  }
}

// Connected to the broker until told to end; when the line breaks, connected again.
class Runner {
  constructor(hub, name, key, certs) {
    const { protocol, host, pathname } = new URL(hub);
    this.federation = pathname.slice(1);
    this.own = `nc.${this.federation}.agent.${name}`;
    this.settings = { url: `${protocol}//${host}`, name, seed: key, certs };
    this.agent = new Agent(name, (run) => this.readLog(run));
    this.turn = Promise.resolve(); // messages are answered one after the other
    this.inbox = null;
  }

  async run() {
    for (let told = ""; ; ) {
      try {
        await this.connected();
        told = "";
      } catch (error) {
        if (error instanceof Refused) throw error;
        if (error.message !== told) console.error(`${this.agent.name}: ${(told = error.message)}`);
      }
      await new Promise((resolve) => setTimeout(resolve, RETRY_MS));
    }
  }

  async connected() {
    let closed;
    const over = new Promise((resolve) => (closed = resolve));
    this.client = await connect({ ...this.settings, onMessage: (message) => this.received(message), onClose: closed });
    console.error(`${this.agent.name}: connected to ${this.settings.url}`);
    for (const subject of [`${this.own}.ask`, `nc.${this.federation}.all`, `_INBOX_${this.agent.name}.>`]) this.client.subscribe(subject);
    this.client.publish(`${this.own}.tell`, this.agent.hello());
    const error = await over;
    if (error) throw error;
  }

  received(message) {
    if (message.subject.startsWith("_INBOX_")) this.inbox?.(message);
    else this.turn = this.turn.then(() => this.answered(message)).catch((error) => console.error(error));
  }

  async answered({ subject, reply, data }) {
    const message = decode(data);
    if (message.type === "notice" && message.kind === "begins") this.client.publish(`${this.own}.tell`, this.agent.hello());
    if (message.type !== "told") return;
    const answer = await this.agent.hear(message);
    if (answer) this.client.publish(subject.endsWith(".ask") ? reply : `${this.own}.tell`, answer);
  }

  // The log of a run, from the durable stream: all messages from sequence 1 on, in batches.
  async readLog(run) {
    const parts = [];
    for (let next = 1, more = true; more; ) {
      const wanted = { seq: next, batch: 256, next_by_subj: `nc.${this.federation}.steps` };
      const before = next;
      more = await new Promise((resolve, reject) => {
        const timer = setTimeout(() => reject(new Error("the broker sent no more of the log")), LOG_MS);
        const done = (value) => (clearTimeout(timer), resolve(value));
        this.inbox = ({ headers, data }) => {
          if (headers.Status) return done(headers.Status === "204" && Number(headers["Nats-Num-Pending"] ?? 0) > 0 && next > before);
          next = Number(headers["Nats-Sequence"]) + 1;
          const part = decode(data);
          if (part.type === "log_part" && part.run === run) parts.push(part);
          if (headers["Nats-Num-Pending"] === undefined) done(true); // a broker before 2.11 sends one at a time
        };
        this.client.publish(`$JS.API.DIRECT.GET.nashcast-${this.federation}`, Buffer.from(JSON.stringify(wanted)), `_INBOX_${this.agent.name}.log`);
      });
    }
    return parts;
  }
}

if (process.argv[1] === new URL(import.meta.url).pathname) {
  const { values, positionals } = parseArgs({ allowPositionals: true, options: { key: { type: "string" }, certs: { type: "string" } } });
  const [hub, name] = positionals;
  if (!hub || !name || !values.key) {
    console.error("usage: node agent.mjs tls://HOST:PORT/FEDERATION NAME --key NAME.seed --certs FOLDER");
    process.exit(2);
  }
  process.on("SIGTERM", () => process.exit(0));
  new Runner(hub, name, values.key, values.certs).run().catch((error) => {
    console.error(`${name}: ${error.message}`);
    process.exit(1);
  });
}
