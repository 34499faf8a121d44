/**
 * The data behind the connection. Redis can lose what it acknowledged: FLUSHALL, a restart without persistence, a
 * failover to a replica that lagged behind, a restored backup. A client that saw what is lost must notice. So the data
 * has an identity (support/data-identity.ts), and a counter of the calls that wrote. Each new connection compares them
 * with what this client saw, before anything else is sent there; each script compares them again, by the epoch (which
 * changes with the identity) and the counter.
 *
 * A loss is reported by the first read or write after it, and by those that were under way. Later ones go on with what
 * is there. What cannot be seen: a server that is exchanged behind a proxy while the connection to the proxy stays.
 */
import { randomId } from "../../env/index.ts";
import { type FailedOutcome, StoreError, type StoreReply } from "../../store/index.ts";
import * as identities from "../support/data-identity.ts";
import { lossError, silenceError } from "../support/failures.ts";
import { Reconnecting } from "../support/reconnecting.ts";
import { type Acknowledgement, shortage } from "./acknowledgement.ts";
import type { RedisLayout } from "./layout.ts";
import { type LinkOptions, RedisLink } from "./link.ts";
import { ADOPT, LOOK, type ScriptCall } from "./scripts.ts";
import { assertUsable, parseInfo, type ServerInfo } from "./server-info.ts";

export interface DataReply extends StoreReply {
  readonly items: readonly unknown[];
}

/** A connection whose data was compared with what this client saw. */
interface JoinedLink {
  readonly link: RedisLink;
  readonly server: ServerInfo;
  readonly epoch: string;
  readonly serverChangedAtMs: number | null;
}

/** How often others may change the identity while one call is under way. */
const MAX_ATTEMPTS = 5;

export class RedisData {
  readonly layout: RedisLayout;
  readonly #options: LinkOptions;
  readonly #acknowledgement: Acknowledgement | null;
  readonly #links: Reconnecting<JoinedLink>;
  #current: JoinedLink | null = null;
  #seen: identities.DataSighting | null = null;
  #losses = 0;
  #reportedLosses = 0;
  #lastLoss = "";

