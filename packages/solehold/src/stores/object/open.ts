/** From a place to a store: choose the dialect, let the server prove itself, begin. */
import { type Env, realEnv } from "../../env/index.ts";
import { assertOptions } from "../support/options.ts";
import { type AzurePlace, azureDialect } from "./azure.ts";
import type { Dialect } from "./dialect.ts";
import { type EtagPlace, etagDialect } from "./etag-http.ts";
import { HttpClient } from "./http.ts";
import { HttpObjects } from "./http-objects.ts";
import { LeaseObjects } from "./lease-objects.ts";
import { ObjectNames } from "./names.ts";
import { assertPrefix, parseAzureUrl, parseEtagUrl, parseS3Url, problem, type Variables } from "./options.ts";
import type { ConditionalObjects } from "./port.ts";
import { probe } from "./probe.ts";
import { type S3Place, s3Dialect } from "./s3.ts";
import { ObjectStore } from "./store.ts";

/** Where the objects lie, each with all that is needed to reach it. */
export type ObjectPlace =
  | ({ readonly kind: "s3" } & S3Place)
  | ({ readonly kind: "azblob" } & AzurePlace)
  | ({ readonly kind: "https+etag" } & EtagPlace);

interface CommonOptions {
  /** A request that got no whole answer by then ends, with its outcome unknown. Default 5000. */
  readonly timeoutMs?: number;
  readonly env?: Env;
}

export type ObjectStoreOptions = CommonOptions &
  (
    | { readonly place: ObjectPlace /** Default `leases/`. */; readonly prefix?: string }
    | {
        /** `s3://bucket/prefix?endpoint=…&region=…`, `azblob://container/prefix`, `https+etag://host/path/`. */
        readonly url: string;
        /** Where credentials are looked up. Default: the process's environment. */
        readonly variables?: Variables;
      }
  );

/** Rejects with a StoreError of one line: wrong place, wrong credentials, a server that ignores conditions. */
export async function openObjectStore(options: ObjectStoreOptions): Promise<ObjectStore> {
  assertOptions("openObjectStore", options, '{ url: "s3://bucket/prefix" }');
  const { env = realEnv } = options;
  const { place, prefix } = placeOf(options);
  const objects = await connectObjects(place, options);
  const names = new ObjectNames(prefix);
  try {
    const { conditionalDelete } = await probe(objects, names, env);
    return new ObjectStore({
      name: place.kind,
      objects: new LeaseObjects(objects, names),
      conditionalDelete,
    });
  } catch (error) {
    objects.close();
    throw error;
  }
}

/** The objects themselves, for a FencedObjectWriter, on a server that has passed the probe. */
export async function openObjects(
  place: ObjectPlace,
  options: CommonOptions & {
    /** Where the probe writes. Default `leases/`. */ readonly prefix?: string;
  } = {},
): Promise<ConditionalObjects> {
  const { env = realEnv, prefix = "leases/" } = options;
  const objects = await connectObjects(place, options);
  try {
    await probe(objects, new ObjectNames(assertPrefix(prefix, place.kind)), env);
    return objects;
  } catch (error) {
    objects.close();
    throw error;
  }
}

/** Without the probe: nobody knows yet whether the server keeps conditions. */
export async function connectObjects(place: ObjectPlace, options: CommonOptions = {}): Promise<HttpObjects> {
  const { env = realEnv, timeoutMs = 5_000 } = options;
  if (!Number.isSafeInteger(timeoutMs) || timeoutMs < 1)
    throw problem(`${place.kind}: timeoutMs must be a whole number from 1, got ${String(timeoutMs)}`);
  return new HttpObjects(await dialectOf(place, env), new HttpClient(env, timeoutMs));
}

async function dialectOf(place: ObjectPlace, env: Env): Promise<Dialect> {
  if (place.kind === "s3") return await s3Dialect(place, env);
  return place.kind === "azblob" ? azureDialect(place, env) : etagDialect(place);
}

function placeOf(options: ObjectStoreOptions): { readonly place: ObjectPlace; readonly prefix: string } {
  if ("place" in options) {
    const { place, prefix = "leases/" } = options;
    return { place, prefix: assertPrefix(prefix, place.kind) };
  }
  const { variables = process.env } = options;
  const url = String(options.url);
  if (/^s3:/i.test(url)) {
    const { place, prefix } = parseS3Url(url, variables);
    return { place: { kind: "s3", ...place }, prefix };
  }
  if (/^azblob:/i.test(url)) {
    const { place, prefix } = parseAzureUrl(url, variables);
    return { place: { kind: "azblob", ...place }, prefix };
  }
  return { place: { kind: "https+etag", ...parseEtagUrl(url) }, prefix: "leases/" };
}
