/** Requests that no client should send: made from the OpenAPI document by seeded mutation. */
import type { Body } from "./server.ts";

export interface HostileRequest {
  readonly method: string;
  readonly path: string;
  readonly headers: Readonly<Record<string, string>>;
  readonly body: string | null;
}

/** Mulberry32. */
export class Dice {
  #state: number;

  constructor(seed: number) {
    this.#state = seed >>> 0;
  }

  next(): number {
    this.#state = (this.#state + 0x6d2b79f5) >>> 0;
    let mixed = Math.imul(this.#state ^ (this.#state >>> 15), 1 | this.#state);
    mixed = (mixed + Math.imul(mixed ^ (mixed >>> 7), 61 | mixed)) ^ mixed;
    return ((mixed ^ (mixed >>> 14)) >>> 0) / 2 ** 32;
  }

  below(count: number): number {
    return Math.floor(this.next() * count);
  }

  pick<Item>(items: readonly Item[]): Item {
    return items[this.below(items.length)] as Item;
  }

  chance(part: number): boolean {
    return this.next() < part;
  }
}

const TEXTS = [
  "",
  " ",
  "\u0000",
  "a\u0000b",
  "../../etc/passwd",
  "..",
  "$floor",
  "$",
  "\ud800",
  "\u202e",
  "e\u0301",
  "x".repeat(255),
  "x".repeat(256),
  "x".repeat(257),
  "x".repeat(5_000),
  "\u{1f512}".repeat(200),
  "__proto__",
  "constructor",
  "toString",
  "'; drop table leases; --",
  "%00%2e%2e",
  "{{7*7}}",
  "<script>",
  "\r\nx-injected: 1",
  "NaN",
  "9".repeat(20),
  "9".repeat(400),
  "-1",
  "1e3",
  "0x10",
  "null",
];

const VALUES: readonly unknown[] = [
  ...TEXTS,
  null,
  true,
  false,
  0,
  -0,
  -1,
  1,
  1.5,
  1e21,
  1e308,
  -1e308,
  2 ** 53,
  2 ** 53 + 2,
  2 ** 31,
  Number.MIN_VALUE,
  [],
  [[]],
  [null],
  {},
  { toString: "x" },
  { length: 1e9 },
  Array(200).fill(0),
];

const RAW_BODIES = [
  "",
  "{",
  "}",
  "[",
  "null",
  "true",
  "5",
  '"text"',
  "{} {}",
  '{"name":"a","name":"b"}',
  '{"__proto__":{"name":"a"}}',
  '{"constructor":{"prototype":{"x":1}}}',
  '{"name":"a","holder":"h","ttlMs":1e400}',
  '{"name":"a","holder":"h","ttlMs":NaN}',
  "\ufeff{}",
  "\u0000",
  "[".repeat(5_000),
  `${"[".repeat(2_000)}${"]".repeat(2_000)}`,
  `${'{"a":'.repeat(2_000)}1${"}".repeat(2_000)}`,
  "name=a&holder=b",
  "<xml/>",
];

const CONTENT_TYPES = [
  "text/plain",
  "application/x-www-form-urlencoded",
  "multipart/form-data; boundary=x",
  "application/json; charset=utf-16",
  "application/jsonp",
  "APPLICATION/JSON",
  "",
  "application/",
  "x".repeat(2_000),
];

const HEADERS: readonly (readonly [string, string])[] = [
  ["traceparent", "00-00000000000000000000000000000000-0000000000000000-00"],
  ["traceparent", "x".repeat(3_000)],
  ["authorization", "Bearer shk_000000000000_AAAA"],
  ["authorization", "Bearer"],
  ["last-event-id", "9".repeat(500)],
  ["accept", "application/xml"],
  ["expect", "100-continue"],
  ["content-encoding", "gzip"],
  ["x-forwarded-for", "127.0.0.1"],
  ["cookie", "a=b; ".repeat(200)],
  ["if-none-match", "*"],
  ["range", "bytes=0-"],
];

const PATHS = [
  "/",
  "//",
  "/v1",
  "/v1/",
  "/v1/leases/",
  "/v1/leases/acquire/",
  "/v1/leases/fly",
  "/V1/LEASES",
  "/v1/leases/..%2f..",
  "/v1/lease%00",
  "/v1/lease%",
  "/v1/lease%zz",
  "/v1/leases?".padEnd(4_000, "a=b&"),
  `/${"x".repeat(3_000)}`,
  "/v1/stream",
  "/constructor",
  "/__proto__",
  "/v1/leases;limit=1",
];

const METHODS = ["GET", "POST", "PUT", "PATCH", "DELETE", "OPTIONS", "HEAD", "TRACE"];

interface Sample {
  readonly method: string;
  readonly path: string;
  readonly body: object | null;
  readonly query: Readonly<Record<string, string>>;
}

export class HostileRequests {
  readonly #dice: Dice;
  readonly #samples: readonly Sample[];