  /** `onLost` is called when the connection has ended: the address may mean another server by now. */
  constructor(
    options: LinkOptions,
    layout: RedisLayout,
    acknowledgement: Acknowledgement | null,
    onLost: () => void,
  ) {
    this.#options = options;
    this.#acknowledgement = acknowledgement;
    this.layout = layout;
    this.#links = new Reconnecting({
      env: options.env,
      name: "redis",
      open: () => this.#open(onLost),
      close: ({ link }) => link.end(),
    });
  }

  /** The connection, and what INFO said when it was made. */
  async joined(): Promise<JoinedLink> {
    if (this.#current !== null && !this.#current.link.hasEnded) return this.#current;
    if (this.#current !== null) await this.#links.lose(this.#current);
    const { driver, timeoutMs } = this.#options;
    const onExpiry = (): Error => silenceError(`Redis at ${driver.address}`, timeoutMs, "not-applied");
    this.#current = await this.#links.getWithin(timeoutMs, onExpiry);
    return this.#current;
  }

  write(...call: ScriptCall): Promise<DataReply> {
    return this.#run(call, "unknown", this.#reportedLosses);
  }

  read(...call: ScriptCall): Promise<DataReply> {
    return this.#run(call, "not-applied", this.#reportedLosses);
  }

  /** As `read`, for calls whose failures nobody sees: a loss is left for the next `read` or `write` to report. */
  readAside(...call: ScriptCall): Promise<DataReply> {
    return this.#run(call, "not-applied", Number.POSITIVE_INFINITY);
  }

  close(): Promise<void> {
    return this.#links.close();
  }

  async #run(
    [script, keys, args]: ScriptCall,
    outcome: FailedOutcome,
    knownLosses: number,
  ): Promise<DataReply> {
    for (let attempt = 0; attempt < MAX_ATTEMPTS; attempt += 1) {
      const joined = await this.joined();
      if (this.#losses > knownLosses) throw this.#lossError();
      const own = [joined.epoch, String(this.#seen?.sequence ?? 0n), ...args];
      const reply = await joined.link.run([script, [this.layout.identityKey, ...keys], own], outcome);
      if (reply[0] !== "moved") {
        await this.#acknowledged(joined.link, outcome);
        const { storeTimeMs, sequence } = headerOf(reply[0]);
        if (this.#seen !== null && sequence > this.#seen.sequence) this.#seen = { ...this.#seen, sequence };
        return { storeTimeMs, serverChangedAtMs: joined.serverChangedAtMs, items: reply.slice(1) };
      }
      // Nothing was done, so it may be sent again once it is known what has changed.
      await this.#links.lose(joined);
    }
    throw this.#error("unreachable", "other clients keep changing the identity of its data");
  }

  async #acknowledged(link: RedisLink, outcome: FailedOutcome): Promise<void> {
    if (this.#acknowledgement === null) return;
    const { command, counts, limitMs } = this.#acknowledgement;
    const args = [...counts, limitMs].map(String);
    const reply = await link.request((connection) => connection.call(command, args)).catch((error) => error);
    const what = shortage(this.#acknowledgement, reply);
    if (what !== null) throw this.#error("unreachable", what, outcome);
  }

  async #open(onLost: () => void): Promise<JoinedLink> {
    let joined: JoinedLink | null = null;
    const onEnd = (): void => {
      if (joined === null) return;
      void this.#links.lose(joined);
      onLost();
    };
    const link = await RedisLink.open(this.#options, { onEnd, onMessage: () => undefined });
    try {
      while (joined === null) joined = await this.#join(link);
      return joined;
    } catch (error) {
      link.end();
      throw error;
    }
  }

  /** Null when another client changed the identity meanwhile. */
  async #join(link: RedisLink): Promise<JoinedLink | null> {
    const { env, driver } = this.#options;
    const reply = await link.run([LOOK, [this.layout.identityKey], []], "not-applied");
    const [time, info = "", text = "", storedEpoch, writes] = reply.map((item) => String(item ?? ""));
    const server = parseInfo(info);
    assertUsable(server, driver.address);
    const { storeTimeMs: nowMs, sequence } = headerOf(`${time} ${writes}`);
    const current = { serverId: server.serverId, nowMs, sequence };
    const stored = identities.decodeIdentity(text);
    let identity = identities.nextIdentity(stored, current, randomId(env));
    const loss = this.#seen === null ? null : identities.lossSince(this.#seen, identity, sequence);
    if (this.#seen !== null && loss !== null) {
      identity = identities.identityAfterLoss(this.#seen, identity, current, randomId(env));
    }
    const isStored = identity === stored && storedEpoch;
    const epoch = isStored ? storedEpoch : await this.#adopt(link, text, identity);
    if (epoch === null) return null;
    this.#seen = { dataId: identity.dataId, serverId: server.serverId, sequence };
    if (loss !== null) {
      this.#losses += 1;
      this.#lastLoss = loss;
    }
    return { link, server, epoch, serverChangedAtMs: identities.serverChangedAtMs(identity) };
  }

  /** The epoch of the identity that was written; null when another client was faster. */
  async #adopt(link: RedisLink, text: string, identity: identities.DataIdentity): Promise<string | null> {
    const epoch = randomId(this.#options.env);
    const args = [text, identities.encodeIdentity(identity), epoch];
    const [answer] = await link.run([ADOPT, [this.layout.identityKey], args], "not-applied");
    return answer === "done" ? epoch : null;
  }

  #lossError(): StoreError {
    this.#reportedLosses = this.#losses;
    return lossError(`Redis at ${this.#options.driver.address}`, this.#lastLoss, "not-applied");
  }

  #error(kind: StoreError["kind"], what: string, outcome: FailedOutcome = "not-applied"): StoreError {
    return new StoreError(kind, `Redis at ${this.#options.driver.address}: ${what}`, { outcome });
  }
}

/** Seconds, microseconds and the number of writes. */
function headerOf(text: unknown): { readonly storeTimeMs: number; readonly sequence: bigint } {
  const [seconds, micros, writes] = String(text).split(" ");
  const storeTimeMs = Number(seconds) * 1_000 + Math.floor(Number(micros) / 1_000);
  return { storeTimeMs, sequence: BigInt(writes ?? "") };
}
