import { spawn } from "node:child_process";
import { once } from "node:events";
import { mkdirSync, mkdtempSync, readdirSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import fc from "fast-check";
import { afterAll, describe, expect, it } from "vitest";
import { connect } from "../../../src/client/connect.ts";
import { ManualEnv } from "../../../src/env/index.ts";
import { openFileStore } from "../../../src/stores/file/index.ts";
import { keyOfStem, stemOf } from "../../../src/stores/file/names.ts";
import { openWithSeams } from "../../../src/stores/file/open.ts";
import { openEmbeddedStore } from "../../../src/stores/sqlite/index.ts";
import { WriterLeaseStore } from "../../../src/writer/index.ts";
import { rejection } from "../records.ts";
import { networkNames } from "./file-systems.ts";

const root = mkdtempSync(join(tmpdir(), "solehold-file-store-"));
const fresh = () => mkdtempSync(join(root, "case-"));
const boot = (id: string) => ({ readBoot: () => ({ id, aheadMs: 0 }) });

afterAll(() => rmSync(root, { recursive: true, force: true }));

describe("file names", () => {
  it("lead back to their key, stay in the folder and fit any file system", () => {
    fc.assert(
      fc.property(
        fc.oneof(fc.string({ minLength: 1 }), fc.string({ unit: "grapheme", minLength: 1, maxLength: 60 })),
        fc.constantFrom("default", "t", "a.b-c_d"),
        (name, tenant) => {
          fc.pre(!/\p{Cs}/u.test(name));
          const stem = stemOf({ tenant, name });
          expect(stem).toMatch(/^[A-Za-z0-9_%@~-][A-Za-z0-9_%@.-]{0,129}$/);
          if (!stem.startsWith("~")) expect(keyOfStem(stem)).toEqual({ tenant, name });
        },
      ),
    );
  });

  it("are the plain key for plain keys", () => {
    expect(stemOf({ tenant: "default", name: "main-db_1.x" })).toBe("main-db_1.x");
  });
});

describe("a folder", () => {
  it.each(networkNames)("on %s is refused", async (name, type) => {
    await expect(openWithSeams({ folder: fresh() }, { fileSystemType: () => type })).rejects.toMatchObject({
      kind: "config",
      message: expect.stringContaining(`is on ${name}`),
    });
  });

  it("that is a file is refused in one line", async () => {
    const path = join(fresh(), "file");
    writeFileSync(path, "");
    await expect(openFileStore({ folder: path })).rejects.toMatchObject({
      kind: "config",
      message: `'${path}' is not a folder: give the file store a folder of its own`,
    });
    await expect(openFileStore({ folder: join(path, "below") })).rejects.toMatchObject({ kind: "config" });
  });

  it("that holds an embedded store is refused and left as it is", async () => {
    const folder = fresh();
    await (await openEmbeddedStore({ folder })).close();
    await expect(openFileStore({ folder })).rejects.toMatchObject({
      kind: "config",
      message: `'${folder}' holds an embedded store: give the file store a folder of its own`,
    });
    await (await openEmbeddedStore({ folder })).close();
  });

  it.skipIf(process.platform !== "linux")("where none can be made is refused at once", async () => {
    for (const folder of ["/proc/solehold", "/proc/solehold/below"])
      await expect(openFileStore({ folder })).rejects.toMatchObject({
        kind: "config",
        message: `the file store in '${folder}': its folder is gone, or cannot be made there: restore it, or correct the path`,
      });
  });

  it("is cleaned of what a process that died left unfinished", async () => {
    const folder = fresh();
    mkdirSync(join(folder, ".solehold"));
    writeFileSync(join(folder, ".solehold", "unfinished.tmp"), "half");
    await (await openFileStore({ folder })).close();
    expect(readdirSync(join(folder, ".solehold")).sort()).toEqual(["clock.json", "mark"]);
  });

  it("whose lock another process keeps is given up, with nothing written", async () => {
    const folder = fresh();
    const store = await openFileStore({ folder, timeoutMs: 20 });
    const lock = join(folder, ".solehold", "lock");
    writeFileSync(lock, "another's");
    const write = { key: { tenant: "default", name: "db" }, expected: null, next: null };
    await expect(store.apply([write])).rejects.toMatchObject({
      kind: "timeout",
      outcome: "not-applied",
      message: expect.stringContaining(`delete '${lock}'`),
    });
    rmSync(lock);
    await store.close();
  });

  it("is found by its URL", async () => {
    const folder = fresh();
    const leases = await connect(`file:${folder}`);
    const attempt = await leases.tryAcquire("db");
    expect(attempt.ok).toBe(true);
    expect(JSON.parse(readFileSync(join(folder, "leases", "db.lease.json"), "utf8"))).toMatchObject({
      database_key: "db",
      generation: expect.any(Number),
    });
    await leases.close();
  });
});

describe("the six-field format", () => {
  it("that others wrote is read, honoured and succeeded with the next generation", async () => {
    const folder = fresh();
    const env = new ManualEnv({ wallMs: 1_000_000 });
    const store = await openFileStore({ folder, env });
    const theirs = { database_key: "db", holder_id: "other", term: 3, generation: 8 };
    const path = join(folder, "leases", "db.lease.json");
    writeFileSync(path, JSON.stringify({ ...theirs, acquired_at_ms: 999_000, expires_at_ms: 1_001_000 }));
    const leases = new WriterLeaseStore({ store });
    await expect(leases.tryAcquireForTerm("db", "us", 60_000, 3n)).rejects.toMatchObject({
      failure: { kind: "Held", current: { holderId: "other", generation: 8n, term: 3n } },
    });
    await env.advance(2_000);
    expect(await leases.tryAcquireForTerm("db", "us", 60_000, 3n)).toMatchObject({ generation: 9n });
    expect(JSON.parse(readFileSync(path, "utf8"))).toMatchObject({ holder_id: "us", generation: 9, term: 3 });
  });

  it("with a missing field is InvalidFormat and names it", async () => {
    const folder = fresh();
    const store = await openFileStore({ folder });
    writeFileSync(join(folder, "leases", "db.lease.json"), '{"database_key":"db","holder_id":"x"}');
    await expect(new WriterLeaseStore({ store }).current("db")).rejects.toMatchObject({
      kind: "InvalidFormat",
      message: expect.stringContaining("generation is missing"),
    });
  });
});

describe("after the machine started anew", () => {
  it("time never goes back, and what was alive keeps at least what it had left", async () => {
    const folder = fresh();
    const before = new ManualEnv({ wallMs: 5_000_000, monotonicMs: 9_000 });
    const first = await openWithSeams({ folder, env: before }, boot("id:one"));
    const lease = await new WriterLeaseStore({ store: first }).tryAcquire("db", "us", 30_000);
    const lastMs = first.now();
    await first.close();
    const after = new ManualEnv({ wallMs: 4_000_000, monotonicMs: 10 });
    const second = await openWithSeams({ folder, env: after }, boot("id:two"));
    expect(second.now()).toBeGreaterThanOrEqual(lastMs);
    const kept = await new WriterLeaseStore({ store: second }).current("db");
    expect((kept?.expiresAtMs ?? 0) - second.now()).toBeGreaterThanOrEqual(lease.expiresAtMs - lastMs);
    const later = new ManualEnv({ wallMs: 90_000_000, monotonicMs: 10 });
    const third = await openWithSeams({ folder, env: later }, boot("id:three"));
    const stillKept = await new WriterLeaseStore({ store: third }).current("db");
    expect((stillKept?.expiresAtMs ?? 0) - third.now()).toBe(30_000);
  });
});

describe("a clock file that is damaged", () => {
  it.each([
    ["clock.json", "a digit", (text: string) => text.replace(/\d/, (digit) => (digit === "1" ? "2" : "1"))],
    ["clock.json", "half of it", (text: string) => text.slice(0, text.length / 2)],
    ["clock.json", "everything", () => ""],
    ["mark", "a digit", (text: string) => text.replace(/\d/, (digit) => (digit === "1" ? "2" : "1"))],
  ])("%s, %s: is named, with what to do, and left as it is", async (file, _what, damage) => {
    const folder = fresh();
    await (await openFileStore({ folder })).close();
    const path = join(folder, ".solehold", file);
    const damaged = damage(readFileSync(path, "utf8"));
    writeFileSync(path, damaged);
    const error = await rejection(openFileStore({ folder }));
    expect(error).toMatchObject({ name: "StoreError", kind: "config", outcome: "not-applied" });
    expect(error.message).toContain(`'${path}' is damaged: its checksum does not fit`);
    expect(error.message).toMatch(/Restore it from a backup; or delete it once no lease/);
    expect(readFileSync(path, "utf8")).toBe(damaged);
    rmSync(path);
    await (await openFileStore({ folder })).close();
  });
});

describe("an option of the file store that is wrong is named:", () => {
  it.each<[string, unknown, RegExp]>([
    ["folder", { folder: 7 }, /^file: folder must be a path, got 7$/],
    ["folder", { folder: "" }, /^file: folder must be a path, got ""$/],
    [
      "timeoutMs",
      { folder: "x", timeoutMs: "5s" },
      /^file: timeoutMs must be a whole number from 1 to 2147483647, got '5s'$/,
    ],
  ])("%s", async (_what, options, message) => {
    const error = await rejection(openFileStore(options as never));
    expect(error).toMatchObject({ name: "StoreError", kind: "config" });
    expect(error.message).toMatch(message);
  });
});

describe("processes that are killed while they write", () => {
  it("leave whole records behind, and the others go on", async () => {
    const folder = fresh();
    const worker = new URL("./children/writer.mjs", import.meta.url).pathname;
    const store = await openFileStore({ folder, timeoutMs: 20_000 });
    const key = { tenant: "default", name: "counter" };
    let generation = 0n;
    for (let round = 0; round < 4; round += 1) {
      const children = [0, 1].map(() =>
        spawn(process.execPath, [worker, folder], { stdio: ["ignore", "pipe", "inherit"] }),
      );
      await Promise.all(children.map((child) => once(child.stdout, "data")));
      for (const child of children) {
        child.kill("SIGKILL");
        await once(child, "exit");
      }
      const [stored] = (await store.read([key])).records;
      if (stored?.kind !== "found") throw new Error(`the counter is ${stored?.kind}`);
      expect(stored.record.generation).toBeGreaterThan(generation);
      generation = stored.record.generation;
      const next = { ...stored.record, generation: generation + 1n, nonce: `round-${round}` };
      const { results } = await store.apply([{ key, expected: stored.version, next }]);
      expect(results[0]).toMatchObject({ kind: "applied" });
    }
    await store.close();
  });
});
