import type { LeaseView } from "solehold";
import { createPolicy, type LeaseRecord, viewOf } from "solehold/internal";
import { describe, expect, it } from "vitest";
import { LeaseDiff } from "../../src/client/lease-diff.ts";

const policy = createPolicy();

function view(changes: Partial<LeaseRecord> = {}, nowMs = 1_000): LeaseView {
  const record: LeaseRecord = {
    key: { tenant: "default", name: "job" },
    holder: "me",
    purpose: "Operation",
    tokenHash: "-".repeat(43),
    term: 0n,
    generation: 1n,
    ttlMs: 1_000,
    grantedAtMs: 1_000,
    renewedAtMs: 1_000,
    expiresAtMs: 2_000,
    endedAtMs: null,
    state: "held",
    renewals: 0,
    resumeRequired: false,
    breakAtMs: null,
    minHoldUntilMs: null,
    lockDelayMs: 0,
    handoff: null,
    reservation: null,
    ticket: "",
    metadata: {},
    nonce: "n",
    idempotency: null,
    note: "",
    ...changes,
  };
  return viewOf(record, nowMs, policy);
}

describe("the lease diff", () => {
  it("tells a lease's life in the words of its changes", () => {
    const diff = new LeaseDiff();
    const kinds = [
      view(),
      view({ renewals: 1 }),
      view({ renewals: 1, breakAtMs: 1_500 }),
      view({ renewals: 1, breakAtMs: 1_500 }, 2_000),
      view({ generation: 2n }),
      view({ generation: 2n, state: "revoked", endedAtMs: 1_100 }),
      view({ generation: 3n }),
      view({ generation: 3n, state: "released", handoff: { successor: "you", deadlineMs: 9_000 } }),
      view({ generation: 4n, holder: "you" }),
      view({ generation: 4n, holder: "you", state: "released" }),
    ].map((each) => diff.update(each)?.kind);
    expect(kinds).toEqual([
      "granted",
      "renewed",
      "breaking",
      "expired",
      "granted",
      "revoked",
      "granted",
      "handed over",
      "granted",
      "released",
    ]);
    expect(diff.remove("job")?.kind).toBe("removed");
    expect(diff.remove("job")).toBeNull();
  });

  it("says nothing of an event that comes twice or late", () => {
    const diff = new LeaseDiff();
    diff.update(view({ generation: 2n, renewals: 3 }));
    expect(diff.update(view({ generation: 2n, renewals: 3 }))).toBeNull();
    expect(diff.update(view({ generation: 2n, renewals: 2 }))).toBeNull();
    expect(diff.update(view({ generation: 1n, state: "released" }))).toBeNull();
    diff.update(view({ generation: 2n, state: "released" }));
    expect(diff.update(view({ generation: 2n, renewals: 9 }))).toBeNull();
  });

  it("begins with what is held, and is silent about what had ended before", () => {
    const diff = new LeaseDiff();
    expect(diff.begin(view())?.kind).toBe("held");
    expect(diff.update(view())).toBeNull();
    expect(diff.begin(view({ key: { tenant: "default", name: "old" }, state: "released" }))).toBeNull();
  });
});
