// A table of leases, as a dashboard keeps one: list page by page, then watch after the first page's token and apply
// the events as they come. Whatever happens meanwhile, it must end up as a fresh listing shows it.
import { ManualEnv } from "solehold/internal";
import { describe, expect, it } from "vitest";
import { World } from "../../solehold/test/client/suite/index.ts";
import { Dice } from "./support/hostile.ts";
import { type Body, type TestServer, testServer } from "./support/server.ts";
import { TestStream } from "./support/stream.ts";

const NAMES = 25;

/** Pages of seven, so that changes fall between them. */
async function listed(server: TestServer, filter = "", between = async () => {}): Promise<Listing> {
  const rows = new Map<string, Body>();
  let first: string | null = null;
  for (let cursor = ""; ; ) {
    const { body } = await server.get(`/v1/leases?limit=7${filter}${cursor}`);
    first ??= body.watch;
    for (const lease of body.leases) rows.set(lease.name, lease);
    if (body.next === null) return { rows, watch: first ?? "" };
    cursor = `&cursor=${encodeURIComponent(body.next)}`;
    await between();
  }
}

interface Listing {
  readonly rows: Map<string, Body>;
  readonly watch: string;
}

/** What a row shows and time alone does not change. */
function shown({
  name,
  holder,
  fence,
  state,
  live,
  renewals,
  expiresAtMs,
  note,
  breakAtMs,
  handoff,
}: Body): Body {
  return { name, holder, fence, state, live, renewals, expiresAtMs, note, breakAtMs, handoff };
}

describe("a table of leases", () => {
  it("kept by watching and listing shows what a fresh listing shows, whatever happened", async () => {
    const env = new ManualEnv();
    const server = await testServer({}, { env });
    const clock = new World({ env, openExecutor: () => Promise.reject(new Error("nobody acquires here")) });
    const dice = new Dice(5);
    const act = async (): Promise<void> => {
      const index = dice.below(NAMES);
      const owner = { name: `n/${index}`, holder: "h", token: `token-${index}` };
      const command = dice.pick([
        "acquire",
        "acquire",
        "renew",
        "release",
        "revoke",
        "break",
        "handoff",
        "wait",
      ]);
      if (command === "wait") await clock.advance(dice.below(400));
      else if (command === "acquire")
        await server.lease(command, { ...owner, ttlMs: 200 + dice.below(2_000), note: "x" });
      else if (command === "break") await server.lease(command, { name: owner.name, periodMs: 100 });
      else if (command === "revoke") await server.lease(command, { name: owner.name });
      else if (command === "handoff")
        await server.lease(command, { ...owner, successor: "h", withinMs: 500 });
      else await server.lease(command, owner);
    };
    for (let count = 0; count < 60; count += 1) await act();
    // Sorts before all others: no page after the first shows it, and only one event ever tells of it.
    const unseen = { name: "n/!", holder: "h", token: "unseen", ttlMs: 3_600_000 };
    let pages = 0;
    const { rows, watch } = await listed(server, "", async () => {
      pages += 1;
      if (pages === 1) await server.lease("acquire", unseen);
      await act();
    });
    await act();
    const stream = await TestStream.open(server.url);
    await stream.ask({ op: "watch", prefix: "n/", after: watch });
    for (let count = 0; count < 120; count += 1) await act();
    await clock.advance(200);
    for (const { kind, name, lease } of stream.events) {
      expect(["changed", "expired"]).toContain(kind);
      rows.set(name, lease);
    }
    const fresh = await listed(server, "&prefix=n/");
    expect([...rows.keys()].sort()).toEqual([...fresh.rows.keys()]);
    for (const [name, lease] of fresh.rows) expect(shown(rows.get(name))).toEqual(shown(lease));
    expect(stream.events.some(({ kind }) => kind === "expired")).toBe(true);
    for (const state of ["held", "released", "revoked"]) {
      const expected = [...fresh.rows.values()].filter((lease) => lease.state === state);
      const found = await listed(server, `&state=${state}`);
      expect([...found.rows.keys()]).toEqual(expected.map(({ name }) => name));
    }
  });
});
