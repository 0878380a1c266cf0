// Read every golden message, hold it against what it means, and write it again.
//
//     node check_vectors.mjs FOLDER

import assert from "node:assert/strict";
import fs from "node:fs";
import path from "node:path";

import { decode, encode, Tensor } from "./msgpack.mjs";

// What a decoded message says, as in the files.
function meaning(value) {
  if (value instanceof Tensor) return { shape: value.shape, values: [...value.values].map(meaning) };
  if (Buffer.isBuffer(value)) return { hex: value.toString("hex") };
  if (Array.isArray(value)) return value.map(meaning);
  if (typeof value === "bigint") return { int: value.toString() };
  if (typeof value === "number" && !Number.isFinite(value)) return { float: String(value).toLowerCase().replace("infinity", "inf") };
  if (value === null || typeof value !== "object") return value;
  return Object.fromEntries(Object.entries(value).map(([name, part]) => [name, meaning(part)]));
}

const [folder] = process.argv.slice(2);
const SENT = ["hello.json", "said.json"]; // what an agent sends: to the byte
let count = 0;
for (const file of fs.readdirSync(folder).sort()) {
  for (const { what, hex, meaning: expected } of JSON.parse(fs.readFileSync(path.join(folder, file)))) {
    const message = decode(Buffer.from(hex, "hex"));
    const { v, ...rest } = meaning(message);
    assert.equal(v, 1, `${file}, ${what}`);
    assert.deepEqual(rest, expected, `${file}, ${what}`);
    const again = encode(message);
    if (SENT.includes(file)) assert.equal(again.toString("hex"), hex, `${file}, ${what}`);
    assert.deepEqual(meaning(decode(again)), meaning(message), `${file}, ${what}`);
    count += 1;
  }
}
console.log(`${count} messages`);
