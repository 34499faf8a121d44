/** Names as keys of a bucket: legal for NATS, one for each name, and back; and the markers of deleted keys. */
import fc from "fast-check";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { keyNameProblem, type LeaseKey } from "../../../src/core/index.ts";
import { type NatsStore, openNatsStore } from "../../../src/stores/nats/index.ts";
import { NatsLayout } from "../../../src/stores/nats/layout.ts";
import { type Engine, startNats } from "../../engines/index.ts";
import { applyOne, create, recordOf, writeOf } from "../records.ts";
import { Admin } from "./admin.ts";

const layout = new NatsLayout("leases");
const names = fc
  .oneof(
    fc.string({ unit: "grapheme", minLength: 1, maxLength: 40 }),
    fc
      .array(fc.constantFrom("/", ".", "=", "=2E", "a", "A", " ", "*", ">", "é", "🦊"), { minLength: 1 })
      .map((parts) => parts.join("")),
  )
  .map((name) => name.normalize("NFC"))
  .filter((name) => keyNameProblem(name) === null);
const tenants = fc.stringMatching(/^[A-Za-z0-9][A-Za-z0-9._-]{0,20}$/);

describe("the subject of a name", () => {
  it("is a key that the tools of NATS accept, and leads back to the name", () => {
    fc.assert(
      fc.property(tenants, names, (tenant, name) => {
        const subject = layout.recordSubject("id", { tenant, name });
        const key = subject.slice(layout.base.length);
        expect(key).toMatch(/^[-/_=a-zA-Z0-9]+(\.[-/_=a-zA-Z0-9]+)*$/);
        expect(layout.keyOf("id", subject)).toEqual({ tenant, name });
        expect(layout.keyOf("other", subject)).toBeNull();
      }),
    );
  });

  it("differs from that of every other name", () => {
    fc.assert(
      fc.property(fc.uniqueArray(names, { minLength: 2, maxLength: 20 }), (all) => {
        const subjects = all.map((name) => layout.recordSubject("id", { tenant: "default", name }));
        expect(new Set(subjects).size).toBe(all.length);
      }),
    );
  });

  it("matches the filter of every prefix that the name has", () => {
    fc.assert(
      fc.property(names, fc.nat(), (name, at) => {
        const prefix = name.slice(0, at % (name.length + 1));
        const filter = layout.recordsOf("id", "default", prefix);
        const subject = layout.recordSubject("id", { tenant: "default", name });
        expect(filter.endsWith(".>")).toBe(true);
        expect(subject.startsWith(filter.slice(0, -1))).toBe(true);
        expect(subject.length).toBeGreaterThan(filter.length - 1);
      }),
    );
  });

  it("fits into a line of the protocol, however long and foreign the name is", () => {
    const longest: LeaseKey = { tenant: "t.".repeat(32), name: "\u6f22".repeat(256) };
    expect(layout.recordSubject("0123456789", longest).length).toBeLessThan(3_000);
  });
});

describe("the marker of a deleted key", () => {
  let server: Engine;
  let store: NatsStore;
  beforeAll(async () => {
    server = await startNats();
    store = await openNatsStore({ url: server.url });
  });
  afterAll(async () => {
    await store?.close();
    await server?.stop();
  });

  it("stands in nobody's way, before and after `nats kv compact` removed it", async () => {
    const admin = new Admin(server.url);
    const record = recordOf("gone");
    const messages = async (): Promise<number> => (await admin.bucketInfo("solehold")).state.messages;
    const before = await messages();
    const versions = new Set<string>();
    for (const compact of [false, true, true]) {
      const version = await create(store, record);
      versions.add(version);
      expect(await messages()).toBe(before + 1);
      const deleted = await applyOne(store, { key: record.key, expected: version, next: null });
      expect(deleted).toEqual({ kind: "applied", version: null });
      expect((await applyOne(store, writeOf(record, version))).kind).toBe("conflict");
      if (compact) await admin.compact("solehold");
      expect(await messages()).toBe(before + (compact ? 0 : 1));
      expect((await store.read([record.key])).records).toEqual([{ kind: "absent" }]);
      expect((await applyOne(store, writeOf(record, version))).kind).toBe("conflict");
    }
    expect(versions.size).toBe(3);
  });
});
