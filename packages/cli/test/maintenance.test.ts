/** `solehold collect` and `solehold repair`, over a store and over a server; and what the doctor says of both. */
import { writeFileSync } from "node:fs";
import { resolveConfig, startServer } from "@solehold/server";
import { LeaseUnavailableError, MemoryStore, StoreError, StoreExecutor } from "solehold";
import { type DoctorReport, decorateStore, realEnv } from "solehold/internal";
import { describe, expect, it, onTestFinished } from "vitest";
import { examine } from "../src/actions/doctor/examine.ts";
import { failureOf } from "../src/format/errors.ts";
import { run } from "./support/fake-io.ts";
import { temporaryFolder } from "./support/temporary.ts";

/** A store of files, in which a record can be damaged as a disk would. */
async function damagedStore() {
  const folder = temporaryFolder();
  const env = { SOLEHOLD_URL: `file:${folder}` };
  await run(["acquire", "db/main"], { env });
  writeFileSync(`${folder}/leases/db%2Fmain.lease.json`, "no record at all");
  return { env, url: env.SOLEHOLD_URL };
}

async function serverOver(store: string): Promise<Record<string, string>> {
  const flags = { port: "0", store, audit: "memory", dataDir: temporaryFolder(), logLevel: "silent" };
  const server = await startServer(resolveConfig({ flags }));
  onTestFinished(async () => await server.close());
  return { SOLEHOLD_URL: server.url };
}

describe("solehold repair", () => {
  it.each(["store", "server"] as const)(
    "over a %s: says what will happen, asks, and makes the key free again",
    async (where) => {
      const direct = await damagedStore();
      const env = where === "store" ? direct.env : await serverOver(direct.url);
      const barred = await run(["acquire", "db/main", "--wait", "0"], { env });
      expect([barred.code, barred.stderr]).toEqual([2, expect.stringContaining("damaged")]);
      const asked = await run(["repair", "db/main"], { env, answer: "no" });
      expect(asked.code).toBe(1);
      expect(asked.stderr).toMatch(/cannot be read: .*\n.*anybody can acquire it.*\n.*has stopped/);
      expect((await run(["get", "db/main"], { env })).stderr).toContain("solehold repair db/main");
      const repaired = await run(["repair", "db/main"], { env, answer: "yes" });
      expect([repaired.code, repaired.stdout]).toEqual([0, expect.stringContaining("db/main is repaired")]);
      const after = await run(["acquire", "db/main", "--json"], { env });
      expect(after.code).toBe(0);
      expect(BigInt(JSON.parse(after.stdout).fence) % 2n ** 64n).toBeGreaterThan(1n);
    },
  );

  it("does nothing without an answer: a script says --yes, and may name the generation", async () => {
    const { env } = await damagedStore();
    const unasked = await run(["repair", "db/main"], { env });
    expect([unasked.code, unasked.stderr]).toEqual([2, expect.stringContaining("pass --yes")]);
    const wrong = await run(["repair", "db/main", "--yes", "--generation", "-3"], { env });
    expect(wrong.code).toBe(2);
    const done = await run(["repair", "db/main", "--yes", "--generation", "77", "--json"], { env });
    expect(JSON.parse(done.stdout)).toEqual({
      key: "db/main",
      tenant: "default",
      repaired: true,
      generation: "77",
    });
  });

  it("exits 1 and changes nothing when the record can be read, or there is none", async () => {
    const env = { SOLEHOLD_URL: `file:${temporaryFolder()}` };
    await run(["acquire", "held"], { env });
    for (const key of ["held", "never"]) {
      const { code, stdout } = await run(["repair", key, "--yes", "--json"], { env });
      expect(code).toBe(1);
      expect(JSON.parse(stdout).error).toMatchObject({ code: "NOT_DAMAGED", key });
    }
  });
});

describe("solehold collect", () => {
  it.each(["store", "server"] as const)(
    "over a %s says how many records it saw and deleted",
    async (where) => {
      const url = `file:${temporaryFolder()}`;
      const env = where === "store" ? { SOLEHOLD_URL: url } : await serverOver(url);
      await run(["acquire", "a"], { env });
      const { code, stdout } = await run(["collect"], { env });
      expect([code, stdout]).toEqual([0, "tenant default: 0 of 1 records deleted\n"]);
      const other = await run(["collect", "--tenant", "ci", "--json"], { env });
      expect(JSON.parse(other.stdout)).toEqual({ tenant: "ci", scanned: 0, deleted: 0 });
    },
  );
});

describe("the doctor", () => {
  const statusOf = ({ checks }: DoctorReport, id: string) => checks.find((check) => check.id === id);
  const examined = (store: StoreExecutor["store"]): Promise<DoctorReport> =>
    examine({
      ...{ url: "memory:", tenant: "default", env: realEnv },
      open: async () => new StoreExecutor({ store }),
    });

  it("names damaged records, and how they are repaired", async () => {
    const { env } = await damagedStore();
    const { code, stdout } = await run(["doctor"], { env });
    expect(code).toBe(1);
    expect(stdout).toMatch(/^fail {2}damage .*1 cannot be read \(db\/main\).*'solehold repair db\/main'/m);
  });

  it("says who deletes ended records, or that they are kept for ever", async () => {
    expect(statusOf(await examined(new MemoryStore()), "collection")).toMatchObject({
      status: "ok",
      detail: expect.stringContaining("solehold collect"),
    });
    const inner = new MemoryStore();
    const capabilities = { ...inner.capabilities, conditionalDelete: false };
    expect(statusOf(await examined(decorateStore(inner, { capabilities })), "collection")).toMatchObject({
      status: "warn",
      detail: expect.stringMatching(/^ended records are kept for ever: the memory store cannot delete/),
    });
  });

  it("warns of a store that cannot list, and looks for no damage there", async () => {
    const { list: _list, ...store } = decorateStore(new MemoryStore(), {});
    const report = await examined(store);
    expect([report.ok, statusOf(report, "listing")?.status, statusOf(report, "damage")?.status]).toEqual([
      true,
      "warn",
      "skip",
    ]);
  });
});

describe("a store that lost data", () => {
  const lost = new StoreError("data-loss", "12 records are gone since the failover", { outcome: "unknown" });

  it.each([
    ["thrown by the store", lost],
    ["that a command met", new LeaseUnavailableError({ tenant: "default", name: "a" }, "unknown", lost)],
  ])("%s has an exit code of its own, and the sentence names the loss and the way out", (_what, error) => {
    const { message, details } = failureOf(error);
    expect(details).toMatchObject({ exitCode: 5, code: "STORE_DATA_LOSS", facts: { kind: "data-loss" } });
    expect(message).toMatch(/lost data .*12 records are gone since the failover.*have stopped, then repeat/);
  });
});
