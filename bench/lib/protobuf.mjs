// Just enough of the protobuf wire format to speak to etcd without its schema: unsigned numbers and bytes.

/** Fields as `[number, value]`; a value is a whole number, a boolean, a text, bytes, or null to leave it out. */
export function encodeMessage(...fields) {
  return Buffer.concat(fields.filter(([, value]) => value !== null).map(encodeField));
}

/** The fields of a message: number -> list of bigints (numbers) or Buffers (bytes). */
export function decodeMessage(bytes) {
  const fields = new Map();
  let at = 0;
  const varint = () => {
    let value = 0n;
    for (let shift = 0n; ; shift += 7n) {
      const byte = bytes[at];
      at += 1;
      value |= BigInt(byte & 0x7f) << shift;
      if (byte < 0x80) return value;
    }
  };
  while (at < bytes.length) {
    const tag = Number(varint());
    let value = varint();
    if ((tag & 7) === 2) {
      at += Number(value);
      value = bytes.subarray(at - Number(value), at);
    } else if ((tag & 7) !== 0) {
      throw new Error(`cannot read a field of wire type ${tag & 7}`);
    }
    fields.set(tag >> 3, [...(fields.get(tag >> 3) ?? []), value]);
  }
  return fields;
}

function encodeField([number, value]) {
  if (typeof value === "number" || typeof value === "bigint" || typeof value === "boolean") {
    return Buffer.from([...varintBytes(number << 3), ...varintBytes(value)]);
  }
  const bytes = typeof value === "string" ? Buffer.from(value) : value;
  return Buffer.concat([
    Buffer.from([...varintBytes((number << 3) | 2), ...varintBytes(bytes.length)]),
    bytes,
  ]);
}

function varintBytes(value) {
  const bytes = [];
  let rest = BigInt(value);
  for (; rest > 0x7fn; rest >>= 7n) bytes.push(Number(rest & 0x7fn) | 0x80);
  return [...bytes, Number(rest)];
}
