/**
 * The data behind a connection: scripts run on it only after its identity was checked. It is joined once
 * per connection, before anything else is sent there; when it is not the data of before, all is refused.
 */
import { type Env, randomId } from "../../env/index.ts";
import { type FailedOutcome, StoreError } from "../../store/index.ts";
import { LEAST_RAISE, type Lineage } from "../support/lineage.ts";
import { ToldTime } from "../support/told-time.ts";
import type { RedisConnection } from "./connection.ts";
import type { RedisArgument, RedisWire } from "./driver.ts";
import type { RedisLayout } from "./layout.ts";
import { endingScript } from "./line-scripts.ts";
import { assertUsable, lossError, parseInfo, type ServerInfo } from "./lineage.ts";
import { JOIN, LOOK, NEEDS_NO_TIME, type RedisScript } from "./scripts.ts";
import { writingScript } from "./writing-script.ts";

export interface ScriptReply {
  readonly storeTimeMs: number;
  readonly items: readonly unknown[];
}

/** Whether a write that is done has to tell the time. */
export type TimeWish = "needed" | "unless told just now";

/** A write on its way: what it said in the end, and when it was sent. */
export interface SentWrite {
  readonly sentMs: number;
  readonly reply: Promise<unknown>;
}

interface Loss {
  readonly error: StoreError;
  readonly sinceMs: number;
}

/** How often another client may begin or replace the data while this one joins. */
const MAX_JOIN_ATTEMPTS = 5;
const NOTHING: readonly unknown[] = Object.freeze([]);

export class RedisDataSet {
  readonly layout: RedisLayout;
  readonly #env: Env;
  readonly #connection: RedisConnection;
  /** After how long a loss is accepted without being asked; null for never. */
  readonly #acceptAfterMs: number | null;
  #lineage: Lineage | null = null;
  #sequenceKey = "";
  #lastSequence = 0;
  readonly #writing: RedisScript;
  /** For a lone lease that ends. */
  readonly ending: RedisScript;
  #joinedWire: RedisWire | null = null;
  #joinedEpoch = 0;
  #joining: Promise<void> | null = null;
  #loss: Loss | null = null;
  #server: ServerInfo | null = null;
  /** By the server that answers now: another may have another clock. */
  #time: ToldTime;

  constructor(env: Env, connection: RedisConnection, layout: RedisLayout, acceptAfterMs: number | null) {
    this.#env = env;
    this.#connection = connection;
    this.#acceptAfterMs = acceptAfterMs;
    this.#time = new ToldTime(env);
    this.layout = layout;
    this.#writing = writingScript(layout);
    this.ending = endingScript(layout, connection.topology);
  }

