// The service behind this page: requests with the token, and its events for as long as the page is open.

const KEPT = "nashcast-token";
// Seconds: without a word after which the line counts as broken, and between two tries at first and at most.
const SILENCE = 40, FIRST = 0.5, MOST = 8;

export class Refused extends Error {
  constructor(status, message) {
    super(message);
    this.status = status;
  }
}

export const token = {
  get: () => sessionStorage.getItem(KEPT),
  set: (secret) => sessionStorage.setItem(KEPT, secret),
  forget: () => sessionStorage.removeItem(KEPT),
  // Handed over in the address: taken out of it at once, so that it is neither seen nor kept with it.
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

// The stream whose page this is; on the page of all streams there is none.
const here = location.pathname.match(/^(.*\/)streams\/([^/]+)$/);
const base = here ? `../v1/streams/${here[2]}/` : "v1/";

export async function ask(path, query = {}) {
  const given = Object.entries(query).filter(([, value]) => value !== null && value !== undefined);
  const answer = await request(`${base}${path}${given.length ? `?${new URLSearchParams(given)}` : ""}`);
  return answer.json();
}

const pause = (seconds) => new Promise((done) => setTimeout(done, seconds * 1000));

// Calls told(kind, data) for each event and line("live" | "reconnecting" | "ended", why) as the line changes.
// Ends when the service refuses: who has another token calls it again.
export async function follow(told, line) {
  let wait = FIRST, ended = null;
  for (;;) {
    const stop = new AbortController();
    let timer;
    const heard = () => {
      clearTimeout(timer);
      timer = setTimeout(() => stop.abort(), SILENCE * 1000);
    };
    try {
      heard();
      const answer = await request(`${base}events`, { signal: stop.signal });
      for await (const [kind, data] of events(answer.body, heard)) {
        wait = FIRST;
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
    // A service that was stopped may be started again.
    if (ended) line("ended", ended);
    else line("reconnecting");
    await pause(wait * (0.75 + 0.5 * Math.random()));
    wait = Math.min(2 * wait, MOST);
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
