// Messages as bytes and back: the part of msgpack that the protocol uses, and its arrays.
//
// A map is an object, bytes are a Buffer, an array of numbers is a Tensor. Whole numbers beyond 2^53 are BigInt: the
// number of a run is one.

export class Tensor {
  // values: a Float64Array, last axis fastest.
  constructor(shape, values) {
    this.shape = shape;
    this.values = values;
  }

  static zeros(...shape) {
    return new Tensor(shape, new Float64Array(shape.reduce((a, b) => a * b, 1)));
  }
}

export const encode = (message) => Buffer.concat([...parts(message)]);

function* parts(value) {
  if (value === null || value === undefined) yield Buffer.from([0xc0]);
  else if (typeof value === "boolean") yield Buffer.from([value ? 0xc3 : 0xc2]);
  else if (typeof value === "bigint") yield whole(value);
  else if (typeof value === "number") yield Number.isSafeInteger(value) ? whole(BigInt(value)) : float(value);
  else if (typeof value === "string") {
    const bytes = Buffer.from(value);
    yield head(bytes.length, [0xa0, 32], [0xd9, 0xda, 0xdb]);
    yield bytes;
  } else if (Buffer.isBuffer(value)) {
    yield head(value.length, null, [0xc4, 0xc5, 0xc6]);
    yield value;
  } else if (value instanceof Tensor) {
    const { buffer, byteOffset, byteLength } = value.values;
    yield* parts(["<f8", value.shape, Buffer.from(buffer, byteOffset, byteLength)]); // little end first on all of today's machines
  } else if (Array.isArray(value)) {
    yield head(value.length, [0x90, 16], [null, 0xdc, 0xdd]);
    for (const part of value) yield* parts(part);
  } else {
    const fields = Object.entries(value);
    yield head(fields.length, [0x80, 16], [null, 0xde, 0xdf]);
    for (const [name, part] of fields) {
      yield* parts(name);
      yield* parts(part);
    }
  }
}

// short: the first byte for lengths below a limit.   first: the first bytes for lengths of 1, 2 and 4 bytes.
function head(length, short, first) {
  if (short && length < short[1]) return Buffer.from([short[0] | length]);
  if (first[0] !== null && length < 1 << 8) return Buffer.from([first[0], length]);
  if (length < 1 << 16) return Buffer.from([first[1], length >> 8, length & 255]);
  const long = Buffer.alloc(5, first[2]);
  long.writeUInt32BE(length, 1);
  return long;
}

function whole(value) {
  if (value >= 0n && value < 128n) return Buffer.from([Number(value)]);
  if (value < 0n && value >= -32n) return Buffer.from([256 + Number(value)]);
  for (const [i, bits] of [8n, 16n, 32n, 64n].entries()) {
    const fits = value >= 0n ? value < 1n << bits : value >= -(1n << (bits - 1n));
    if (!fits) continue;
    const bytes = BigInt.asUintN(Number(bits), value).toString(16).padStart(Number(bits) / 4, "0");
    return Buffer.concat([Buffer.from([(value >= 0n ? 0xcc : 0xd0) + i]), Buffer.from(bytes, "hex")]);
  }
  throw new RangeError(`${value} has more than 64 bits`);
}

function float(value) {
  const bytes = Buffer.alloc(9, 0xcb);
  bytes.writeDoubleBE(value, 1);
  return bytes;
}

export function decode(bytes) {
  const reader = new Reader(Buffer.from(bytes));
  const value = reader.value();
  if (reader.at !== reader.bytes.length) throw new RangeError(`${reader.bytes.length - reader.at} bytes too many`);
  return value;
}

class Reader {
  at = 0;

  constructor(bytes) {
    this.bytes = bytes;
  }

  take(count) {
    if (this.at + count > this.bytes.length) throw new RangeError(`cut off after ${this.bytes.length} bytes`);
    this.at += count;
    return this.bytes.subarray(this.at - count, this.at);
  }

  number(bytes) {
    return this.take(bytes).readUIntBE(0, bytes);
  }

  value() {
    const first = this.number(1);
    if (first < 0x80) return first;
    if (first < 0x90) return this.map(first & 15);
    if (first < 0xa0) return this.list(first & 15);
    if (first < 0xc0) return this.take(first & 31).toString();
    if (first >= 0xe0) return first - 256;
    switch (first) {
      case 0xc0: return null;
      case 0xc2: return false;
      case 0xc3: return true;
      case 0xc4: case 0xc5: case 0xc6: return this.take(this.number(1 << (first - 0xc4)));
      case 0xcb: return this.take(8).readDoubleBE(0);
      case 0xcc: case 0xcd: case 0xce: return this.number(1 << (first - 0xcc));
      case 0xcf: return small(this.take(8).readBigUInt64BE(0));
      case 0xd0: return this.take(1).readInt8(0);
      case 0xd1: return this.take(2).readInt16BE(0);
      case 0xd2: return this.take(4).readInt32BE(0);
      case 0xd3: return small(this.take(8).readBigInt64BE(0));
      case 0xd9: case 0xda: case 0xdb: return this.take(this.number(1 << (first - 0xd9))).toString();
      case 0xdc: case 0xdd: return this.list(this.number(2 << (first - 0xdc)));
      case 0xde: case 0xdf: return this.map(this.number(2 << (first - 0xde)));
    }
    throw new RangeError(`byte 0x${first.toString(16)} begins nothing that the protocol uses`);
  }

  list(length) {
    const found = Array.from({ length }, () => this.value());
    if (found.length !== 3 || found[0] !== "<f8" || !Buffer.isBuffer(found[2])) return found;
    const values = new Float64Array(found[2].length / 8);
    Buffer.from(values.buffer).set(found[2]);
    return new Tensor(found[1], values);
  }

  map(length) {
    return Object.fromEntries(Array.from({ length }, () => [this.value(), this.value()]));
  }
}

const small = (value) => (BigInt(Number.MAX_SAFE_INTEGER) >= value && value >= BigInt(Number.MIN_SAFE_INTEGER) ? Number(value) : value);
