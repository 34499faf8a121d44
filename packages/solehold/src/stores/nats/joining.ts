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
import { decodeIdentity, encodeIdentity, lossSince, nextIdentity } from "../support/data-identity.ts";
import { openBucket } from "./bucket.ts";
import type { NatsClient } from "./client.ts";
import { isConflict } from "./errors.ts";
import type { NatsLayout } from "./layout.ts";
import type { NatsSettings } from "./options.ts";
import { assertLeader, lastMessage, NatsSession, putMessage } from "./session.ts";

/** How often other clients may change the identity while this one joins. */
const MAX_ATTEMPTS = 8;

export interface JoiningOptions {
  readonly env: Env;
  readonly layout: NatsLayout;
  readonly settings: NatsSettings;
}

export class NatsJoining {
  readonly #options: JoiningOptions;
  #last: NatsSession | null = null;
  #loss: string | null = null;

  constructor(options: JoiningOptions) {
    this.#options = options;
  }

  async join(client: NatsClient): Promise<NatsSession> {
    for (let attempt = 0; attempt < MAX_ATTEMPTS; attempt += 1) {
      const session = await this.#attempt(client);
      if (session !== null) return session;
    }
    const { address } = this.#options.settings;
    const message = `NATS at ${address}: other clients keep changing the identity of the data: try again`;
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
    const { env, layout, settings } = this.#options;
    const { address, replicas } = settings;
    const serverVersion = client.connection.info?.version ?? "";
    const info = await openBucket(client.manager, { layout, replicas, serverVersion, address });
    assertLeader(info);
    const message = await lastMessage(client, info, layout.identitySubject);
    const found = message === null ? null : decodeIdentity(Buffer.from(message.data).toString());
    const server = {
      serverId: serverIdOf(client, info) ?? found?.servers.at(-1)?.serverId ?? "unknown",
      // No clock is read here. For people, the time of the last write that this server has.
      nowMs: Date.parse(info.state.last_ts),
      sequence: BigInt(info.state.last_seq),
    };
    const next = nextIdentity(found, server, Buffer.from(env.randomBytes(5)).toString("hex"));
    const identity = next ?? found;
    if (identity === null) return null;
    let identitySequence = message?.seq ?? 0;
    if (next !== null) {
      try {
        const text = encodeIdentity(next);
        identitySequence = await putMessage(client, layout.identitySubject, text, identitySequence);
      } catch (error) {
        if (isConflict(error)) return null;
        throw error;
      }
    }
    if (this.#last !== null) this.#loss ??= lossSince(this.#last.sighting, identity, server.sequence);
    this.#last = new NatsSession(client, { layout, identity, identitySequence, info });
    return this.#last;
  }
}

/** Null when the connection leads through a server that does not keep the stream itself. */
function serverIdOf({ connection }: NatsClient, { cluster }: StreamInfo): string | null {
  if (cluster?.name !== undefined) return cluster.name;
  const { info } = connection;
  return info?.jetstream === true ? info.server_id : null;
}
