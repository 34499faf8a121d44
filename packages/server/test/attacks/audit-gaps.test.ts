/** What is missing in the audit is said in the audit: what a full disk refused, and what a killed process left behind. */
import { FileAuditTrail } from "solehold/internal";
import { describe, expect, it, vi } from "vitest";
import { withGapEntries } from "../../src/main/audit-gaps.ts";
import { ServerProcess } from "../support/process.ts";
import { ask, tempFolder, testServer } from "../support/server.ts";

const event = (key: string) => ({
  ...{ at: 7, tenant: "t", key, leaseId: "", action: "grant", allowed: true, reason: "OK_DECISION_COMPUTE" },
  ...{ reasonCode: 1, traceId: "", outcome: "applied" as const },
});

describe("entries that the disk refused", () => {
  it("are counted by one entry in the place where they are missing", async () => {
    const file = await FileAuditTrail.open({ folder: await tempFolder(), durability: "before-reply" });
    const trail = withGapEntries(file);
    await trail.append(event("before"));
    const disk = vi.spyOn(file, "append").mockImplementation(() => Promise.reject(new Error("ENOSPC")));
    for (const key of ["a", "b", "c"]) await expect(trail.append(event(key))).rejects.toThrow("ENOSPC");
    await expect(trail.flush()).rejects.toThrow("ENOSPC");
    disk.mockRestore();
    await trail.append(event("after"));
    expect((await trail.query()).map(({ action, key, detail }) => [action, key, detail?.dropped])).toEqual([
      ["grant", "before", undefined],
      ["audit-gap", "", 3],
      ["grant", "after", undefined],
    ]);
    await trail.flush();
    await trail.close();
    expect(file.head().sequence).toBe(3);
  });

  it("are also said by a check of readiness, which so finds out that the disk works again", async () => {
    const file = await FileAuditTrail.open({ folder: await tempFolder(), durability: "before-reply" });
    const trail = withGapEntries(file);
    const disk = vi.spyOn(file, "append").mockImplementation(() => Promise.reject(new Error("ENOSPC")));
    await expect(trail.append(event("a"))).rejects.toThrow();
    await expect(trail.flush()).rejects.toThrow("ENOSPC");
    disk.mockRestore();
    await trail.flush();
    expect(await trail.query()).toMatchObject([{ action: "audit-gap", detail: { dropped: 1 } }]);
    await trail.close();
  });
});

describe("a process that was killed", () => {
  const acquire = async (url: string, name: string) =>
    await ask(`${url}/v1/leases/acquire`, {
      method: "POST",
      headers: { "content-type": "application/json" },
      body: JSON.stringify({ name, holder: "me", ttlMs: 600_000 }),
    });
  const gapsOf = async (url: string) => {
    const { body } = await ask(`${url}/v1/audit?tenant=*&action=audit-gap&limit=1000`, {});
    return body.entries;
  };

  it("is named by the next one, with the live grants that have no entry", async () => {
    const dataDir = await tempFolder();
    const store = `embedded:${dataDir}/data`;
    const first = await ServerProcess.start(dataDir, "--store", store);
    await acquire(first.url, "audited");
    await first.kill();
    // As a kill between the store's write and the entry leaves it.
    const past = await testServer({ store, audit: "memory" }, { dataDir: await tempFolder() });
    await past.lease("acquire", { name: "unaudited", holder: "ghost", ttlMs: 600_000 });
    await past.server.close();
    const second = await ServerProcess.start(dataDir, "--store", store);
    expect(await gapsOf(second.url)).toMatchObject([
      { tenant: "default", key: "unaudited", holder: "ghost", fence: expect.any(String) },
      { tenant: "", detail: { cause: "no stop before this start", after: 2, liveGrantsWithoutEntry: 1 } },
    ]);
    expect((await ask(`${second.url}/v1/audit/verify`, {})).body.ok).toBe(true);
    await second.stop();
    const third = await ServerProcess.start(dataDir, "--store", store);
    expect(await gapsOf(third.url)).toHaveLength(2);
  });
});
