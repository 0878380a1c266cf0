// A client of the broker: NATS over mutual TLS, signed in with an nkey. The protocol is lines of text.
//
// https://docs.nats.io/reference/reference-protocols/nats-protocol

import crypto from "node:crypto";
import fs from "node:fs";
import net from "node:net";
import path from "node:path";
import tls from "node:tls";

const DIAL_MS = 5000;

export class Refused extends Error {}

// The identity in a seed file (SU…): base 32 of two bytes that say what it is, 32 of an Ed25519 key, two of a checksum.
export function identity(file) {
  const bytes = base32(fs.readFileSync(file, "utf8").trim());
  if (bytes.length !== 36) throw new Error(`${file} is no seed of a user (SU…)`);
  const der = Buffer.concat([Buffer.from("302e020100300506032b657004220420", "hex"), bytes.subarray(2, 34)]);
  const key = crypto.createPrivateKey({ key: der, format: "der", type: "pkcs8" });
  const raw = crypto.createPublicKey(key).export({ format: "der", type: "spki" }).subarray(-32);
  const named = Buffer.concat([Buffer.from([20 << 3]), raw]); // 20: U in base 32, a user
  const check = Buffer.alloc(2);
  check.writeUInt16LE(crc16(named));
  return { publicKey: inBase32(Buffer.concat([named, check])), sign: (text) => crypto.sign(null, Buffer.from(text), key) };
}

// Connect as agent `name`.   onMessage({subject, reply, headers, data}): for every message.   onClose(error): at the end.
export async function connect({ url, name, seed, certs, onMessage, onClose }) {
  const { protocol, hostname, port } = new URL(url);
  const options = { host: hostname, port: Number(port) };
  const read = (file) => fs.readFileSync(path.join(certs, file));
  const socket =
    protocol === "tls:"
      ? tls.connect({ ...options, minVersion: "TLSv1.3", ca: read("ca.pem"), cert: read(`${name}.pem`), key: read(`${name}-key.pem`) })
      : net.connect(options);
  const client = new Client(socket, name, identity(seed), onMessage);
  socket.setNoDelay(true);
  await client.ready(DIAL_MS);
  if (socket.destroyed) throw client.error ?? new Error("the broker closed the connection");
  socket.on("close", () => onClose(client.error));
  return client;
}

class Client {
  constructor(socket, name, who, onMessage) {
    Object.assign(this, { socket, name, who, onMessage, pending: Buffer.alloc(0), error: null, subscriptions: 0 });
    this.opened = new Promise((resolve, reject) => Object.assign(this, { resolve, reject }));
    socket.on("data", (bytes) => this.received(bytes));
    socket.on("error", (error) => this.reject((this.error = error)));
    socket.on("close", () => this.reject(this.error ?? new Error("the broker closed the connection")));
  }

  async ready(ms) {
    const timer = setTimeout(() => this.socket.destroy(new Error(`no answer within ${ms} ms`)), ms);
    try {
      await this.opened;
    } finally {
      clearTimeout(timer);
    }
  }

  subscribe(subject) {
    this.socket.write(`SUB ${subject} ${++this.subscriptions}\r\n`);
  }

  publish(subject, data, reply = "") {
    this.socket.write(Buffer.concat([Buffer.from(`PUB ${subject} ${reply} ${data.length}\r\n`), data, Buffer.from("\r\n")]));
  }

  close() {
    this.socket.end();
  }

  received(bytes) {
    this.pending = Buffer.concat([this.pending, bytes]);
    for (let end; (end = this.pending.indexOf("\r\n")) >= 0; ) {
      const words = this.pending.subarray(0, end).toString().split(/\s+/);
      let used = end + 2;
      if (words[0] === "MSG" || words[0] === "HMSG") {
        const size = Number(words.at(-1));
        if (this.pending.length < used + size + 2) return; // the rest is on its way
        const heads = words[0] === "HMSG" ? Number(words.at(-2)) : 0;
        const content = Buffer.from(this.pending.subarray(used, used + size));
        const reply = words.length - (heads ? 5 : 4) > 0 ? words[3] : null;
        used += size + 2;
        this.pending = this.pending.subarray(used);
        this.onMessage({ subject: words[1], reply, headers: headers(content.subarray(0, heads)), data: content.subarray(heads) });
        continue;
      }
      const line = this.pending.subarray(0, end).toString();
      this.pending = this.pending.subarray(used);
      if (words[0] === "INFO") this.introduce(JSON.parse(line.slice(5)));
      else if (words[0] === "PING") this.socket.write("PONG\r\n");
      else if (words[0] === "PONG") this.resolve();
      else if (words[0] === "-ERR") this.failed(line.slice(5));
    }
  }

  introduce({ nonce }) {
    if (this.introduced || !nonce) return; // a broker tells later what else it knows
    this.introduced = true;
    const sig = this.who.sign(nonce).toString("base64url");
    const about = { nkey: this.who.publicKey, sig, name: this.name, lang: "javascript", version: "1", verbose: false };
    this.socket.write(`CONNECT ${JSON.stringify({ ...about, pedantic: false, protocol: 1, headers: true, no_responders: true })}\r\nPING\r\n`);
  }

  failed(words) {
    const refused = words.toLowerCase().includes("authorization violation");
    this.error = refused ? new Refused(`the broker does not know the key ${this.who.publicKey}, or it was revoked`) : new Error(words);
  }
}

// "NATS/1.0 404 Message Not Found\r\nName: value\r\n\r\n" → { Status: "404", Name: "value" }
function headers(bytes) {
  const [first, ...lines] = bytes.toString().split("\r\n");
  const found = Object.fromEntries(lines.filter(Boolean).map((line) => [line.split(":")[0], line.slice(line.indexOf(":") + 1).trim()]));
  const status = first.split(" ")[1];
  return status ? { Status: status, ...found } : found;
}

const LETTERS = "ABCDEFGHIJKLMNOPQRSTUVWXYZ234567";

function base32(text) {
  const bits = [...text].map((letter) => LETTERS.indexOf(letter).toString(2).padStart(5, "0")).join("");
  return Buffer.from(bits.match(/.{8}/g)?.map((byte) => parseInt(byte, 2)) ?? []);
}

function inBase32(bytes) {
  const bits = [...bytes].map((byte) => byte.toString(2).padStart(8, "0")).join("");
  return bits.match(/.{1,5}/g).map((five) => LETTERS[parseInt(five.padEnd(5, "0"), 2)]).join("");
}

// CRC-16/XMODEM.
function crc16(bytes) {
  let crc = 0;
  for (const byte of bytes) {
    crc ^= byte << 8;
    for (let bit = 0; bit < 8; bit++) crc = ((crc << 1) ^ (crc & 0x8000 ? 0x1021 : 0)) & 0xffff;
  }
  return crc;
}
