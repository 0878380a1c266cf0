// Formats numbers and times; a dash where there is none.

export const NONE = "–";
const MINUS = "\u2212";

export function number(value, digits = 4) {
  if (value === null || value === undefined || !Number.isFinite(value)) return NONE;
  const size = Math.abs(value);
  let text;
  if (size !== 0 && (size >= 10 ** (digits + 2) || size < 1e-3)) {
    const [head, power] = value.toExponential(digits - 2).split("e");
    text = `${head}e${Number(power)}`;
  } else {
    text = value.toFixed(Math.max(0, digits - 1 - Math.floor(Math.log10(size || 1))));
  }
  return text.replace(/-/g, MINUS);
}

// Formats several numbers with the decimals of the largest, for comparison.
export function alike(values, digits = 4) {
  const known = values.filter((value) => Number.isFinite(value) && value !== null);
  const size = Math.max(...known.map(Math.abs), 0);
  if (size !== 0 && (size >= 10 ** (digits + 2) || size < 1e-3)) return values.map((value) => number(value, digits));
  const decimals = Math.max(0, digits - 1 - Math.floor(Math.log10(size || 1)));
  return values.map((value) => (value === null || value === undefined ? NONE : fixed(value, decimals)));
}

export const percent = (share) => `${Number((100 * share).toFixed(2))} %`;

export const fixed = (value, digits = 3) =>
  value === null || value === undefined || !Number.isFinite(value) ? NONE : value.toFixed(digits).replace("-", MINUS);

export const whole = (value) => (value === null || value === undefined ? NONE : value.toLocaleString("en"));

// Fixed decimals for a ratio below 1000, significant digits above.
export const ratio = (value) => (value !== null && value < 1000 ? fixed(value) : number(value, 3));

export function ago(seconds) {
  if (seconds < 90) return `${Math.max(1, Math.round(seconds))} s ago`;
  if (seconds < 5400) return `${Math.round(seconds / 60)} min ago`;
  if (seconds < 129600) return `${Math.round(seconds / 3600)} h ago`;
  return `${Math.round(seconds / 86400)} d ago`;
}

export const clock = (seconds) => new Date(seconds * 1000).toLocaleTimeString("en-GB");
export const moment = (seconds) => new Date(seconds * 1000).toLocaleString("en-GB");

export function bytes(count) {
  if (count < 1e6) return `${Math.round(count / 1e3)} kB`;
  return count < 1e9 ? `${(count / 1e6).toFixed(1)} MB` : `${(count / 1e9).toFixed(1)} GB`;
}
