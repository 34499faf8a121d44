/**
 * Joining: a connection meets the bucket and finds out whose data is in it. A client that has seen more than what is
 * there takes what is there as its new baseline and keeps the loss, for the next call to report.
 *
 * What identifies the data is a small value in the bucket (support/data-identity.ts) with a random id and the servers
 * that have answered for it. A server counts anew each time it starts, because a start may follow a crash that lost
 * the last writes. A cluster is one server: its members replace each other without losing what a majority stored.
 */
import type { StreamInfo } from "@nats-io/jetstream";
import type { Env } from "../../env/index.ts";
import { StoreError } from "../../store/index.ts";
import {
  type DataIdentity,
  decodeIdentity,
  encodeIdentity,
  lossSince,
  nextIdentity,
} from "../support/data-identity.ts";
import { openBucket } from "./bucket.ts";
import type { NatsClient } from "./client.ts";
import { isConflict } from "./errors.ts";
import { NatsLayout } from "./layout.ts";
import type { NatsSettings } from "./options.ts";
import { assertLeader, lastMessage, NatsSession, putMessage } from "./session.ts";

/** How often other clients may change the identity while this one joins. */
const MAX_ATTEMPTS = 8;

export class NatsJoining {
  readonly #env: Env;
  readonly #layout: NatsLayout;
  readonly #settings: NatsSettings;
  #last: NatsSession | null = null;
  #loss: string | null = null;

  constructor(env: Env, settings: NatsSettings) {
    this.#env = env;
    this.#layout = new NatsLayout(settings.bucket);
    this.#settings = settings;
  }

  async join(client: NatsClient): Promise<NatsSession> {
    for (let attempt = 0; attempt < MAX_ATTEMPTS; attempt += 1) {
      const session = await this.#attempt(client);
      if (session !== null) return session;
    }
    const message = `NATS at ${this.#settings.address}: other clients keep changing the identity of the data: try again`;
    throw new StoreError("unreachable", message, { outcome: "not-applied" });
  }

  /** What was lost since the last call, in one sentence; null when nothing was. It is reported once. */
  takeLoss(): string | null {
    const loss = this.#loss;
    this.#loss = null;
    return loss;
  }

  /** Null when another client was faster in changing the identity. */
  async #attempt(client: NatsClient): Promise<NatsSession | null> {
    const layout = this.#layout;
    const { address } = this.#settings;
    const info = await openBucket(client, layout, this.#settings);
    assertLeader(info);
    const message = await lastMessage(client, info, layout.identitySubject);
    const found = message === null ? null : decodeIdentity(Buffer.from(message.data).toString());
    const server = {
      serverId: serverIdOf(client, info) ?? found?.servers.at(-1)?.serverId ?? "unknown",
      // No clock is read here. For people, the time of the last write that this server has.
      nowMs: Date.parse(info.state.last_ts),
      sequence: BigInt(info.state.last_seq),
    };
    const identity = nextIdentity(found, server, Buffer.from(this.#env.randomBytes(5)).toString("hex"));
    const foundAt = message?.seq ?? 0;
    const identitySequence = identity === found ? foundAt : await this.#put(client, identity, foundAt);
    if (identitySequence === null) return null;
    const loss = this.#last && lossSince(this.#last.sighting, identity, server.sequence);
    const losses = (this.#last?.data.losses ?? 0) + (loss === null ? 0 : 1);
    this.#loss ??= loss;
    this.#last = new NatsSession(client, { address, layout, identity, identitySequence, losses, info });
    return this.#last;
  }

  /** The sequence that it got; null when another client was faster. */
  #put(client: NatsClient, identity: DataIdentity, sequence: number): Promise<number | null> {
    const writing = putMessage(client, this.#layout.identitySubject, encodeIdentity(identity), sequence);
    return writing.catch((error: unknown) => {
      if (isConflict(error)) return null;
      throw error;
    });
  }
}

/** Null when the connection leads through a server that does not keep the stream itself. */
function serverIdOf({ connection }: NatsClient, { cluster }: StreamInfo): string | null {
  // A single server has no cluster, or one without a name.
  if (cluster?.name) return cluster.name;
  return connection.info?.jetstream === true ? connection.info.server_id : null;
}
