/**
 * The writer's lifecycle, configured by the environment, so that a deployment decides and not the program:
 *
 * | variable | meaning | default |
 * |---|---|---|
 * | SOLEHOLD_WRITER_LEASE | required, or not_required | required |
 * | SOLEHOLD_WRITER_TTL | how long the lease lasts without a refresh: 30s, 1m, or milliseconds | 30s |
 * | SOLEHOLD_HOLDER | this instance's name | host, process and a random part |
 * | SOLEHOLD_PREFIX | where an object or file store keeps its leases | the URL's path, or leases/ |
 */
import { type ConnectOptions, connect } from "../client/connect.ts";
import { durationMs } from "../core/index.ts";
import { given } from "../support/given.ts";
import { WriterInstance, type WriterInstanceOptions } from "./write-gate.ts";

type Variables = Readonly<Record<string, string | undefined>>;

export type WriterSettings = Pick<WriterInstanceOptions, "lease"> &
  Pick<ConnectOptions, "holder" | "prefix"> & { readonly ttl?: number };

/** Throws RangeError naming the variable, what it is and what it may be. An empty variable counts as not set. */
export function writerSettings(variables: Variables = process.env): WriterSettings {
  const lease = textIn(variables, "SOLEHOLD_WRITER_LEASE") ?? "required";
  if (lease !== "required" && lease !== "not_required")
    throw new RangeError(`SOLEHOLD_WRITER_LEASE must be required or not_required, got '${lease}'`);
  const text = textIn(variables, "SOLEHOLD_WRITER_TTL");
  const ttl =
    text === undefined
      ? undefined
      : durationMs("SOLEHOLD_WRITER_TTL", /^\d+$/.test(text) ? Number(text) : text, 1);
  const holder = textIn(variables, "SOLEHOLD_HOLDER");
  const prefix = textIn(variables, "SOLEHOLD_PREFIX");
  return { lease, ...given({ ttl, holder, prefix }) };
}

export type WriterFromEnvOptions = Omit<WriterInstanceOptions, "leases" | "lease"> &
  ConnectOptions & {
    /** Default: the process's environment. */
    readonly variables?: Variables;
  };

/** Options of the program stand above the environment. Where no lease is required, the store is not opened. */
export async function openWriterInstance(
  url: string,
  options: WriterFromEnvOptions,
): Promise<WriterInstance> {
  const { databaseKey, onDrain, onAudit, term, variables, ttl, ...connecting } = options;
  const { lease, ttl: fromEnvMs, ...fromEnv } = writerSettings(variables);
  const leases =
    lease === "required"
      ? await connect(url, { ...fromEnv, ...connecting })
      : await connect("memory:", given({ env: connecting.env }));
  const optional = given({ ttl: ttl ?? fromEnvMs, term, onAudit });
  return new WriterInstance({ leases, databaseKey, lease, onDrain, ...optional });
}

function textIn(variables: Variables, name: string): string | undefined {
  const value = variables[name]?.trim();
  return value === "" ? undefined : value;
}
