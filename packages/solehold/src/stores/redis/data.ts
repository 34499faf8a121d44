/**
 * The data behind the connection. Redis can lose what it acknowledged: FLUSHALL, a restart without persistence, a
 * failover to a replica that lagged behind, a restored backup. A client that saw what is lost must notice. So the data
 * has an identity (support/data-identity.ts), and a counter of the calls that wrote. Each new connection compares them
 * with what this client saw, before anything else is sent there; each script compares them again, by the epoch (which
 * changes with the identity) and the counter.
 *
 * A call that meets a loss is rejected, and so are those that were under way with it. Later calls go on with what is
 * there. What cannot be seen: a server that is exchanged behind a proxy while the connection to the proxy stays.
 */
import { randomId } from "../../env/index.ts";
import { type FailedOutcome, StoreError, withDeadline } from "../../store/index.ts";
import {
  type DataIdentity,
  type DataSighting,
  decodeIdentity,
  encodeIdentity,
  identityAfterLoss,
  lossSince,
  nextIdentity,
  serverChangedAtMs,
} from "../support/data-identity.ts";
import { Reconnecting } from "../support/reconnecting.ts";
import type { RedisArgument } from "./driver.ts";
import { silenceError, storeErrorFrom } from "./errors.ts";
import type { RedisLayout } from "./layout.ts";
import { type LinkOptions, RedisLink } from "./link.ts";
import { ADOPT, LOOK, type RedisScript } from "./scripts.ts";
import { assertUsable, parseInfo, type ServerInfo } from "./server-info.ts";

export interface DataReply {
  readonly storeTimeMs: number;
  readonly serverChangedAtMs: number | null;
  /** The number of the last write. */
  readonly write: string;
  readonly items: readonly unknown[];
}

/** A connection whose data was compared with what this client saw. */
interface JoinedLink {
  readonly link: RedisLink;
  readonly server: ServerInfo;
  readonly epoch: string;
  readonly serverChangedAtMs: number | null;
}

interface DataState {
  readonly server: ServerInfo;
  readonly nowMs: number;
  /** As it is stored; empty for none. */
  readonly text: string;
  readonly epoch: string | null;
  readonly sequence: bigint;
}

/** How often others may change the identity while one call is under way. */
const MAX_ATTEMPTS = 5;

export class RedisData {
  readonly layout: RedisLayout;
  readonly #options: LinkOptions;
  readonly #links: Reconnecting<JoinedLink>;
  #seen: DataSighting | null = null;
  #losses = 0;
  #lastLoss = "";
  /** Why the last attempt to connect failed. */
  #lastFailure: StoreError | null = null;