  /** Known once a call was answered. */
  get lineage(): Lineage {
    if (this.#lineage === null) throw new Error("the data was not joined yet");
    return this.#lineage;
  }

  /** Whether a call that is made now goes to data with this lineage, without anything in between. */
  get isJoined(): boolean {
    return this.#joined() !== null;
  }

  get server(): ServerInfo | null {
    return this.#server;
  }

  /** Resolves when connected, and on the data of before. */
  async join(): Promise<RedisWire> {
    for (;;) {
      const wire = await this.#connection.ready();
      this.#joining ??= this.#joinOnce(wire).finally(() => {
        this.#joining = null;
      });
      await this.#joining;
      const joined = this.#joined();
      if (joined !== null) return joined;
    }
  }

  /** The sequence goes first in KEYS, the last one seen first in ARGV. */
  async run(
    script: RedisScript,
    keys: readonly string[],
    args: readonly RedisArgument[],
    outcome: FailedOutcome,
  ): Promise<ScriptReply> {
    const wire = this.#joined() ?? (await this.join());
    const command: RedisArgument[] = [script.sha, String(keys.length + 1), this.#sequenceKey, ...keys];
    command.push(String(this.#lastSequence), ...args);
    return this.understand(await this.#connection.run(wire, script, command, outcome));
  }

  /** Writes in this turn, to data that is joined, or not at all. What it says is for `understandWrite`. */
  write(keys: readonly string[], args: readonly string[], time: TimeWish, script = this.#writing): SentWrite {
    const sentMs = this.#env.monotonicMs();
    const wire = this.#joined();
    if (wire === null) return { sentMs, reply: Promise.reject(this.#connection.lost()) };
    const command = [script.sha, String(keys.length + 1), this.#sequenceKey];
    for (const key of keys) command.push(key);
    const needsTime = time === "needed" || !this.#time.isFresh;
    command.push(needsTime ? String(this.#lastSequence) : NEEDS_NO_TIME + this.#lastSequence);
    for (const arg of args) command.push(arg);
    return { sentMs, reply: this.#connection.run(wire, script, command, "unknown") };
  }

  /** Goes on with whatever data there is now, with a floor above everything that was handed out before. */
  async acceptLoss(): Promise<void> {
    const wire = await this.#connection.ready();
    await this.#joining?.catch(() => undefined);
    if (this.#loss !== null) await this.#beginAnew(wire);
  }

  async #beginAnew(wire: RedisWire): Promise<void> {
    const known = this.#lineage;
    for (let attempt = 0; attempt < MAX_JOIN_ATTEMPTS; attempt += 1) {
      const [info, standing] = await this.#look(wire);
      // Another client has begun anew already: its floor is above ours.
      const id = standing !== null && standing !== known?.id ? standing : randomId(this.#env);
      const joined = await this.#claim(wire, info, standing, id, "lossy");
      if (joined === null) continue;
      // Own caches may hold floors of the old data, so here even keys without a record are checked.
      const { lineage, sequence } = joined;
      this.#adopt(
        { ...lineage, raised: lineage.raised > 0n ? lineage.raised : lineage.floor },
        sequence,
        wire,
      );
      this.#loss = null;
      return;
    }
    throw this.#contended();
  }

  /** The wire, if its data was joined and is intact. */
  #joined(): RedisWire | null {
    const wire = this.#connection.current;
    const intact = this.#loss === null && wire === this.#joinedWire && wire?.epoch === this.#joinedEpoch;
    return intact ? wire : null;
  }

  /** What a script said. Throws when it says that the data is not what it was. */
  understand(reply: unknown): ScriptReply {
    if (reply === "lost") throw this.#lose("what this client saw is not there any more");
    const header = String(Array.isArray(reply) ? reply[0] : reply);
    const items = Array.isArray(reply) ? reply.slice(1) : NOTHING;
    const first = header.indexOf(" ");
    const second = header.indexOf(" ", first + 1);
    this.#sawSequence(Number(header.slice(second + 1)));
    const micros = Number(header.slice(first + 1, second));
    return { storeTimeMs: Number(header.slice(0, first)) * 1_000 + Math.floor(micros / 1_000), items };
  }

  /** No time where all was done and it was told just now. */
  understandWrite(
    reply: unknown,
    sentMs: number,
  ): Omit<ScriptReply, "storeTimeMs"> & { readonly storeTimeMs: number | null } {
    if (typeof reply === "number") {
      this.#sawSequence(reply);
      return { storeTimeMs: null, items: NOTHING };
    }
    const understood = this.understand(reply);
    this.#time.told(sentMs);
    return understood;
  }

  #sawSequence(sequence: number): void {
    if (sequence > this.#lastSequence) this.#lastSequence = sequence;
  }

  async #joinOnce(wire: RedisWire): Promise<void> {
    if (this.#loss !== null) {
      const { error, sinceMs } = this.#loss;
      const patient = this.#acceptAfterMs === null || this.#env.monotonicMs() - sinceMs < this.#acceptAfterMs;
      if (patient) throw error;
      return this.#beginAnew(wire);
    }
    for (let attempt = 0; attempt < MAX_JOIN_ATTEMPTS; attempt += 1) {
      const [info, standing] = await this.#look(wire);
      const known = this.#lineage;
      if (known !== null && standing === null) throw this.#lose("it is empty now");
      if (known !== null && standing !== known.id) throw this.#lose("its data was replaced");
      const id = known?.id ?? standing ?? randomId(this.#env);
      const joined = await this.#claim(wire, info, standing, id, "new");
      if (joined === null) continue;
      if (joined.sequence < this.#lastSequence || joined.sequence === 0)
        throw this.#lose("its last writes are gone");
      const raised =
        known !== null && known.raised > joined.lineage.raised ? known.raised : joined.lineage.raised;
      this.#adopt({ ...joined.lineage, raised }, joined.sequence, wire);
      return;
    }
    throw this.#contended();
  }

  /** The server, and the id of the data; null when there is none. */
  async #look(wire: RedisWire): Promise<readonly [ServerInfo, string | null]> {
    const reply = await this.#connection.run(
      wire,
      LOOK,
      [LOOK.sha, "1", this.layout.stateKey],
      "not-applied",
    );
    const [text, id] = reply as unknown[];
    const info = parseInfo(String(text));
    assertUsable(info, this.#connection.address);
    this.#server = info;
    return [info, typeof id === "string" ? id : null];
  }

  /** Joins the data, or begins it anew under another id. Null when another client was faster. */
  async #claim(
    wire: RedisWire,
    info: ServerInfo,
    standing: string | null,
    id: string,
    beginning: "new" | "lossy",
  ): Promise<{ readonly lineage: Lineage; readonly sequence: number } | null> {
    const keys = [this.layout.stateKey, this.layout.sequenceKey(id)];
    if (standing !== null && standing !== id) keys.push(this.layout.sequenceKey(standing));
    const args = [standing ?? "", id, info.runId, beginning, String(LEAST_RAISE)];
    const command = [JOIN.sha, String(keys.length), ...keys, ...args];
    const reply = await this.#connection.run(wire, JOIN, command, "not-applied");
    if (reply === "moved") return null;
    const [floor, raised, sequence] = (reply as unknown[]).map(String);
    const lineage = { id, floor: BigInt(floor ?? 0), raised: BigInt(raised ?? 0) };
    return { lineage, sequence: Number(sequence) };
  }

  #adopt(lineage: Lineage, sequence: number, wire: RedisWire): void {
    this.#lineage = Object.freeze(lineage);
    this.#sequenceKey = this.layout.sequenceKey(lineage.id);
    this.#lastSequence = sequence;
    this.#joinedWire = wire;
    this.#joinedEpoch = wire.epoch;
    this.#time = new ToldTime(this.#env);
  }

  #lose(what: string): StoreError {
    const error = lossError(this.#connection.address, what);
    this.#loss ??= { error, sinceMs: this.#env.monotonicMs() };
    return error;
  }

  #contended(): StoreError {
    return new StoreError(
      "unreachable",
      `Redis at ${this.#connection.address}: other clients keep replacing its data`,
      { outcome: "not-applied" },
    );
  }
}