  constructor(document: Body, dice: Dice) {
    this.#dice = dice;
    this.#samples = samplesOf(document);
  }

  next(): HostileRequest {
    const sample = this.#dice.pick(this.#samples);
    const request = sample.method === "post" ? this.#post(sample) : this.#get(sample);
    return this.#dice.chance(0.1) ? this.#bend(request) : request;
  }

  /** A body of a command with something wrong, for the stream. */
  body(): { readonly op: string; readonly body: unknown } {
    const commands = this.#samples.filter(({ path }) => path.startsWith("/v1/leases/"));
    const { path, body } = this.#dice.pick(commands);
    const op = this.#dice.chance(0.1) ? String(this.#dice.pick(TEXTS)) : (path.split("/").at(-1) ?? "");
    return { op, body: this.#mutated(body) };
  }

  #post({ path, body }: Sample): HostileRequest {
    const headers = { "content-type": "application/json" };
    if (this.#dice.chance(0.15)) return { method: "POST", path, headers, body: this.#dice.pick(RAW_BODIES) };
    let text = JSON.stringify(this.#mutated(body)) ?? "";
    if (this.#dice.chance(0.15)) text = this.#damaged(text);
    return { method: "POST", path, headers, body: text };
  }

  #get({ path, query }: Sample): HostileRequest {
    const parameters = new URLSearchParams(query);
    const names = [...parameters.keys(), "tenant", "prefix", "limit", "cursor", "state", "after", "name"];
    for (let count = this.#dice.below(3); count >= 0; count -= 1) {
      const name = this.#dice.chance(0.1) ? String(this.#dice.pick(TEXTS)) : this.#dice.pick(names);
      const value = String(this.#dice.pick(TEXTS)).slice(0, 1_000);
      if (this.#dice.chance(0.2)) parameters.append(name.slice(0, 300), value);
      else parameters.set(name.slice(0, 300), value);
    }
    return { method: "GET", path: `${path}?${parameters}`, headers: {}, body: null };
  }

  #bend(request: HostileRequest): HostileRequest {
    switch (this.#dice.below(4)) {
      case 0:
        return { ...request, method: this.#dice.pick(METHODS) };
      case 1:
        return { ...request, path: this.#dice.pick(PATHS) };
      case 2: {
        const [name, value] = this.#dice.pick(HEADERS);
        return { ...request, headers: { ...request.headers, [name]: value } };
      }
      default:
        return {
          ...request,
          headers: { ...request.headers, "content-type": this.#dice.pick(CONTENT_TYPES) },
        };
    }
  }

  /** The same shape with one to three things wrong, at any depth. */
  #mutated(value: unknown): unknown {
    let result = structuredClone(value);
    for (let count = this.#dice.below(3); count >= 0; count -= 1) result = this.#mutateOnce(result);
    return result;
  }

  #mutateOnce(value: unknown): unknown {
    if (typeof value !== "object" || value === null || this.#dice.chance(0.05))
      return this.#dice.pick(VALUES);
    if (Array.isArray(value)) {
      if (value.length === 0 || this.#dice.chance(0.2)) return [...value, this.#dice.pick(VALUES)];
      const index = this.#dice.below(value.length);
      return value.map((item, at) => (at === index ? this.#mutateOnce(item) : item));
    }
    const fields: Record<string, unknown> = { ...value };
    const names = Object.keys(fields);
    const name = this.#dice.pick(names.length === 0 ? ["x"] : names);
    switch (this.#dice.below(4)) {
      case 0:
        delete fields[name];
        return fields;
      case 1:
        return { ...fields, [String(this.#dice.pick(TEXTS)).slice(0, 300)]: this.#dice.pick(VALUES) };
      case 2:
        return { ...fields, [name]: this.#dice.pick(VALUES) };
      default:
        return { ...fields, [name]: this.#mutateOnce(fields[name]) };
    }
  }

  #damaged(text: string): string {
    const at = this.#dice.below(text.length + 1);
    if (this.#dice.chance(0.5)) return text.slice(0, at);
    return text.slice(0, at) + this.#dice.pick(TEXTS).slice(0, 20) + text.slice(at + this.#dice.below(4));
  }
}

function samplesOf(document: Body): readonly Sample[] {
  return Object.entries(document.paths as Record<string, Body>).flatMap(([path, item]) => {
    // An endless answer, and one that reads the whole trail.
    if (["/v1/watch", "/v1/audit/watch", "/v1/audit/verify"].includes(path)) return [];
    if (item.post !== undefined) {
      const { examples } = item.post.requestBody.content["application/json"];
      return (Object.values(examples) as Body[]).map(({ value }) => ({
        method: "post",
        path,
        body: value,
        query: {},
      }));
    }
    const query = Object.fromEntries(
      ((item.get.parameters ?? []) as Body[])
        .filter(({ example }) => example !== undefined)
        .map(({ name, example }) => [name, String(example)]),
    );
    return [{ method: "get", path, body: null, query }];
  });
}
