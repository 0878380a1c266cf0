// Descriptions of figures, shared by all pages.

import { NONE, number } from "./format.js";

const share = (value) => (value >= 9.995 ? `${number(value + 1, 2)} times` : `${Math.max(1, Math.round(100 * value))} %`);

// The ratio of root mean squared errors, from the ratio of mean squared ones.
export const rmseRatio = (ratio) => (ratio === null || ratio === undefined ? null : Math.sqrt(ratio));

// ratio: of root mean squared errors, the federation's divided by persistence's.
export function against(ratio) {
  if (ratio === null) return NONE;
  if (ratio > 1.005) return ratio > 1.995 ? `${number(ratio, 2)} × worse` : `${share(ratio - 1)} worse`;
  return ratio < 0.995 ? `${share(1 - ratio)} better` : "about equal";
}

// Which colour a comparison has: "false" is red.
export const good = (ratio) => (ratio === null ? "" : String(ratio <= 1.005));

// Achieved and nominal coverage.
export function covered({ nominal, achieved }) {
  const of = `of ${Number((100 * nominal).toFixed(1))} %`;
  return achieved === null ? `${NONE} ${of}` : `${(100 * achieved).toFixed(achieved > 0.985 || nominal > 0.985 ? 1 : 0)} ${of}`;
}

// Alarms, as the service names them.
const ALARMS = { errors: "errors jump", intervals: "intervals miss", coverage: "coverage off", agents: "agent gone" };
export const alarms = (raised) => raised.map((name) => ALARMS[name] ?? name).join(", ");

// Trust in an agent: a verdict, and the change of the error without it.
export function trust({ state, loss_without: loss }) {
  if (state !== "in") return ["not there", ""];
  if (loss === null) return ["not known yet", ""];
  // Change of the root mean squared error; the service reports that of the mean squared error.
  const change = Math.sqrt(Math.max(0, 1 + loss)) - 1;
  if (change >= 0.005) return [change >= 0.05 ? "relied on" : "helps", `error ${share(change)} larger without it`];
  if (change > -0.005) return ["makes no difference", ""];
  return ["does harm", `error ${share(-change)} smaller without it`];
}

export const VERDICTS = { "relied on": "good", helps: "good", "does harm": "bad", "not there": "bad" };
