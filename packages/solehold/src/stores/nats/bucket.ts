/**
 * The bucket: a stream with the settings of a NATS key-value bucket, created when it is missing, and refused
 * when it would lose records of its own accord. Messages are read from it in one of two ways:
 *
 *   directly, where one server keeps the stream: any copy of it is the only one.
 *   from the leader, where it has replicas: a direct read may be answered by one that lags behind.
 */
import { StoreError } from "../../store/index.ts";
import type { NatsLayout } from "./layout.ts";
import {
  answerOf,
  bufferOf,
  type KeptMessage,
  keptFromDirect,
  keptFromLeader,
  RefusedRequest,
  STREAM_NOT_FOUND,
} from "./replies.ts";
import type { NatsWire } from "./wire.ts";

export interface BucketInfo {
  readonly reads: "direct" | "leader";
  /** Whether a crash of one machine leaves a copy. */
  readonly replicated: boolean;
  readonly lastSequence: number;
}

interface StreamAnswer {
  readonly config: Readonly<Record<string, unknown>>;
  readonly state: { readonly last_seq: number; readonly subjects?: Readonly<Record<string, number>> };
  readonly total?: number;
}

/** Null when there is no such bucket; rejects when leases would not be safe in it. */
export async function lookAtBucket(
  wire: NatsWire,
  layout: NatsLayout,
  address: string,
): Promise<BucketInfo | null> {
  let answer: StreamAnswer;
  try {
    answer = answerOf(await wire.request(layout.api("STREAM.INFO"))) as StreamAnswer;
  } catch (error) {
    if (error instanceof RefusedRequest && error.code === STREAM_NOT_FOUND) return null;
    throw error;
  }
  const { config, state } = answer;
  const replicas = Number(config.num_replicas ?? 1);
  const problem = bucketProblem(config, layout) ?? replicaProblem(wire.serverVersion, replicas);
  if (problem !== null) {
    const message = `NATS at ${address}: the bucket of ${layout.stream} ${problem}`;
    throw new StoreError("config", message, { outcome: "not-applied" });
  }
  return {
    reads: replicas === 1 && config.allow_direct === true ? "direct" : "leader",
    replicated: replicas > 2 && config.storage === "file",
    lastSequence: state.last_seq,
  };
}

/** As `nats kv add` would. Two that create it at once make the same. */
export async function createBucket(wire: NatsWire, layout: NatsLayout, replicas: number): Promise<void> {
  const config = {
    name: layout.stream,
    subjects: [`${layout.base}>`],
    retention: "limits",
    storage: "file",
    discard: "new",
    max_msgs_per_subject: 1,
    max_msgs: -1,
    max_bytes: -1,
    max_age: 0,
    max_msg_size: -1,
    max_consumers: -1,
    num_replicas: replicas,
    deny_delete: true,
    allow_rollup_hdrs: true,
    allow_direct: true,
  };
  answerOf(await wire.request(layout.api("STREAM.CREATE"), JSON.stringify(config)));
}

/** Every subject that matches and has a message, markers included. */
export async function subjectsIn(wire: NatsWire, layout: NatsLayout, filter: string): Promise<string[]> {
  const subjects: string[] = [];
  for (;;) {
    const request = JSON.stringify({ subjects_filter: filter, offset: subjects.length });
    const answer = answerOf(await wire.request(layout.api("STREAM.INFO"), request)) as StreamAnswer;
    const page = Object.keys(answer.state.subjects ?? {});
    subjects.push(...page);
    if (page.length === 0 || subjects.length >= (answer.total ?? 0)) return subjects;
  }
}

/** The last message of a subject; null when there is none. Sent at once. */
export async function lastMessage(
  wire: NatsWire,
  layout: NatsLayout,
  reads: BucketInfo["reads"],
  subject: string,
): Promise<KeptMessage | null> {
  if (reads === "direct") return keptFromDirect(await wire.request(`${layout.api("DIRECT.GET")}.${subject}`));
  const request = JSON.stringify({ last_by_subj: subject });
  return keptFromLeader(await wire.request(layout.api("STREAM.MSG.GET"), request));
}

/** As `lastMessage`, but nothing is looked at where the content is what it is known to be: that is nearly always. */
export async function unlessKnown(
  wire: NatsWire,
  layout: NatsLayout,
  reads: BucketInfo["reads"],
  subject: string,
  content: Buffer,
): Promise<KeptMessage | null | "known"> {
  if (reads === "leader") {
    const kept = await lastMessage(wire, layout, reads, subject);
    return kept?.data.equals(content) === true ? "known" : kept;
  }
  const message = await wire.request(`${layout.api("DIRECT.GET")}.${subject}`);
  return bufferOf(message.data).equals(content) ? "known" : keptFromDirect(message);
}

/**
 * Older servers compare the sequence of a key with what is stored, but not with what is about to be: of many
 * who write to a replicated stream at once on the same condition, all succeed.
 */
export function replicaProblem(serverVersion: string, replicas: number): string | null {
  const [major = 0, minor = 0, patch = 0] = serverVersion.split(/[.-]/, 3).map(Number);
  const isSafe = major > 2 || (major === 2 && (minor > 9 || (minor === 9 && patch >= 21)));
  if (replicas === 1 || isSafe) return null;
  return `has ${replicas} replicas, whose conditional writes nats-server ${serverVersion} gets wrong: upgrade it to 2.9.21 or later, or use one replica`;
}

function bucketProblem(config: StreamAnswer["config"], { base, stream }: NatsLayout): string | null {
  const { subjects, mirror, sources } = config;
  if (mirror !== undefined || sources !== undefined) return "is a copy of another: use the original";
  if (!Array.isArray(subjects) || !subjects.includes(`${base}>`))
    return `does not take ${base}>: it is no key-value bucket, name another one`;
  if (Number(config.max_age ?? 0) !== 0)
    return `lets records end after a time, so fences would be forgotten: run \`nats stream edit ${stream} --max-age=0\``;
  if (config.discard !== "new")
    return `discards old records when it is full, so fences would be forgotten: run \`nats stream edit ${stream} --discard=new\``;
  // Servers were seen to drop the oldest records at such a limit, although they are told to refuse new ones.
  if (Number(config.max_bytes ?? -1) > 0 || Number(config.max_msgs ?? -1) > 0)
    return `has a limit, at which records may be dropped: run \`nats stream edit ${stream} --max-bytes=-1 --max-msgs=-1\``;
  if (config.discard_new_per_subject === true)
    return "refuses to replace a record (discard_new_per_subject): turn that off";
  if (config.retention !== undefined && config.retention !== "limits")
    return `has the retention '${String(config.retention)}': a bucket has 'limits'`;
  if (config.no_ack === true) return "does not acknowledge what is written (no_ack): turn that off";
  return config.sealed === true ? "is sealed: name another one" : null;
}
