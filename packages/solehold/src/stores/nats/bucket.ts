/**
 * The bucket: a stream with the settings of a NATS key-value bucket, created when it is missing, and refused when
 * conditional writes would not be safe in it or records would vanish of their own accord.
 */
import type { StreamConfig, StreamInfo } from "@nats-io/jetstream";
import { StoreError } from "../../store/index.ts";
import type { NatsClient } from "./client.ts";
import { errorCodeOf, STREAM_NAME_IN_USE, STREAM_NOT_FOUND } from "./errors.ts";
import type { NatsLayout } from "./layout.ts";
import type { NatsSettings } from "./options.ts";

type Settings = Readonly<Partial<StreamConfig>> & Readonly<Record<string, unknown>>;

/** Looks at the bucket, and creates it if there is none. Rejects when leases would not be safe in it. */
export async function openBucket(
  client: NatsClient,
  layout: NatsLayout,
  settings: NatsSettings,
): Promise<StreamInfo> {
  const { streams } = client.executor;
  const serverVersion = client.connection.info?.version ?? "";
  const info = await streams.info(layout.stream).catch((error: unknown) => {
    if (errorCodeOf(error) === STREAM_NOT_FOUND) return null;
    throw error;
  });
  const replicas = info?.config.num_replicas ?? settings.replicas;
  const problem =
    (info === null ? null : settingsProblem(info.config as Settings, layout)) ??
    replicaProblem(serverVersion, replicas);
  if (problem !== null) {
    const message = `NATS at ${settings.address}: the bucket of ${layout.stream} ${problem}`;
    throw new StoreError("config", message, { outcome: "not-applied" });
  }
  if (info !== null) return info;
  // As `nats kv add` makes it, without any limit: two clients that create it at once ask for the same.
  const creating = streams.add({
    name: layout.stream,
    subjects: [`${layout.base}>`],
    storage: "file",
    discard: "new",
    max_msgs_per_subject: 1,
    num_replicas: replicas,
    deny_delete: true,
    allow_rollup_hdrs: true,
    allow_direct: true,
  });
  return creating.catch((error: unknown) => {
    // Another client created it at the same time, with other settings than ours.
    if (errorCodeOf(error) === STREAM_NAME_IN_USE) return openBucket(client, layout, settings);
    throw error;
  });
}

/**
 * Older servers do not compare a create (expected sequence 0) with writes that are still on their way to the
 * replicas: some replicas may store what others refuse (nats-server #5794), and before 2.10.23 a crash could lose
 * a whole replicated stream.
 */
export function replicaProblem(serverVersion: string, replicas: number): string | null {
  const [major = 0, minor = 0, patch = 0] = serverVersion.split(/[.-]/, 3).map(Number);
  const isSafe = major > 2 || (major === 2 && (minor > 10 || (minor === 10 && patch >= 23)));
  if (replicas === 1 || isSafe) return null;
  return `has ${replicas} replicas, but on nats-server ${serverVersion} some replicas may store a conditional write that others refuse: upgrade all servers to 2.10.23 or later, or use one replica`;
}

function settingsProblem(config: Settings, { base, stream }: NatsLayout): string | null {
  const { subjects, mirror, sources } = config;
  if (mirror !== undefined || sources !== undefined) return "is a copy of another: use the original";
  if (!Array.isArray(subjects) || !subjects.includes(`${base}>`))
    return `does not take ${base}>: it is no key-value bucket, name another one`;
  if (Number(config.max_age ?? 0) !== 0)
    return `lets records end after a time, so fences would be forgotten: run \`nats stream edit ${stream} --max-age=0\``;
  if (config.discard !== "new")
    return `discards old records when it is full, so fences would be forgotten: run \`nats stream edit ${stream} --discard=new\``;
  // Servers were seen to drop the oldest records at such a limit, although they are set to refuse new ones.
  if (Number(config.max_bytes ?? -1) > 0 || Number(config.max_msgs ?? -1) > 0)
    return `has a limit, at which records may be dropped: run \`nats stream edit ${stream} --max-bytes=-1 --max-msgs=-1\``;
  if (config.discard_new_per_subject === true)
    return "refuses to replace a record (discard_new_per_subject): turn that off";
  if (config.retention !== undefined && config.retention !== "limits")
    return `has the retention '${config.retention}': a bucket has 'limits'`;
  if (config.no_ack === true) return "does not acknowledge what is written (no_ack): turn that off";
  if (config.subject_transform !== undefined)
    return "stores records under other subjects (subject_transform): turn that off";
  if (config.persist_mode === "async")
    return "acknowledges writes before they are stored (persist_mode: async): name another one";
  return config.sealed === true ? "is sealed: name another one" : null;
}
