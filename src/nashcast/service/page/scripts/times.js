// Dates along an axis of steps, in the browser's time zone.

const S = 1000, MIN = 60 * S, H = 60 * MIN, DAY = 24 * H;
const SHORT = [1, 2, 5, 10, 15, 30].map((n) => n * S).concat([1, 2, 5, 10, 15, 30].map((n) => n * MIN), [1, 2, 3, 6, 12].map((n) => n * H));
const DAYS = [1, 2, 3, 5, 7, 10, 14], MONTHS = [1, 2, 3, 6, 12, 24, 60, 120, 240];
const part = (options) => new Intl.DateTimeFormat("en-GB", options);
const CLOCK = part({ hour: "2-digit", minute: "2-digit" }), SECONDS = part({ hour: "2-digit", minute: "2-digit", second: "2-digit" });
const DATE = part({ day: "numeric", month: "short" }), MONTH = part({ month: "short", year: "numeric" }), YEAR = part({ year: "numeric" });
const WHOLE = part({ day: "numeric", month: "short", year: "numeric", hour: "2-digit", minute: "2-digit", second: "2-digit" });

export const date = (ms) => WHOLE.format(ms).replace(/:00$/, "");

// Steps and their times in milliseconds, both increasing; null where fewer than two are known.
export function timeline(pairs) {
  const steps = [], times = [];
  for (const [step, text] of pairs) {
    const ms = text === null || text === undefined ? NaN : Date.parse(text);
    if (Number.isFinite(ms) && (!steps.length || (step > steps.at(-1) && ms > times.at(-1)))) {
      steps.push(step);
      times.push(ms);
    }
  }
  return steps.length > 1 ? { steps, times } : null;
}

// Linear interpolation of ys at x over increasing xs; extrapolates beyond the ends.
function between(xs, ys, x) {
  let low = 0, high = xs.length - 1;
  while (high - low > 1) {
    const middle = (low + high) >> 1;
    if (xs[middle] <= x) low = middle;
    else high = middle;
  }
  return ys[low] + ((x - xs[low]) / (xs[high] - xs[low])) * (ys[high] - ys[low]);
}

export const timeAt = ({ steps, times }, step) => between(steps, times, step);

// Ticks {at, text} at round times from one step to another, about `wanted` of them.
export function dateTicks(line, first, last, wanted) {
  const from = timeAt(line, first), to = timeAt(line, last), raw = (0.8 * (to - from)) / Math.max(wanted, 1);
  const place = (ms) => between(line.times, line.steps, ms);
  const unit = SHORT.find((each) => each >= raw);
  const found = [];
  if (unit !== undefined) {
    // Counted from local midnight, so that ticks fall on whole local hours.
    const day = new Date(from);
    day.setHours(0, 0, 0, 0);
    for (let ms = day.getTime() + Math.ceil((from - day.getTime()) / unit) * unit; ms <= to; ms += unit) {
      const clock = new Date(ms), midnight = clock.getHours() + clock.getMinutes() + clock.getSeconds() === 0;
      const time = (unit < MIN ? SECONDS : CLOCK).format(ms);
      found.push({ at: place(ms), text: midnight ? DATE.format(ms) : found.length ? time : `${DATE.format(ms)}, ${time}` });
    }
    return found;
  }
  const days = DAYS.find((each) => each * DAY >= raw), at = new Date(from);
  at.setHours(0, 0, 0, 0);
  if (days !== undefined) {
    for (; at.getTime() <= to; at.setDate(at.getDate() + days)) {
      if (at.getTime() >= from) found.push({ at: place(at.getTime()), text: DATE.format(at) });
    }
    return found;
  }
  const months = MONTHS.find((each) => each * 31 * DAY >= raw) ?? 480;
  at.setDate(1);
  at.setMonth(Math.floor(at.getMonth() / Math.min(months, 12)) * Math.min(months, 12));
  for (; at.getTime() <= to; at.setMonth(at.getMonth() + months)) {
    if (at.getTime() >= from) found.push({ at: place(at.getTime()), text: (months >= 12 ? YEAR : MONTH).format(at) });
  }
  return found;
}
