/** A watcher that comes back: it gets exactly what it missed, or "reset" when one event of that is not kept any more. */
import { type LeaseKey, MemoryStore, StoreExecutor } from "solehold";
import { LeaseService, ManualEnv, MemoryAuditTrail, settle, type WatchEvent } from "solehold/internal";
import { describe, expect, it } from "vitest";
import { WatchHub } from "../src/watch/watch-hub.ts";

const BACKLOG = 4;
const ALL = { tenant: "default", prefix: "" };
type Listener = Parameters<StoreExecutor["watch"]>[1];

/** A store whose events come when the test says so, or whose watch cannot be opened. */
async function world(options: { readonly watch?: "works" | "fails at first"; readonly seed?: number } = {}) {
  const env = new ManualEnv({ seed: options.seed ?? 1 });
  const store = new MemoryStore({ env });
  const executor = new StoreExecutor({ store, env });
  const listeners = new Set<Listener>();
  let failures = options.watch === "fails at first" ? 1 : 0;
  executor.watch = async (_scope, listener) => {
    failures -= 1;
    if (failures >= 0) throw new Error("not now");
    listeners.add(listener);
    return { close: async () => void listeners.delete(listener) };
  };
  const audit = new MemoryAuditTrail({ capacity: 100 });
  const service = new LeaseService({ executor, audit, env });
  const hub = new WatchHub({ env, service, backlog: BACKLOG });
  await hub.start();
  const key = (name: string): LeaseKey => ({ tenant: "default", name });
  const emit: Listener = (event) => {
    for (const listener of listeners) listener(event);
  };
  const changed = (name: string): void =>
    emit({ kind: "changed", key: key(name), stored: { kind: "absent" } });
  const seenAfter = (token: string | null, scope = ALL): string[] => {
    const seen: string[] = [];
    hub.subscribe(scope, token, ({ kind, name = "" }: WatchEvent) => void seen.push(`${kind} ${name}`));
    return seen;
  };
  return { env, hub, emit, changed, seenAfter, service, key };
}

describe("a watcher that comes back", () => {
  it("gets every event of a full backlog when it missed exactly that many", async () => {
    const { hub, changed, seenAfter } = await world();
    changed("before");
    const { token } = hub;
    for (const name of ["a", "b", "c", "d"]) changed(name);
    expect(seenAfter(token)).toEqual(["deleted a", "deleted b", "deleted c", "deleted d"]);
  });

  it("has to list again when it missed one more than the backlog keeps", async () => {
    const { hub, changed, seenAfter } = await world();
    changed("before");
    const { token } = hub;
    for (const name of ["a", "b", "c", "d", "e"]) changed(name);
    expect(seenAfter(token)).toEqual(["reset "]);
  });

  it("gets nothing when it missed nothing, then what comes", async () => {
    const { hub, changed, seenAfter } = await world();
    changed("before");
    const seen = seenAfter(hub.token);
    changed("after");
    expect(seen).toEqual(["deleted after"]);
  });

  it("has to list again after a gap in the store's events, from just before it too", async () => {
    const { hub, emit, changed, seenAfter } = await world();
    changed("before");
    const before = hub.token;
    emit({ kind: "reset" });
    const after = hub.token;
    changed("a");
    expect(seenAfter(before)).toEqual(["reset "]);
    expect(seenAfter(after)).toEqual(["deleted a"]);
  });

  it("gets only what is in its scope", async () => {
    const { hub, changed, seenAfter } = await world();
    const { token } = hub;
    for (const name of ["jobs/1", "other", "jobs/2"]) changed(name);
    expect(seenAfter(token, { ...ALL, prefix: "jobs/" })).toEqual(["deleted jobs/1", "deleted jobs/2"]);
    expect(seenAfter(token, { ...ALL, tenant: "another" })).toEqual([]);
  });

  it("with a token of another process, or of the future, has to list again", async () => {
    const [one, other] = [await world({ seed: 1 }), await world({ seed: 2 })];
    for (const { changed } of [one, other]) changed("a");
    const [epoch, sequence] = one.hub.token.split(".");
    expect(other.seenAfter(one.hub.token)).toEqual(["reset "]);
    expect(one.seenAfter(`${epoch}.${Number(sequence) + 1}`)).toEqual(["reset "]);
  });

  it("has to list again when the store could not be watched at first", async () => {
    const { env, hub, service, seenAfter, key } = await world({ watch: "fails at first" });
    const { token } = hub;
    const seen = seenAfter(null);
    // Until then the decisions of this process are all that it sees.
    const published = hub.layer(service);
    const owner = { key: key("own"), holder: "h", token: "t" };
    await published.execute({ op: "acquire", ...owner, ttlMs: 60_000 });
    await env.advance(1_000);
    await settle();
    await published.execute({ op: "renew", ...owner, ttlMs: 60_000 });
    expect(seen).toEqual(["changed own", "reset "]);
    expect(seenAfter(token)).toEqual(["reset "]);
  });

  it("sees nothing of what Solehold writes for itself", async () => {
    const { hub, changed, seenAfter } = await world();
    const { token } = hub;
    changed("$approval/1");
    expect(hub.token).toBe(token);
    expect(seenAfter(token)).toEqual([]);
  });
});

describe("many watchers", () => {
  it("are reached in turns, each with every event, and with a reset after a gap", async () => {
    const { changed, emit, seenAfter } = await world();
    const all = Array.from({ length: 600 }, () => seenAfter(null));
    changed("a");
    emit({ kind: "reset" });
    expect(all.some((seen) => seen.length > 0)).toBe(false);
    while (all.some((seen) => seen.length < 2)) await new Promise((resolve) => setImmediate(resolve));
    for (const seen of all) expect(seen).toEqual(["deleted a", "reset "]);
  });
});
