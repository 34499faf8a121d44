/**
 * Copies of the audit, sent elsewhere as they are written: to a file, to stdout, to syslog, or by HTTP. Whoever takes over
 * this machine can then not change what has left it.
 *
 * At least once: the trail itself is the queue, and how far it was sent is kept beside it, so after a failure or a crash the
 * last entries may come twice (their sequence tells). What is no longer in the trail when its turn comes is marked as a gap.
 * Syslog acknowledges nothing: there, what the network took counts as sent.
 */
import { open, readFile, rename, writeFile } from "node:fs/promises";
import { connect } from "node:net";
import { hostname } from "node:os";
import { type AuditEntry, type AuditTrail, type Env, encodeEntry, type Timer } from "solehold/internal";
import type { Logger } from "../telemetry/log.ts";
import { ConfigError } from "./config.ts";

/** Sends lines, in order. Resolves when they arrived. */
type Send = (lines: readonly string[]) => Promise<void>;

export interface AuditShippingOptions {
  readonly env: Env;
  readonly log: Logger;
  readonly trail: AuditTrail;
  /** stdout:, file:PATH, syslog://host:port, http(s)://... */
  readonly target: string;
  /** The file that says how far it was sent; null for a trail that begins anew with each process. */
  readonly cursorFile: string | null;
}

const LOOK_EVERY_MS = 500;
const MOST_AT_ONCE = 500;
const TIMEOUT_MS = 10_000;
/** Facility "log audit", severity "informational". */
const SYSLOG_PRIORITY = 13 * 8 + 6;

export class AuditShipping {
  readonly #options: AuditShippingOptions;
  readonly #send: Send;
  #sent: number;
  #timer: Timer | null = null;
  #round: Promise<void> = Promise.resolve();
  #hasFailed = false;

  private constructor(options: AuditShippingOptions, sent: number) {
    this.#options = options;
    this.#send = senderTo(options.target);
    this.#sent = sent;
  }

  /** Begins where the last process ended. Rejects with a ConfigError. */
  static async start(options: AuditShippingOptions): Promise<AuditShipping> {
    const shipping = new AuditShipping(options, await readCursor(options.cursorFile));
    shipping.#plan();
    return shipping;
  }

  /** Entries that were not sent yet. */
  get unsent(): number {
    return Math.max(0, this.#options.trail.head().sequence - this.#sent);
  }

  /** Tries once to send the rest. */
  async close(): Promise<void> {
    this.#timer?.cancel();
    this.#timer = null;
    await this.#round;
    await this.#sendAll();
  }

  #plan(): void {
    this.#timer = this.#options.env.timer(LOOK_EVERY_MS, () => {
      this.#round = this.#sendAll().then(() => {
        if (this.#timer !== null) this.#plan();
      });
    });
  }

  /** Never rejects: what fails is tried again at the next look. */
  async #sendAll(): Promise<void> {
    try {
      while (this.unsent > 0) await this.#sendSome();
      this.#hasFailed = false;
    } catch (error) {
      if (!this.#hasFailed)
        this.#options.log.error(
          { err: error },
          "the audit could not be sent on; it is kept, and tried again",
        );
      this.#hasFailed = true;
    }
  }

  async #sendSome(): Promise<void> {
    const { trail, cursorFile } = this.#options;
    const entries = await trail.query({ afterSequence: this.#sent, limit: MOST_AT_ONCE });
    const [first] = entries;
    const last = entries.at(-1);
    if (first === undefined || last === undefined)
      throw new Error("the trail has no entries after its cursor");
    const gap = first.sequence > this.#sent + 1 ? [gapLine(this.#sent + 1, first)] : [];
    await this.#send([...gap, ...entries.map(encodeEntry)]);
    this.#sent = last.sequence;
    if (cursorFile === null) return;
    await writeFile(`${cursorFile}.tmp`, JSON.stringify({ sent: this.#sent }), { mode: 0o600 });
    await rename(`${cursorFile}.tmp`, cursorFile);
  }
}

/** No entry of the trail: it has neither sequence nor hash. */
function gapLine(from: number, { sequence, at }: AuditEntry): string {
  const detail = { cause: "no longer in the trail", from, through: sequence - 1 };
  return JSON.stringify({ at, action: "audit-gap", detail });
}

async function readCursor(path: string | null): Promise<number> {
  const text = path === null ? "" : await readFile(path, "utf8").catch(() => "");
  if (text === "") return 0;
  const { sent } = JSON.parse(text) as { readonly sent: number };
  return sent;
}

function senderTo(target: string): Send {
  if (target === "stdout:") return print;
  if (target.startsWith("file:")) return (lines) => append(target.slice("file:".length), lines);
  const url = URL.canParse(target) ? new URL(target) : null;
  if (url?.protocol === "syslog:" && url.hostname !== "") return (lines) => sendToSyslog(url, lines);
  if (url?.protocol === "http:" || url?.protocol === "https:") return (lines) => post(url, lines);
  throw new ConfigError(
    "--audit-ship must be stdout:, file:PATH, syslog://host:port or an http(s):// URL that takes JSON lines",
  );
}

function print(lines: readonly string[]): Promise<void> {
  return new Promise((resolve, reject) => {
    process.stdout.write(`${lines.join("\n")}\n`, (error) => (error ? reject(error) : resolve()));
  });
}

async function append(path: string, lines: readonly string[]): Promise<void> {
  const file = await open(path, "a", 0o600);
  try {
    await file.appendFile(`${lines.join("\n")}\n`);
    await file.datasync();
  } finally {
    await file.close();
  }
}

async function post(target: URL, lines: readonly string[]): Promise<void> {
  const { username, password } = target;
  const url = new URL(target);
  url.username = "";
  url.password = "";
  const secret = Buffer.from(`${decodeURIComponent(username)}:${decodeURIComponent(password)}`);
  const authorization = username === "" ? {} : { authorization: `Basic ${secret.toString("base64")}` };
  const { ok, status } = await fetch(url, {
    method: "POST",
    headers: { "content-type": "application/x-ndjson", ...authorization },
    body: `${lines.join("\n")}\n`,
    redirect: "error",
    signal: AbortSignal.timeout(TIMEOUT_MS),
  });
  if (!ok) throw new Error(`${url.origin} answered ${status}`);
}

/** RFC 5424 messages over TCP, each with its length before it (RFC 6587). */
async function sendToSyslog({ hostname: host, port }: URL, lines: readonly string[]): Promise<void> {
  const socket = connect({ host, port: Number(port || 514), timeout: TIMEOUT_MS });
  await new Promise<void>((resolve, reject) => {
    socket.on("error", reject);
    socket.on("timeout", () => reject(new Error("syslog does not answer")));
    socket.on("close", () => resolve());
    const messages = lines.map((line) => {
      const message = `<${SYSLOG_PRIORITY}>1 - ${hostname()} solehold ${process.pid} audit - ${line}`;
      return `${Buffer.byteLength(message)} ${message}`;
    });
    socket.end(messages.join(""));
  }).finally(() => socket.destroy());
}
