/** From a place to a store: choose the protocol, let the server prove itself, begin. */
import { realEnv } from "../../env/index.ts";
import { assertWholeNumbers, type LeaseStore, SimpleStore } from "../../store/index.ts";
import { assertOptions, type CallOptions, configError } from "../support/options.ts";
import { azureProtocol } from "./azure.ts";
import { OBJECT_CODEC, ObjectBackend } from "./backend.ts";
import { etagProtocol } from "./etag-http.ts";
import { ObjectNames } from "./names.ts";
import { type ConditionalObjects, HttpObjects } from "./objects.ts";
import { probe } from "./probe.ts";
import { s3Protocol } from "./s3.ts";
import {
  assertPrefix,
  DEFAULT_PREFIX,
  type ObjectPlace,
  type ParsedUrl,
  parseObjectUrl,
  type Variables,
} from "./urls.ts";

const DEFAULT_TIMEOUT_MS = 5_000;
/** Many small calls at once: the time of a large call is known badly, and its slowest request holds the others. */
const CONCURRENCY = 128;

export type ObjectStoreOptions = CallOptions & {
  /** How far the clocks of the servers behind the address may be apart. Default 2000; 0 for a single server. */
  readonly clockSkewMs?: number;
} & (
    | { readonly place: ObjectPlace /** Default `leases/`. */; readonly prefix?: string }
    | {
        /** `s3://bucket/prefix?endpoint=…&region=…`, `azblob://container/prefix`, `https+etag://host/path/`. */
        readonly url: string;
        /** In place of the URL's path. */
        readonly prefix?: string;
        /** Where credentials are looked up. Default: the process's environment. */
        readonly variables?: Variables;
      }
  );

/** Rejects with a StoreError of one line: wrong place, wrong credentials, a server that ignores conditions. */
export async function openObjectStore(options: ObjectStoreOptions): Promise<LeaseStore> {
  const known = "url place prefix variables timeoutMs clockSkewMs";
  assertOptions("openObjectStore", options, '{ url: "s3://bucket/prefix" }', known);
  const { place, prefix, ...parsed } = parsedFrom(options);
  const clockSkewMs = options.clockSkewMs ?? parsed.clockSkewMs ?? 2_000;
  assertWholeNumbers(place.kind, { clockSkewMs }, 0);
  const names = new ObjectNames(prefix);
  const backend = new ObjectBackend({ names, ...(await openProbed(place, names, options)) });
  const { env = realEnv, timeoutMs = DEFAULT_TIMEOUT_MS } = options;
  return new SimpleStore({
    name: place.kind,
    backend,
    codec: OBJECT_CODEC,
    durable: true,
    clock: "reply",
    clockGranularityMs: 1_000,
    clockSkewMs,
    concurrency: CONCURRENCY,
    // Each request has its own deadline, and knows whether it was sent. A write may take two of them.
    timeoutMs: 2 * timeoutMs,
    env,
  });
}

/** The objects themselves, for a FencedObjectWriter, on a server that has passed the probe. */
export async function openObjects(
  place: ObjectPlace,
  options: CallOptions & {
    /** Where the probe writes. Default `leases/`. */ readonly prefix?: string;
  } = {},
): Promise<ConditionalObjects> {
  const prefix = assertPrefix(options.prefix ?? DEFAULT_PREFIX, place.kind);
  return (await openProbed(place, new ObjectNames(prefix), options)).objects;
}

async function openProbed(
  place: ObjectPlace,
  names: ObjectNames,
  options: CallOptions,
): Promise<{ readonly objects: ConditionalObjects; readonly conditionalDelete: boolean }> {
  const objects = await connectObjects(place, options);
  try {
    return { objects, ...(await probe(objects, names, options.env ?? realEnv)) };
  } catch (error) {
    objects.close();
    throw error;
  }
}

/** Without the probe: nobody knows yet whether the server keeps conditions. */
export async function connectObjects(
  place: ObjectPlace,
  { env = realEnv, timeoutMs = DEFAULT_TIMEOUT_MS }: CallOptions = {},
): Promise<HttpObjects> {
  assertWholeNumbers(place.kind, { timeoutMs }, 1);
  const options = { env, timeoutMs, maxSockets: CONCURRENCY };
  if (place.kind === "s3") return new HttpObjects(await s3Protocol(place, options));
  if (place.kind === "azblob") return new HttpObjects(azureProtocol(place, options));
  return new HttpObjects(etagProtocol(place, options));
}

function parsedFrom(options: ObjectStoreOptions): ParsedUrl {
  if (!("place" in options)) {
    const parsed = parseObjectUrl(String(options.url), options.variables ?? process.env);
    const { prefix = parsed.prefix } = options;
    return { ...parsed, prefix: assertPrefix(prefix, parsed.place.kind) };
  }
  const { place, prefix = DEFAULT_PREFIX } = options;
  if (!["s3", "azblob", "https+etag"].includes(place?.kind))
    throw configError(
      `openObjectStore: place.kind must be "s3", "azblob" or "https+etag", got '${String(place?.kind)}'`,
    );
  return { place, prefix: assertPrefix(prefix, place.kind) };
}
