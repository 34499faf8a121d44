// The commands that run until a signal stops them, as real processes.
import { appendFileSync } from "node:fs";
import { join } from "node:path";
import { describe, expect, it } from "vitest";
import { CliProcess } from "../support/cli-process.ts";
import { run } from "../support/fake-io.ts";
import { temporaryFolder, until } from "../support/temporary.ts";
import { endlessWork, fenceAtBegin, linesOf, overlap } from "../support/work.ts";

function shell() {
  const folder = temporaryFolder();
  const env = { SOLEHOLD_URL: `embedded:${join(folder, "data")}`, SOLEHOLD_HOLDER: "operator" };
  return {
    log: join(folder, "log"),
    start: (argv: readonly string[], holder: string) =>
      new CliProcess(argv, { env: { ...env, SOLEHOLD_HOLDER: holder } }),
    call: (argv: readonly string[], more: Record<string, string> = {}) =>
      run(argv, { env: { ...env, ...more } }),
  };
}

function events(process: CliProcess): readonly Record<string, unknown>[] {
  return process.stdout
    .split("\n")
    .filter(Boolean)
    .map((line) => JSON.parse(line) as Record<string, unknown>);
}

/** Told to stop, it ends when the log says so; it writes down every signal that it gets. */
function slowToEnd(log: string): string[] {
  const notes = ["INT", "HUP", "QUIT"].map((name) => `trap 'echo SIG${name} >> "$1"' ${name};`).join(" ");
  const stop = `trap 'if grep -q stops "$1"; then echo SIGTERM; else echo stops; fi >> "$1"; stopped=yes' TERM;`;
  const loop = `until [ -n "$stopped" ] && grep -qx go "$1"; do sleep 0.02; done`;
  return ["sh", "-c", `${notes} ${stop} echo begins >> "$1"; ${loop}; exit 7`, "sh", log];
}

describe("elect", () => {
  it("says when a term begins, and resigns on SIGINT so that another leads at once", async () => {
    const { start } = shell();
    const first = start(["elect", "leader", "--ttl", "10m", "--json"], "first");
    await until("the first leads", () => events(first).length === 1);
    const second = start(["elect", "leader", "--ttl", "10m", "--json"], "second");
    first.kill("SIGINT");
    expect((await first.exit).code).toBe(130);
    expect(events(first).map(({ event }) => event)).toEqual(["elected", "resigned"]);
    await until("the second leads", () => events(second).length === 1);
    expect(events(second)[0]).toMatchObject({ event: "elected", key: "leader", holder: "second" });
    expect(BigInt(String(events(second)[0]?.fence))).toBeGreaterThan(BigInt(String(events(first)[0]?.fence)));
    second.kill("SIGTERM");
    expect((await second.exit).code).toBe(143);
  });

  it("runs the command again in the next term after the lease was lost", async () => {
    const { start, call, log } = shell();
    const argv = (name: string) => ["elect", "leader", "--ttl", "2s", "--", ...endlessWork(name, log)];
    const first = start(argv("first"), "first");
    await until("the first leads", () => fenceAtBegin("first", log));
    const second = start(argv("second"), "second");
    await until("the second stands for election", () => second.handlesSignals);
    await call(["revoke", "leader"]);
    await until(
      "one of them leads again",
      () => linesOf(log).filter((line) => line.includes("begins")).length === 2,
    );
    for (const process of [first, second]) process.kill("SIGINT");
    expect((await first.exit).code).toBe(130);
    expect((await second.exit).code).toBe(130);
    expect(overlap("first", "second", log)).toBeNull();
  });

  it.each([
    ["SIGINT", 130],
    ["SIGTERM", 143],
    ["SIGHUP", 129],
    ["SIGQUIT", 131],
  ] as const)("campaigns no more after a %s that comes while a lost term ends", async (signal, code) => {
    const { start, call, log } = shell();
    const leader = start(
      ["elect", "leader", "--ttl", "30s", "--grace", "10s", "--", ...slowToEnd(log)],
      "it",
    );
    await until("it leads", () => linesOf(log).includes("begins"));
    await call(["revoke", "leader"]);
    await until("the command is asked to stop", () => linesOf(log).includes("stops"));
    leader.kill(signal);
    await until("the command got that signal, too", () => linesOf(log).includes(signal));
    appendFileSync(log, "go\n");
    expect(await leader.exit).toEqual({ code, signal: null });
    expect(linesOf(log).filter((line) => line === "begins")).toHaveLength(1);
  });

  it("campaigns again when the SIGHUP was for the command, and came before the lease was lost", async () => {
    const { start, call, log } = shell();
    const leader = start(
      ["elect", "leader", "--ttl", "30s", "--grace", "10s", "--", ...slowToEnd(log)],
      "it",
    );
    await until("it leads", () => linesOf(log).includes("begins"));
    leader.kill("SIGHUP");
    await until("the command has it", () => linesOf(log).includes("SIGHUP"));
    appendFileSync(log, "go\n");
    await call(["revoke", "leader"]);
    await until("it leads again", () => linesOf(log).filter((line) => line === "begins").length === 2);
    leader.kill("SIGTERM");
    expect((await leader.exit).code).toBe(7);
  });
});

describe("watch", () => {
  it("prints a line for what is held, granted, released, revoked and expired", async () => {
    const { start, call } = shell();
    await call(["acquire", "job/old", "--ttl", "10m"]);
    const watch = start(["watch", "job/", "--json"], "watcher");
    await until("it has begun", () => events(watch).length === 1);
    const { stdout } = await call(["acquire", "job/1", "--json"]);
    await call(["release", "job/1"], { SOLEHOLD_TOKEN: String(JSON.parse(stdout).token) });
    await call(["acquire", "other"]);
    await call(["revoke", "job/old"]);
    await call(["acquire", "job/2", "--ttl", "100ms"]);
    await until("the last has expired", () => events(watch).some(({ event }) => event === "expired"));
    watch.kill("SIGINT");
    expect((await watch.exit).code).toBe(130);
    expect(events(watch).map(({ event, key }) => `${event} ${key}`)).toEqual([
      "held job/old",
      "granted job/1",
      "released job/1",
      "revoked job/old",
      "granted job/2",
      "expired job/2",
    ]);
    expect(watch.stdout).not.toContain("token");
    expect(watch.stderr).toBe("");
  });

  it("leaves renewals out unless they are asked for", async () => {
    const { start, log } = shell();
    const quiet = start(["watch"], "watcher");
    const chatty = start(["watch", "--renewals"], "watcher");
    const work = start(["run", "job", "--ttl", "1s", "--", ...endlessWork("it", log)], "worker");
    await until("a renewal was seen", () => / renewed {6}job /.test(chatty.stdout));
    work.kill("SIGTERM");
    await until("the end was seen", () => quiet.stdout.includes(" released "));
    expect(quiet.stdout).not.toContain("renewed");
    expect(quiet.stdout).toMatch(/^[\d:.]+ {2}(granted|held) +job {2}fence \d+ {2}worker {2}for \S+\n/);
  });
});
