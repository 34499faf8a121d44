/**
 * Whose data this is: how a client notices that a store lost what it had acknowledged, and that another server, with
 * another clock, now answers for it.
 *
 * The store keeps one small value beside the records. It names the data set (a random id, written once) and the servers
 * that have answered for it, each with the time on its own clock and the store's write counter when it took over. A
 * client that finds another server than the last one adds it. From this
 * - a client that saw writes beyond the point at which a later server took over knows that they are lost, even when
 *   others have written more since;
 * - a client that comes later knows when the clock last changed, and takes over by observation for a while.
 */

export interface ServerChange {
  readonly serverId: string;
  /** On this server's own clock. */
  readonly atMs: number;
  /** The store's write counter when this server was first met. */
  readonly sequence: string;
}

export interface DataIdentity {
  readonly dataId: string;
  /** Oldest first, never empty, at most MAX_SERVERS. The first is the one that the data set began on. */
  readonly servers: readonly ServerChange[];
}

/** What a client saw last. */
export interface DataSighting {
  readonly dataId: string;
  readonly serverId: string;
  readonly sequence: bigint;
}

const MAX_SERVERS = 8;

/** `stored` itself when the server that answers is the last one named: then nothing has to be written. */
export function nextIdentity(
  stored: DataIdentity | null,
  server: { readonly serverId: string; readonly nowMs: number; readonly sequence: bigint },
  newDataId: string,
): DataIdentity {
  const { serverId, nowMs, sequence } = server;
  const change: ServerChange = { serverId, atMs: nowMs, sequence: String(sequence) };
  if (stored === null) return { dataId: newDataId, servers: [change] };
  if (stored.servers.at(-1)?.serverId === serverId) return stored;
  return { dataId: stored.dataId, servers: [...stored.servers, change].slice(-MAX_SERVERS) };
}

/** When the server last changed, on its present clock; null while the first one answers. */
export function serverChangedAtMs(identity: DataIdentity): number | null {
  return identity.servers.length < 2 ? null : (identity.servers.at(-1)?.atMs ?? null);
}

/** In one sentence what this client saw that is gone; null when all of it may still be there. */
export function lossSince(seen: DataSighting, identity: DataIdentity, sequence: bigint): string | null {
  if (seen.dataId !== identity.dataId) return "its data was deleted or replaced";
  const metAt = identity.servers.findLastIndex(({ serverId }) => serverId === seen.serverId);
  const later = identity.servers.slice(metAt + 1);
  const behind = later.find((change) => BigInt(change.sequence) < seen.sequence);
  if (behind !== undefined || sequence < seen.sequence) return "its last acknowledged writes are gone";
  return null;
}

/**
 * After a loss, with which everybody has to go on. Where the identity shows the loss to all who saw more, it stays.
 * Otherwise (older data on the same server) it gets a new id, because others may soon write beyond what they saw: then
 * every client notices, even one that lost nothing.
 */
export function identityAfterLoss(
  seen: DataSighting,
  identity: DataIdentity,
  server: { readonly serverId: string; readonly nowMs: number; readonly sequence: bigint },
  newDataId: string,
): DataIdentity {
  if (lossSince(seen, identity, seen.sequence) !== null) return identity;
  const { serverId, nowMs, sequence } = server;
  const change: ServerChange = { serverId, atMs: nowMs, sequence: String(sequence) };
  return { dataId: newDataId, servers: [...identity.servers, change].slice(-MAX_SERVERS) };
}

export function encodeIdentity(identity: DataIdentity): string {
  return JSON.stringify(identity);
}

/** Null for anything that is not an identity. */
export function decodeIdentity(text: string): DataIdentity | null {
  try {
    const { dataId, servers } = JSON.parse(text) as Partial<DataIdentity>;
    const isValid =
      typeof dataId === "string" &&
      Array.isArray(servers) &&
      servers.length > 0 &&
      servers.every(isServerChange);
    return isValid ? { dataId, servers } : null;
  } catch {
    return null;
  }
}

function isServerChange(value: Partial<ServerChange> | null): value is ServerChange {
  return (
    typeof value?.serverId === "string" &&
    Number.isSafeInteger(value.atMs) &&
    typeof value.sequence === "string" &&
    /^\d{1,20}$/.test(value.sequence)
  );
}
