/**
 * One connection that has joined its data, and the requests that can be made on it. Each request is sent once. When
 * the connection ends, all that waits on it fails, and the session is of no use any more.
 *
 * A version is the sequence of the key's last message, which is what the server compares, with the id of the data and
 * the number of losses that this client has noticed. A stream that was created anew, restored from a backup, or lost
 * its last messages in a crash gives sequences out again. So that a version never stands for two writes of a key, one
 * from before a loss is sent as a sequence that no message has.
 */
import type { StoredMsg, StreamInfo, StreamInfoRequestOptions } from "@nats-io/jetstream";
import type { LeaseKey } from "../../core/index.ts";
import { ABSENT, type StoredRecord, storedFromText } from "../../store/index.ts";
import type { DataIdentity, DataSighting } from "../support/data-identity.ts";
import type { NatsClient } from "./client.ts";
import { DoubtfulData } from "./errors.ts";
import type { NatsLayout } from "./layout.ts";

export interface JoinedData {
  /** Of the servers, for messages. */
  readonly address: string;
  readonly layout: NatsLayout;
  readonly identity: DataIdentity;
  /** Of the message that holds the identity. */
  readonly identitySequence: number;
  /** How many losses this client has noticed. */
  readonly losses: number;
  /** As the stream was when it was joined. */
  readonly info: StreamInfo;
}

/** The last message of a key, whichever way it was read. */
export type KeyMessage = Pick<StoredMsg, "seq" | "data"> & Partial<Pick<StoredMsg, "header">>;

const NO_SEQUENCE = Number.MAX_SAFE_INTEGER;

export class NatsSession {
  readonly client: NatsClient;
  readonly data: JoinedData;
  #lastSequence: number;

  constructor(client: NatsClient, data: JoinedData) {
    this.client = client;
    this.data = data;
    this.#lastSequence = Math.max(data.info.state.last_seq, data.identitySequence);
  }

  /** What this client has seen of the data. */
  get sighting(): DataSighting {
    const { dataId, servers } = this.data.identity;
    return { dataId, serverId: servers.at(-1)?.serverId ?? "", sequence: BigInt(this.#lastSequence) };
  }

  subjectOf(key: LeaseKey): string {
    return this.data.layout.recordSubject(this.data.identity.dataId, key);
  }

  /** The key's last message; null when there is none. */
  last(key: LeaseKey): Promise<KeyMessage | null> {
    return lastMessage(this.client, this.data.info, this.subjectOf(key));
  }

  /**
   * Stores a message on condition of the sequence of the key's last one; `text` null leaves a delete marker. The
   * sequence that it got. Throws DoubtfulData when that is not above all that was seen before.
   */
  async put(key: LeaseKey, text: string | null, expected: number): Promise<number> {
    const seenBefore = this.#lastSequence;
    const sequence = await putMessage(this.client, this.subjectOf(key), text, expected);
    if (sequence <= seenBefore) throw new DoubtfulData();
    this.#lastSequence = Math.max(this.#lastSequence, sequence);
    return sequence;
  }

  /** The stream as it is now. Throws DoubtfulData when it is not the data that was joined. */
  async check(request: Partial<StreamInfoRequestOptions> = {}): Promise<StreamInfo> {
    const seenBefore = this.#lastSequence;
    const { layout, info: joined, identitySequence } = this.data;
    const info = await this.client.executor.streams.info(layout.stream, request);
    assertLeader(info);
    const { first_seq: first, last_seq: last } = info.state;
    const isOther = info.created !== joined.created || first > identitySequence;
    if (isOther || last < seenBefore) throw new DoubtfulData();
    this.#lastSequence = Math.max(this.#lastSequence, last);
    return info;
  }

  stored(key: LeaseKey, message: KeyMessage | null): StoredRecord {
    if (message === null || isMarker(message)) return ABSENT;
    return storedFromText(key, Buffer.from(message.data).toString(), this.versionOf(message.seq));
  }

  versionOf(sequence: number): string {
    const { identity, losses } = this.data;
    return `${sequence}.${identity.dataId}.${losses}`;
  }

  /** What the server has to compare for this version. */
  sequenceOf(version: string | null): number {
    if (version === null) return 0;
    const sequence = Number.parseInt(version, 10);
    return sequence > 0 && version === this.versionOf(sequence) ? sequence : NO_SEQUENCE;
  }
}

/**
 * Directly, where one server keeps the stream. With replicas from the leader, because a direct read may be answered by
 * one that lags behind.
 */
export function lastMessage(
  { executor }: NatsClient,
  { config }: StreamInfo,
  subject: string,
): Promise<KeyMessage | null> {
  const reader = config.num_replicas === 1 && config.allow_direct ? executor.direct : executor.streams;
  return reader.getMessage(config.name, { last_by_subj: subject });
}

export async function putMessage(
  { jetstream, newHeaders }: NatsClient,
  subject: string,
  text: string | null,
  expected: number,
): Promise<number> {
  const headers = newHeaders();
  if (text === null) headers.set("KV-Operation", "DEL");
  const expect = { lastSubjectSequence: expected };
  return (await jetstream.publish(subject, text ?? "", { expect, headers, retries: 1 })).seq;
}

/** Without a leader any replica answers, and may lag behind: what it shows would look like a loss. */
export function assertLeader({ cluster, config }: StreamInfo): void {
  if (cluster === undefined || (cluster.leader ?? "") !== "") return;
  throw new Error(`${config.name} has no leader at the moment`);
}

/** A delete marker: of a key-value client, or of the server itself. */
export function isMarker({ data, header }: KeyMessage): boolean {
  return data.length === 0 && (header?.has("KV-Operation") || header?.has("Nats-Marker-Reason")) === true;
}
