/** Slots behind the service: each counts as a lease, the audit names the slot, and approvals are for one lease. */
import { describe, expect, it } from "vitest";
import { serviceWorld } from "./world.ts";

const key = { tenant: "default", name: "gpu" };
const acquire = (holder: string, token?: string) =>
  ({ op: "acquire", key, holder, slots: 3, ...(token === undefined ? {} : { token }) }) as const;

describe("slots behind the service", () => {
  it("count as leases of their own, whichever of them is held already", async () => {
    const { service } = serviceWorld({ maxLiveLeases: 2 });
    const outcomes = [];
    for (const holder of ["a", "b", "c"]) outcomes.push(await service.execute(acquire(holder)));
    expect(outcomes.map(({ kind }) => kind)).toEqual(["applied", "applied", "refused"]);
    expect(outcomes[2]).toMatchObject({ decision: { reason: "CAPACITY_EXCEEDED" } });
  });

  it("are found again by who repeats its request, even where there is no room for another", async () => {
    const { service } = serviceWorld({ maxLiveLeases: 1 });
    const first = await service.execute(acquire("a", "token-1"));
    const again = await service.execute(acquire("a", "token-1"));
    if (first.kind !== "applied" || again.kind !== "applied") throw new Error("not granted");
    expect(again.decision.lease.key).toEqual(first.decision.lease.key);
    expect(again.decision.lease.generation).toBe(first.decision.lease.generation);
  });

  it("are in the audit as what was granted, and under the name where nothing was", async () => {
    const { service, audit } = serviceWorld();
    for (const holder of ["a", "b", "c", "d"]) await service.execute(acquire(holder));
    const entries = (await audit.query()).map(({ key: name, allowed }) => `${name} ${allowed}`);
    expect(entries.slice(0, 3).sort()).toEqual(["gpu true", "gpu#slot/1 true", "gpu#slot/2 true"]);
    expect(entries[3]).toBe("gpu false");
  });

  it("are refused together with an approval", async () => {
    const { service } = serviceWorld();
    const approval = { nonce: "n", approvals: [] };
    expect(await service.execute({ ...acquire("a"), approval }, { approval: null })).toMatchObject({
      decision: { kind: "refused", field: "slots" },
    });
  });
});
