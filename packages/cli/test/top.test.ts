// `solehold top`: one screen of it, and the whole command on a terminal over a real store.
import type { LeaseView } from "solehold";
import { describe, expect, it, onTestFinished } from "vitest";
import { type SeenLease, type TopScreen, topLines } from "../src/format/top-screen.ts";
import { main } from "../src/main.ts";
import { FakeIo, run } from "./support/fake-io.ts";
import { startServer } from "./support/server-process.ts";
import { temporaryFolder } from "./support/temporary.ts";

const ESCAPE = "\u001b";

function seen(name: string, remainingMs: number, more: Partial<LeaseView> = {}): SeenLease {
  const view = {
    ...{ key: { tenant: "default", name }, holder: "worker", fence: 7n, purpose: "Operation" },
    ...{
      state: "held",
      phase: "active",
      live: true,
      remainingMs,
      ttlMs: 20_000,
      breakAtMs: null,
      handoff: null,
    },
    ...more,
  } as unknown as LeaseView;
  return { view, seenMs: 0 };
}

function linesOf(leases: readonly SeenLease[], changed: Partial<TopScreen> = {}): readonly string[] {
  const screen: TopScreen = {
    ...{ leases, order: "key", nowMs: 0, title: "at memory:", trouble: "" },
    demand: () => ({ waiting: 0, slots: 1 }),
    ...{ size: { columns: 100, rows: 10 }, ...changed },
  };
  return topLines(screen, (_colour, text) => text);
}

describe("a screen of top", () => {
  it("shows each lease with what is left of it, as a bar and in figures", () => {
    const [head, , titles, first] = linesOf([seen("job/a", 10_000)]);
    expect(head).toBe("1 held  at memory:");
    expect(titles).toMatch(/^KEY +HOLDER +FENCE +STATE +LEFT +WAITING +PURPOSE$/);
    expect(first).toMatch(/^job\/a +worker +7 +held +██████░░░░░░ +10s +Operation$/);
  });

  it("lets time pass since a lease was seen, and leaves out what has ended meanwhile", () => {
    const leases = [seen("a", 10_000), seen("b", 4_000), seen("c", 9_000, { live: false })];
    const lines = linesOf(leases, { nowMs: 5_000 });
    expect(lines[0]).toContain("1 held");
    expect(lines.at(-1)).toMatch(/^a .* 5\.0s /);
  });

  it("is in the order that was asked for", () => {
    const leases = [
      seen("b", 9_000, { holder: "x" }),
      seen("c", 3_000, { holder: "y" }),
      seen("a", 6_000, { holder: "z" }),
    ];
    const keys = (order: TopScreen["order"]): string =>
      linesOf(leases, { order })
        .slice(3)
        .map(([first = ""]) => first)
        .join("");
    expect([keys("key"), keys("holder"), keys("left")]).toEqual(["abc", "bca", "cab"]);
  });

  it("shows a name with slots as one line: how many are held, of how many, and what ends next", () => {
    const leases = [seen("pool", 9_000, { holder: "a" }), seen("pool#slot/2", 4_000, { holder: "b" })];
    const demand = () => ({ waiting: 2, slots: 3 });
    const [head, , , pool] = linesOf(leases, { demand });
    expect(head).toContain("2 held, 2 waiting");
    expect(pool).toMatch(/^pool +b, a +2 of 3 +██░░░░░░░░░░ +4\.0s +2 +Operation$/);
  });

  it("puts first what most wait for, when asked", () => {
    const demand = (name: string) => ({ waiting: name === "b" ? 4 : 0, slots: 1 });
    const lines = linesOf([seen("a", 5_000), seen("b", 5_000)], { demand, order: "waiting" });
    expect(lines[3]).toMatch(/^b .* 4 +Operation$/);
  });

  it("is never higher than the terminal, and says how many do not fit", () => {
    const leases = Array.from({ length: 40 }, (_, index) => seen(`job/${index}`, 10_000));
    const lines = linesOf(leases);
    expect(lines).toHaveLength(10);
    expect(lines.at(-1)).toBe("and 34 more");
  });

  it("shows control characters of keys and holders as text", () => {
    const [, , , row] = linesOf([seen(`a${ESCAPE}[2J`, 10_000, { holder: "b\rc" })]);
    expect(row).toContain("a\\u{1b}[2J");
    expect(row).toContain("b\\u{d}c");
  });
});

