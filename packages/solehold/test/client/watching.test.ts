import { describe, expect, it } from "vitest";
import { formatFence } from "../../src/core/index.ts";
import { settle } from "../../src/env/index.ts";
import { clientWorld } from "./helpers.ts";

describe("watch", () => {
  it("brings what is held, then every change under the prefix, until it is closed", async () => {
    const { env, leases, other } = clientWorld();
    const them = other("them");
    const held = await them.acquire("job/1", { ttl: "60s" });
    await them.acquire("else", { ttl: "60s" });
    const seen: string[] = [];
    const watching = (async () => {
      for await (const { kind, view } of leases.watch("job/")) seen.push(`${kind} ${view.key.name}`);
    })();
    await settle();
    await held.release();
    await them.acquire("job/2", { ttl: "1s", autoRenew: false });
    await env.advance(2_000);
    await leases.close();
    await watching;
    expect(seen).toEqual(["held job/1", "released job/1", "granted job/2", "expired job/2"]);
  });

  it("ends when its signal aborts, and when its reader has seen enough", async () => {
    const { env, leases, other } = clientWorld();
    await other("them").acquire("job", { ttl: "60s", autoRenew: false });
    const stop = new AbortController();
    for await (const { kind } of leases.watch("", { signal: stop.signal })) {
      expect(kind).toBe("held");
      stop.abort();
    }
    for await (const _change of leases.watch("job")) break;
    await leases.close();
    await env.advance(70_000);
    expect(env.pendingTimers).toBe(0);
  });

  it("refuses options that do not exist", async () => {
    const { leases } = clientWorld();
    await expect(leases.watch("", { poll: 5 } as object).next()).rejects.toThrow(
      "watch has no option 'poll'",
    );
  });
});

describe("inspect", () => {
  it("gives what JSON can take: large integers as decimal strings", async () => {
    const { leases } = clientWorld();
    await leases.acquire("job");
    const shown = JSON.parse(JSON.stringify(await leases.inspect("job")));
    expect(shown).toMatchObject({
      fence: formatFence(1n),
      term: "1",
      generation: "1",
      holder: "me",
      live: true,
    });
  });
});

describe("a lease", () => {
  it("gives what JSON can take: its fence as a decimal string, and not its token", async () => {
    const { leases } = clientWorld();
    const lease = await leases.acquire("job", { ttl: "9s" });
    const text = JSON.stringify({ lease });
    expect(JSON.parse(text)).toEqual({
      lease: {
        ...{ tenant: "default", name: "job", holder: "me", purpose: "Operation", ttlMs: 9_000 },
        ...{
          fence: formatFence(lease.fence),
          state: "held",
          lossReason: null,
          expiresAtMs: lease.expiresAtMs,
        },
      },
    });
    expect(text).not.toContain(lease.token);
  });
});

describe("onWaiting", () => {
  it("is called with who holds the lease and the position, once for each position, and not without a wait", async () => {
    const { leases, other } = clientWorld();
    const seen: string[] = [];
    const onWaiting = ({ holder, position }: { holder: string | null; position: number }): void =>
      void seen.push(`${holder} ${position}`);
    const mine = await leases.acquire("job", { onWaiting });
    expect(seen).toEqual([]);
    const them = other("them");
    const first = them.acquire("job");
    const second = them.acquire("job", { holder: "third", onWaiting });
    await settle();
    await mine.release();
    await (await first).release();
    await (await second).release();
    expect(seen.slice(0, 2)).toEqual(["me 1", "them 0"]);
  });
});

describe("observe", () => {
  it("brings the leader now, then each new one, and null while there is none", async () => {
    const { leases, other } = clientWorld();
    const them = other("them");
    const first = await them.acquire("boss", { ttl: "60s" });
    const leaders: (string | null)[] = [];
    const observing = (async () => {
      for await (const leader of leases.observe("boss")) leaders.push(leader?.holder ?? null);
    })();
    await settle();
    await first.renew();
    await first.release();
    await settle();
    await other("heir").acquire("boss", { ttl: "60s" });
    await settle();
    await leases.close();
    await observing;
    expect(leaders).toEqual(["them", null, "heir"]);
  });
});
