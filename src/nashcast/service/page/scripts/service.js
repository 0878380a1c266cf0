// Client of the service: requests with the token, and its events while the page is open.

const TOKEN_KEY = "nashcast-token";
// Seconds: silence after which the connection counts as broken, and first and longest back-off.
const SILENCE_S = 40, BACKOFF_S = 0.5, MAX_BACKOFF_S = 8;

export class Refused extends Error {
  constructor(status, message) {
    super(message);
    this.status = status;
  }
}

export const token = {
  get: () => sessionStorage.getItem(TOKEN_KEY),
  set: (secret) => sessionStorage.setItem(TOKEN_KEY, secret),
  forget: () => sessionStorage.removeItem(TOKEN_KEY),
  // A token in the address is removed from it at once, so that it is neither displayed nor stored in the history.
  take() {
    const given = new URLSearchParams(location.hash.slice(1)).get("token");
    if (given === null) return;
    history.replaceState(null, "", location.pathname + location.search);
    if (given) this.set(given);
  },
};

async function request(path, options = {}) {
  const secret = token.get();
  const headers = secret ? { Authorization: `Bearer ${secret}` } : {};
  const answer = await fetch(path, { ...options, headers, cache: "no-store", credentials: "omit" });
  if (answer.ok) return answer;
  const told = await answer.json().catch(() => null);
  throw new Refused(answer.status, told?.error?.message ?? `the service answered ${answer.status}`);
}

// This page's stream; null on the page of all streams.
const here = location.pathname.match(/^(.*\/)streams\/([^/]+)$/);
const base = here ? `../v1/streams/${here[2]}/` : "v1/";

export async function ask(path, query = {}) {
  const given = Object.entries(query).filter(([, value]) => value !== null && value !== undefined);
  const answer = await request(`${base}${path}${given.length ? `?${new URLSearchParams(given)}` : ""}`);
  return answer.json();
}

const pause = (seconds) => new Promise((done) => setTimeout(done, seconds * 1000));

// Calls told(kind, data) for each event and line("live" | "reconnecting" | "ended", why) when the connection changes.
// Throws when the service refuses the token; call it again with another token.
export async function follow(told, line) {
  let wait = BACKOFF_S, ended = null;
  for (;;) {
    const stop = new AbortController();
    let timer;
    const heard = () => {
      clearTimeout(timer);
      timer = setTimeout(() => stop.abort(), SILENCE_S * 1000);
    };
    try {
      heard();
      const answer = await request(`${base}events`, { signal: stop.signal });
      for await (const [kind, data] of events(answer.body, heard)) {
        wait = BACKOFF_S;
        if (kind === "hello") {
          ended = null;
          line("live");
        } else if (kind === "end") {
          ended = data.why;
        }
        told(kind, data);
      }
    } catch (error) {
      if (error instanceof Refused && [401, 403].includes(error.status)) {
        line("ended", error.message);
        throw error;
      }
    } finally {
      clearTimeout(timer);
      stop.abort();
    }
    // A stopped service may be restarted.
    if (ended) line("ended", ended);
    else line("reconnecting");
    await pause(wait * (0.75 + 0.5 * Math.random()));
    wait = Math.min(2 * wait, MAX_BACKOFF_S);
  }
}

async function* events(body, heard) {
  const reader = body.pipeThrough(new TextDecoderStream()).getReader();
  let text = "";
  for (;;) {
    const { value, done } = await reader.read();
    if (done) return;
    heard();
    text += value;
    const parts = text.split("\n\n");
    text = parts.pop();
    for (const part of parts) {
      let kind = "message", data = "";
      for (const one of part.split("\n")) {
        if (one.startsWith("event: ")) kind = one.slice(7);
        else if (one.startsWith("data: ")) data += one.slice(6);
      }
      if (data) yield [kind, JSON.parse(data)];
    }
  }
}
