// Never two commands at work: with real processes and real stores, and the holder or the store stopped or killed.
import { join } from "node:path";
import { afterAll, beforeAll, describe, expect, it, onTestFinished } from "vitest";
import { startPostgres, startProxy, startRedis } from "../../../solehold/test/engines/index.ts";
import { CliProcess } from "../support/cli-process.ts";
import { type Pausable, startServer } from "../support/server-process.ts";
import { temporaryFolder, until } from "../support/temporary.ts";
import { endlessWork, fenceAtBegin, linesOf, overlap, shortWork } from "../support/work.ts";

const TTL = ["--ttl", "3s"];
/** Where nothing waits for its end. */
const LONG_TTL = ["--ttl", "60s"];
const PATIENT = [...TTL, "--wait", "60s"];
const DONE = { code: 0, signal: null };
const LOST = { code: 4, signal: null };

/** A key and a log of their own, on the given store or on an embedded one. */
function place(url: string | null) {
  const folder = temporaryFolder();
  const storeUrl = url ?? `embedded:${join(folder, "data")}`;
  const argv = ["run", `job/${folder.slice(-6)}`];
  const start = (options: readonly string[], command: readonly string[], through = storeUrl) =>
    new CliProcess([...argv, ...options, "--", ...command], { env: { SOLEHOLD_URL: through } });
  const probe = () =>
    new CliProcess(["acquire", `probe/${folder.slice(-6)}`, "--ttl", "1s", "--wait", "0"], {
      env: { SOLEHOLD_URL: storeUrl },
    });
  return { log: join(folder, "log"), start, probe };
}

/** Fails at once when it never will be. */
async function atWork(first: CliProcess, log: string): Promise<void> {
  await until("the first is at work", () => {
    if (first.hasExited) throw new Error(`the first has ended: ${first.stderr}`);
    return fenceAtBegin("first", log);
  });
}

const PROBE_LIMIT_MS = 5_000;

/**
 * Stops a process, but not in the middle of a commit to an embedded store: there it would hold the lock of all
 * writers until it goes on (docs/stores/embedded.md), and nobody could take over.
 */
async function stopBetweenCommits(first: CliProcess, probe: () => CliProcess): Promise<void> {
  for (;;) {
    first.kill("SIGSTOP");
    const writer = probe();
    const limit = setTimeout(() => writer.kill("SIGKILL"), PROBE_LIMIT_MS);
    const { signal } = await writer.exit;
    clearTimeout(limit);
    if (signal === null) return;
    first.kill("SIGCONT");
  }
}

const ENGINES: readonly { readonly name: string; readonly engine: () => Promise<Pausable> }[] = [
  { name: "redis", engine: startRedis },
  { name: "postgres", engine: startPostgres },
];
const SERVERS = [...ENGINES, { name: "solehold server", engine: () => startServer() }];

describe.each([{ name: "embedded store", engine: null }, ...SERVERS])(
  "two runs on one $name",
  ({ engine }) => {
    let running: Pausable | null = null;
    beforeAll(async () => {
      running = engine === null ? null : await engine();
    });
    afterAll(async () => await running?.stop());

    it("the second exits 3 without waiting, and gets its turn when it waits", async () => {
      const { log, start } = place(running?.url ?? null);
      const first = start(LONG_TTL, endlessWork("first", log));
      await atWork(first, log);
      const impatient = start(["--wait", "0"], ["echo", "never"]);
      expect(await impatient.exit).toEqual({ code: 3, signal: null });
      expect(impatient.stdout).toBe("");
      expect(impatient.stderr).toMatch(/is held by \S+, for at most another \S+\n$/);
      const patient = start(PATIENT, shortWork("second", log));
      first.kill("SIGTERM");
      expect(await first.exit).toEqual({ code: 143, signal: null });
      expect(await patient.exit).toEqual(DONE);
      expect(overlap("first", "second", log)).toBeNull();
      expect(fenceAtBegin("second", log)).toBeGreaterThan(fenceAtBegin("first", log) ?? 0n);
    });

    it("the first is stopped beyond its ttl: its command is dead before the second's starts", async () => {
      const { log, start, probe } = place(running?.url ?? null);
      const first = start(TTL, endlessWork("first", log, { ignores: "SIGTERM" }));
      await atWork(first, log);
      await stopBetweenCommits(first, probe);
      const second = start(PATIENT, shortWork("second", log));
      expect(await second.exit).toEqual(DONE);
      const written = linesOf(log).length;
      first.kill("SIGCONT");
      expect(await first.exit).toEqual(LOST);
      expect(first.stderr).toContain("lost the lease");
      expect(overlap("first", "second", log)).toBeNull();
      expect(linesOf(log)).toHaveLength(written);
    });

    it("the first is killed: its command dies, and the second's starts after that", async () => {
      const { log, start } = place(running?.url ?? null);
      const first = start(TTL, endlessWork("first", log, { ignores: "SIGTERM" }));
      await atWork(first, log);
      first.kill("SIGKILL");
      const second = start(PATIENT, shortWork("second", log));
      expect(await second.exit).toEqual(DONE);
      expect(overlap("first", "second", log)).toBeNull();
    });
  },
);

describe.each(SERVERS)("a $name that is frozen", ({ engine }) => {
  it("costs the command its life in time, and no fence goes back after it", async () => {
    const running = await engine();
    onTestFinished(async () => await running.stop());
    const { log, start } = place(running.url);
    const first = start(TTL, endlessWork("first", log));
    await atWork(first, log);
    await running.pause();
    expect(await first.exit).toEqual(LOST);
    await running.resume();
    const second = start(PATIENT, shortWork("second", log));
    expect(await second.exit).toEqual(DONE);
    expect(overlap("first", "second", log)).toBeNull();
    expect(fenceAtBegin("second", log)).toBeGreaterThan(fenceAtBegin("first", log) ?? 0n);
  });
});

// A server's SDK finds other ways to the server than the one that was cut, so this is about stores alone.
describe.each(ENGINES)("a $name that only the first cannot reach any more", ({ engine }) => {
  it("costs the command its life before another, which waits for the lease, can have it", async () => {
    const running = await engine();
    onTestFinished(async () => await running.stop());
    const proxy = await startProxy({ targetPort: Number(new URL(running.url).port) });
    onTestFinished(async () => await proxy.close());
    const { log, start } = place(running.url);
    const first = start(TTL, endlessWork("first", log, { ignores: "SIGTERM" }), proxy.through(running.url));
    await atWork(first, log);
    const second = start(PATIENT, shortWork("second", log));
    proxy.freeze();
    expect(await second.exit).toEqual(DONE);
    expect(await first.exit).toEqual(LOST);
    expect(first.stderr).toContain("could not be renewed in time");
    expect(overlap("first", "second", log)).toBeNull();
  });
});