  /** `onLost` is called when the connection has ended: the address may mean another server by now. */
  constructor(options: LinkOptions, layout: RedisLayout, onLost: () => void) {
    this.#options = options;
    this.layout = layout;
    this.#links = new Reconnecting({
      env: options.env,
      name: "redis",
      open: () => this.#open(onLost),
      close: ({ link }) => link.end(),
    });
  }

  /** Connects, unless there is a connection. What INFO said when it was made. */
  async server(): Promise<ServerInfo> {
    return (await this.#joined()).server;
  }

  /** For what is no script. It writes nothing. */
  async call(command: string, args: readonly string[]): Promise<unknown> {
    return (await this.#joined()).link.call(command, args);
  }

  /** `keys` and `args` follow those that all scripts have. `outcome` is what is true if no reply comes. */
  async run(
    script: RedisScript,
    keys: readonly string[],
    args: readonly RedisArgument[],
    outcome: FailedOutcome,
  ): Promise<DataReply> {
    const lossesBefore = this.#losses;
    for (let attempt = 0; attempt < MAX_ATTEMPTS; attempt += 1) {
      const joined = await this.#joined();
      if (this.#losses !== lossesBefore) throw this.#lossError();
      const lastSeen = String(this.#seen?.sequence ?? 0n);
      const command = [joined.epoch, lastSeen, ...args];
      const reply = await joined.link.run(script, [this.layout.identityKey, ...keys], command, outcome);
      const [header, ...items] = reply;
      if (header !== "moved") return { ...this.#understood(joined, String(header)), items };
      // Nothing was done, so it may be sent again once it is known what has changed.
      await this.#links.lose(joined);
    }
    throw this.#contended();
  }

  /** Reads say whether they have to be counted as writes, so that replicas can be waited for. */
  read(script: RedisScript, keys: readonly string[], args: readonly RedisArgument[]): Promise<DataReply> {
    const mode = this.#options.acknowledgement === null ? "check" : "count";
    return this.run(script, keys, [mode, ...args], "not-applied");
  }

  close(): Promise<void> {
    return this.#links.close();
  }

  #joined(): Promise<JoinedLink> {
    const { env, driver, timeoutMs } = this.#options;
    const late = (): Error => this.#lastFailure ?? silenceError(driver.address, timeoutMs, "not-applied");
    return withDeadline(env, timeoutMs, this.#living(), late);
  }

  async #living(): Promise<JoinedLink> {
    const joined = await this.#links.get();
    if (!joined.link.hasEnded) return joined;
    await this.#links.lose(joined);
    return this.#links.get();
  }

  async #open(onLost: () => void): Promise<JoinedLink> {
    let joined: JoinedLink | null = null;
    let link: RedisLink | null = null;
    try {
      link = await RedisLink.open(this.#options, () => {
        if (joined === null) return;
        void this.#links.lose(joined);
        onLost();
      });
      joined = await this.#join(link);
      this.#lastFailure = null;
      return joined;
    } catch (error) {
      link?.end();
      this.#lastFailure = storeErrorFrom(error, this.#options.driver.address, "not-applied");
      throw this.#lastFailure;
    }
  }

  async #join(link: RedisLink): Promise<JoinedLink> {
    for (let attempt = 0; attempt < MAX_ATTEMPTS; attempt += 1) {
      const state = await this.#look(link);
      const { server, nowMs, sequence, text } = state;
      assertUsable(server, this.#options.driver.address);
      const current = { serverId: server.serverId, nowMs, sequence };
      const stored = decodeIdentity(text);
      let identity = nextIdentity(stored, current, randomId(this.#options.env)) ?? stored;
      if (identity === null) throw new Error("the identity of the data is missing");
      const loss = this.#seen === null ? null : lossSince(this.#seen, identity, sequence);
      if (this.#seen !== null && loss !== null) {
        identity = identityAfterLoss(this.#seen, identity, current, randomId(this.#options.env));
      }
      const epoch = identity === stored ? state.epoch : await this.#adopt(link, text, identity);
      if (epoch === null) continue;
      const { dataId } = identity;
      this.#seen = { dataId, serverId: server.serverId, sequence };
      if (loss !== null) {
        this.#losses += 1;
        this.#lastLoss = loss;
      }
      return { link, server, epoch, serverChangedAtMs: serverChangedAtMs(identity) };
    }
    throw this.#contended();
  }

  async #look(link: RedisLink): Promise<DataState> {
    const reply = await link.run(LOOK, [this.layout.identityKey], [], "not-applied");
    const [time, info, text, epoch, writes] = reply;
    return {
      server: parseInfo(String(info)),
      nowMs: millisecondsOf(String(time).split(" ")),
      text: typeof text === "string" ? text : "",
      epoch: typeof epoch === "string" ? epoch : null,
      sequence: BigInt(String(writes)),
    };
  }

  /** The epoch of the identity that was written; null when another client was faster. */
  async #adopt(link: RedisLink, text: string, identity: DataIdentity): Promise<string | null> {
    const epoch = randomId(this.#options.env);
    const args = [text, encodeIdentity(identity), epoch];
    const [answer] = await link.run(ADOPT, [this.layout.identityKey], args, "not-applied");
    return answer === "done" ? epoch : null;
  }

  #understood({ serverChangedAtMs: changedAtMs }: JoinedLink, header: string): Omit<DataReply, "items"> {
    const [seconds = "", micros = "", write = ""] = header.split(" ");
    const sequence = BigInt(write);
    if (this.#seen !== null && sequence > this.#seen.sequence) this.#seen = { ...this.#seen, sequence };
    return { storeTimeMs: millisecondsOf([seconds, micros]), serverChangedAtMs: changedAtMs, write };
  }

  #lossError(): StoreError {
    const message = `Redis at ${this.#options.driver.address} lost data: ${this.#lastLoss} (a flush, a failover or an old backup). Leases of before may be gone while their holders believe in them until their ttl ends; the store goes on with what is there`;
    return new StoreError("data-loss", message, { outcome: "not-applied" });
  }

  #contended(): StoreError {
    const message = `Redis at ${this.#options.driver.address}: other clients keep changing the identity of its data`;
    return new StoreError("unreachable", message, { outcome: "not-applied" });
  }
}

function millisecondsOf([seconds = "0", micros = "0"]: readonly string[]): number {
  return Number(seconds) * 1_000 + Math.floor(Number(micros) / 1_000);
}