describe("solehold top", () => {
  const acquire = async (url: string, key: string): Promise<void> => {
    expect((await run(["acquire", key, "--store", url, "--holder", "me", "--ttl", "60s"])).code).toBe(0);
  };

  it("fills a terminal, follows changes, and gives it back on Ctrl-C", async () => {
    const url = `embedded:${temporaryFolder()}/data`;
    await acquire(url, "job/first");
    const io = new FakeIo({ terminal: { columns: 100, rows: 20 } });
    const ended = main(["top", "job/", "--store", url, "--every", "20ms"], io);
    await expect.poll(() => io.stdout.text).toContain("job/first");
    await acquire(url, "job/second");
    await acquire(url, "other");
    await expect.poll(() => io.stdout.text).toContain("job/second");
    io.send("SIGINT");
    expect(await ended).toBe(130);
    expect(io.stdout.text.startsWith(`${ESCAPE}[?1049h${ESCAPE}[?25l`)).toBe(true);
    expect(io.stdout.text.endsWith(`${ESCAPE}[?25h${ESCAPE}[?1049l`)).toBe(true);
    expect(io.stdout.text).toContain("2 held");
    expect(io.stdout.text).not.toContain("other");
  });

  it("shows who waits and how many slots there are, as the server knows it", async () => {
    const server = await startServer();
    onTestFinished(() => server.stop());
    const asked = ["--server", server.url, "--ttl", "60s", "--slots", "3"];
    for (const holder of ["a", "b", "c"])
      expect((await run(["acquire", "pool", "--holder", holder, ...asked])).code).toBe(0);
    const io = new FakeIo({ terminal: { columns: 120, rows: 20 }, env: { NO_COLOR: "1" } });
    expect((await run(["revoke", "pool#slot/2", "--server", server.url])).code).toBe(0);
    const ended = main(["top", "--server", server.url], io);
    const lastScreen = (): string => io.stdout.text.slice(io.stdout.text.lastIndexOf(`${ESCAPE}[H`));
    await expect.poll(lastScreen).toMatch(/pool .* 2 of 3 /);
    const waiter = new FakeIo();
    const waited = main(["acquire", "pool", "--holder", "d", ...asked, "--wait", "60s"], waiter);
    await expect.poll(lastScreen).toMatch(/pool .* 2 of 3 .* 1 +Operation/);
    waiter.send("SIGINT");
    await waited;
    await expect.poll(lastScreen).toContain("2 held  at");
    io.send("SIGINT");
    expect(await ended).toBe(130);
  });

  it("shows processes that wait over a bare store, by their tickets", async () => {
    const url = `embedded:${temporaryFolder()}/data`;
    await acquire(url, "job/first");
    const waiter = new FakeIo();
    const argv = ["acquire", "job/first", "--store", url, "--holder", "other", "--wait", "60s"];
    const waited = main(argv, waiter);
    const io = new FakeIo({ terminal: { columns: 120, rows: 20 }, env: { NO_COLOR: "1" } });
    const ended = main(["top", "--store", url, "--every", "20ms"], io);
    await expect.poll(() => io.stdout.text).toMatch(/job\/first +me .* 1 +Operation/);
    waiter.send("SIGINT");
    io.send("SIGINT");
    await waited;
    expect(await ended).toBe(130);
  });

  it("shows the leases once where there is no terminal, without escape sequences", async () => {
    const url = `embedded:${temporaryFolder()}/data`;
    await acquire(url, "job/first");
    const { code, stdout } = await run(["top", "--store", url]);
    expect(code).toBe(0);
    expect(stdout).toMatch(/^KEY .*\njob\/first +me /);
    expect(stdout).not.toContain(ESCAPE);
  });
});
