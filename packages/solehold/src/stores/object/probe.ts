/**
 * Several servers accept conditions and ignore them, silently: two writers would both win. So before the
 * first lease, the server must show on an object of our own that a create fails where something exists,
 * that a wrong ETag fails, and that a right one works. How ETags must be quoted comes out of it, too, and
 * whether deletes keep conditions.
 */
import { type Env, randomId } from "../../env/index.ts";
import { StoreError } from "../../store/index.ts";
import type { ObjectNames } from "./names.ts";
import type { ConditionalObjects, PutOutcome } from "./objects.ts";

const WRONG_ETAG = "00000000000000000000000000000000";
const QUOTINGS = ["quoted", "bare"] as const;

/** Rejects with a StoreError "config" when the server cannot be trusted. Leaves nothing behind. */
export async function probe(
  objects: ConditionalObjects,
  names: ObjectNames,
  env: Env,
): Promise<{ readonly conditionalDelete: boolean }> {
  const name = names.probeName(randomId(env));
  const content = (): Buffer => Buffer.from(`probe ${randomId(env)}\n`);
  try {
    const first = answered(await objects.putIfAbsent(name, content()));
    if (first.kind !== "applied")
      throw unfit(objects, "refuses to create an object under a name that nobody uses");
    if (first.dateMs === null) throw unfit(objects, "sends no Date header, and leases need its clock");
    const again = answered(await objects.putIfAbsent(name, content()));
    if (again.kind === "applied") throw unfit(objects, "ignores If-None-Match");
    const etag = (await objects.get(name)).object?.etag;
    if (etag === undefined) throw unfit(objects, "does not show an object right after it was written");
    const second = await probeMatching(objects, name, etag, content);
    const stale = answered(await objects.putIfMatch(name, etag, content()));
    if (stale.kind === "applied") throw unfit(objects, "accepts an If-Match of an older version");
    return { conditionalDelete: await probeDelete(objects, name, second) };
  } finally {
    await objects.remove(name).catch(() => undefined);
  }
}

/** The ETag after one write on condition. The first quoting that works stays. */
async function probeMatching(
  objects: ConditionalObjects,
  name: string,
  etag: string,
  content: () => Buffer,
): Promise<string> {
  for (const quoting of QUOTINGS) {
    objects.quoting = quoting;
    const wrong = answered(await objects.putIfMatch(name, WRONG_ETAG, content()));
    if (wrong.kind === "applied") throw unfit(objects, "ignores If-Match");
    const right = answered(await objects.putIfMatch(name, etag, content()));
    if (right.kind !== "applied") continue;
    const after = (await objects.get(name)).object?.etag;
    if (after === undefined || after === etag)
      throw unfit(objects, "keeps the ETag of an object whose content changed");
    return after;
  }
  throw unfit(objects, "refuses If-Match even with the current ETag");
}

async function probeDelete(objects: ConditionalObjects, name: string, etag: string): Promise<boolean> {
  try {
    const wrong = await objects.deleteIfMatch(name, WRONG_ETAG);
    if (wrong.kind !== "precondition-failed") return false;
    if ((await objects.get(name)).object?.etag !== etag) return false;
    const right = await objects.deleteIfMatch(name, etag);
    return right.kind === "applied" && (await objects.get(name)).object === null;
  } catch {
    // Not allowed, or not known to the server: records then stay as tombstones.
    return false;
  }
}

/** What an open answer leaves behind nobody uses, so nothing was done. */
function answered(outcome: PutOutcome): Exclude<PutOutcome, { kind: "unknown" }> {
  if (outcome.kind !== "unknown") return outcome;
  const { kind, message } = outcome.cause;
  throw new StoreError(kind, message, { outcome: "not-applied", cause: outcome.cause });
}

function unfit(objects: ConditionalObjects, what: string): StoreError {
  const message = `${objects.place}: it ${what}, so it cannot keep leases: use a server with conditional writes`;
  return new StoreError("config", message, { outcome: "not-applied" });
}
