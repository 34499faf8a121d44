/** Names as keys of a bucket: legal for NATS, one for each name, and back; and markers that do not stay. */
import * as transport from "@nats-io/transport-node";
import fc from "fast-check";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { keyNameProblem, type LeaseKey } from "../../../src/core/index.ts";
import { realEnv } from "../../../src/env/index.ts";
import { NatsCalls } from "../../../src/stores/nats/calls.ts";
import type { NatsPackage } from "../../../src/stores/nats/client.ts";
import { NatsConnection } from "../../../src/stores/nats/connection.ts";
import { NatsDataSet } from "../../../src/stores/nats/data-set.ts";
import { NatsLayout } from "../../../src/stores/nats/layout.ts";
import { settingsFrom } from "../../../src/stores/nats/options.ts";
import { readRecords } from "../../../src/stores/nats/reading.ts";
import { applyWrites } from "../../../src/stores/nats/writing.ts";
import { type Engine, startNats } from "../../engines/index.ts";
import { recordOf, until, writeOf } from "../records.ts";
import { Admin } from "./admin.ts";
import { holdingPackage } from "./faults.ts";

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
  beforeAll(async () => {
    server = await startNats();
  });
  afterAll(() => server?.stop());

  async function callsWith(markerKeptMs: number, natsPackage: NatsPackage = transport as never) {
    const settings = settingsFrom({ url: server.url });
    const connection = await NatsConnection.open(realEnv, natsPackage, settings);
    const data = new NatsDataSet({
      ...{ env: realEnv, connection, layout: new NatsLayout("solehold"), replicas: 1 },
      ...{ acceptAfterMs: null, markerKeptMs },
    });
    return { calls: new NatsCalls(realEnv, data, connection), close: () => connection.close() };
  }

  it("goes once it is old enough and somebody reads the key, and takes nothing with it", async () => {
    const admin = new Admin(server.url);
    const messages = async (): Promise<number> => (await admin.bucketInfo("solehold")).state.messages;
    const patient = await callsWith(60_000);
    const eager = await callsWith(0);
    const [gone, again] = [recordOf("gone"), recordOf("again")];
    const created = await applyWrites(patient.calls, [writeOf(gone), writeOf(again)]);
    const before = await messages();
    const deletes = [gone, again].map(({ key }, index) => {
      const result = created.results[index];
      return { key, expected: result?.kind === "applied" ? result.version : null, next: null };
    });
    const deleted = await applyWrites(patient.calls, deletes);
    expect(deleted.results).toEqual([
      { kind: "applied", version: null },
      { kind: "applied", version: null },
    ]);
    await readRecords(patient.calls, [gone.key, again.key]);
    await readRecords(patient.calls, []);
    expect(await messages()).toBe(before);
    const { results } = await applyWrites(patient.calls, [writeOf(again)]);
    expect(results).toMatchObject([{ kind: "applied" }]);
    await readRecords(eager.calls, [gone.key, again.key]);
    await until("the marker is gone", async () => ((await messages()) === before - 1 ? true : null));
    const { records } = await readRecords(eager.calls, [gone.key, again.key]);
    expect(records).toMatchObject([{ kind: "absent" }, { kind: "found" }]);
    expect((await applyWrites(eager.calls, [writeOf(gone)])).results).toMatchObject([{ kind: "applied" }]);
    patient.close();
    eager.close();
  });

  it("does not take a record with it that was created while it was on its way out", async () => {
    const holding = holdingPackage("STREAM.PURGE");
    const writer = await callsWith(60_000);
    const sweeper = await callsWith(0, holding.natsPackage);
    const record = recordOf("young");
    const [created] = (await applyWrites(writer.calls, [writeOf(record)])).results;
    const expected = created?.kind === "applied" ? created.version : null;
    await applyWrites(writer.calls, [{ key: record.key, expected, next: null }]);
    await readRecords(sweeper.calls, [record.key]);
    const next = recordOf("young");
    expect((await applyWrites(writer.calls, [writeOf(next)])).results).toMatchObject([{ kind: "applied" }]);
    expect(holding.release()).toBe(1);
    const { records } = await readRecords(sweeper.calls, [record.key]);
    expect(records).toMatchObject([{ kind: "found", record: { nonce: next.nonce } }]);
    writer.close();
    sweeper.close();
  });
});
