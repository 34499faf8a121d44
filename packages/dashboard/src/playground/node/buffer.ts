/** The few parts of Node's Buffer that the simulated code uses, over the browser's own byte arrays. */

type Encoding = "utf8" | "hex" | "base64url" | "base64" | "latin1" | "binary";

const ENCODER = new TextEncoder();
const DECODER = new TextDecoder();

export class Bytes extends Uint8Array {
  static alloc(length: number, fill = 0): Bytes {
    return new Bytes(length).fill(fill);
  }

  static allocUnsafe(length: number): Bytes {
    return new Bytes(length);
  }

  static byteLength(text: string | Uint8Array): number {
    return typeof text === "string" ? ENCODER.encode(text).length : text.length;
  }

  static concat(parts: readonly Uint8Array[]): Bytes {
    const whole = new Bytes(parts.reduce((sum, part) => sum + part.length, 0));
    let at = 0;
    for (const part of parts) {
      whole.set(part, at);
      at += part.length;
    }
    return whole;
  }

  static isBuffer(value: unknown): value is Bytes {
    return value instanceof Bytes;
  }

  readUInt32BE(offset = 0): number {
    return new DataView(this.buffer, this.byteOffset).getUint32(offset);
  }

  override toString(encoding: Encoding = "utf8", start = 0, end = this.length): string {
    const part = this.subarray(start, end);
    switch (encoding) {
      case "hex":
        return Array.from(part, (byte) => byte.toString(16).padStart(2, "0")).join("");
      case "base64":
      case "base64url":
        return base64(part, encoding);
      case "latin1":
      case "binary":
        return latin1(part);
      default:
        return DECODER.decode(part);
    }
  }
}

/** As `Buffer.from`: text, bytes (copied), or a window into a buffer. */
export function bytesFrom(
  value: string | ArrayLike<number> | ArrayBuffer,
  second?: Encoding | number,
  length?: number,
): Bytes {
  if (value instanceof ArrayBuffer) return new Bytes(value, typeof second === "number" ? second : 0, length);
  if (typeof value !== "string") return new Bytes(Array.from(value));
  switch (second) {
    case "hex":
      return new Bytes((value.match(/../g) ?? []).map((pair) => Number.parseInt(pair, 16)));
    case "base64":
    case "base64url":
      return new Bytes(
        Array.from(atob(value.replaceAll("-", "+").replaceAll("_", "/")), (each) => each.charCodeAt(0)),
      );
    case "latin1":
    case "binary":
      return new Bytes(Array.from(value, (each) => each.charCodeAt(0)));
    default:
      return new Bytes(ENCODER.encode(value));
  }
}

function latin1(bytes: Uint8Array): string {
  let text = "";
  for (const byte of bytes) text += String.fromCharCode(byte);
  return text;
}

function base64(bytes: Uint8Array, encoding: "base64" | "base64url"): string {
  const text = btoa(latin1(bytes));
  return encoding === "base64" ? text : text.replaceAll("+", "-").replaceAll("/", "_").replaceAll("=", "");
}

export function isUtf8(bytes: Uint8Array): boolean {
  try {
    new TextDecoder("utf-8", { fatal: true }).decode(bytes);
    return true;
  } catch {
    return false;
  }
}
