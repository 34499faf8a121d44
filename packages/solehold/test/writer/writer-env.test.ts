/** The lifecycle configured by the environment: lease required, ttl, holder and prefix. */
import { existsSync, mkdtempSync, readFileSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterAll, describe, expect, it } from "vitest";
import { openStore } from "../../src/client/connect.ts";
import { openWriterInstance, writerSettings } from "../../src/writer/index.ts";

const root = mkdtempSync(join(tmpdir(), "solehold-writer-env-"));
afterAll(() => rmSync(root, { recursive: true, force: true }));

const onDrain = () => undefined;

describe("the environment", () => {
  it("names holder, ttl and prefix of a writer that needs the lease", async () => {
    const folder = join(root, "named");
    const variables = {
      SOLEHOLD_WRITER_LEASE: "required",
      SOLEHOLD_WRITER_TTL: "90s",
      SOLEHOLD_HOLDER: "instance-7",
      SOLEHOLD_PREFIX: "production/leases",
    };
    const writer = await openWriterInstance(`file:${folder}`, { databaseKey: "main", onDrain, variables });
    expect(await writer.attach()).toEqual({ writer: true, holder: "instance-7" });
    const wire = JSON.parse(readFileSync(join(folder, "production/leases/main.lease.json"), "utf8"));
    expect(wire).toMatchObject({ holder_id: "instance-7", term: 1 });
    expect(wire.expires_at_ms - wire.acquired_at_ms).toBe(90_000);
    await writer.close();
  });

  it("that requires no lease leaves the gate open and the store alone", async () => {
    const folder = join(root, "free");
    const variables = { SOLEHOLD_WRITER_LEASE: "not_required" };
    const writer = await openWriterInstance(`file:${folder}`, { databaseKey: "main", onDrain, variables });
    expect((await writer.attach()).writer).toBe(true);
    expect(writer.state).toBe("not_required");
    expect(existsSync(folder)).toBe(false);
    await writer.close();
  });

  it("that says nothing requires the lease", () => {
    expect(writerSettings({ SOLEHOLD_WRITER_TTL: "" })).toEqual({ lease: "required" });
  });

  it("takes a ttl in milliseconds, too", () => {
    expect(writerSettings({ SOLEHOLD_WRITER_TTL: "1500" }).ttl).toBe(1_500);
  });

  it.each([
    [{ SOLEHOLD_WRITER_LEASE: "yes" }, "SOLEHOLD_WRITER_LEASE must be required or not_required, got 'yes'"],
    [{ SOLEHOLD_WRITER_TTL: "soon" }, "SOLEHOLD_WRITER_TTL must be at least 1 ms"],
  ])("that is wrong is refused by the variable's name: %o", (variables, message) => {
    expect(() => writerSettings(variables)).toThrow(message);
  });
});

describe("a prefix", () => {
  it.each(["../elsewhere", "/etc", ".solehold", "a//b"])(
    "of the file store stays in its folder: not %s",
    async (prefix) => {
      await expect(openStore(`file:${join(root, "climbing")}`, { prefix })).rejects.toThrow(
        /the prefix may have/,
      );
    },
  );

  it("is refused by a store that has none", async () => {
    await expect(openStore("memory:", { prefix: "leases/" })).rejects.toThrow(/prefix is for file:/);
  });
});
