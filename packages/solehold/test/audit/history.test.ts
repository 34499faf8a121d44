/** The history of a lease from its audit, and the answer to "why did my job not run?". */
import {
  type AuditEvent,
  decisionInWords,
  durationInWords,
  historyOf,
  LeaseService,
  ManualEnv,
  MemoryAuditTrail,
  MemoryExecutor,
  REASONS,
  whyNotRun,
  withWaitQueue,
} from "solehold/internal";
import { describe, expect, it } from "vitest";

const START = 1_700_000_000_000;

function event(seconds: number, action: string, more: Partial<AuditEvent> = {}): AuditEvent {
  return {
    at: START + seconds * 1_000,
    tenant: "default",
    key: "job",
    leaseId: "default/job",
    action,
    allowed: true,
    reason: "OK_DECISION_COMPUTE",
    reasonCode: 0,
    traceId: "t",
    outcome: "applied",
    ...more,
  };
}

const grant = (seconds: number, holder: string, fence: number, detail?: AuditEvent["detail"]): AuditEvent =>
  event(seconds, "grant", {
    holder,
    fence: String(fence).padStart(39, "0"),
    ...(detail === undefined ? {} : { detail }),
  });
const end = (seconds: number, action: string, fence: number): AuditEvent =>
  event(seconds, action, { fence: String(fence).padStart(39, "0") });
const denied = (seconds: number, holder: string, heldBy: string, forSeconds: number): AuditEvent =>
  event(seconds, "grant", {
    holder,
    allowed: false,
    reason: "LEASE_HELD_BY_OTHER",
    outcome: "refused",
    detail: { heldBy, heldUntilMs: START + (seconds + forSeconds) * 1_000 },
  });

const clock = (ms: number): string => `${(ms - START) / 1_000} s`;
const why = (events: readonly AuditEvent[], seconds: number, holder?: string): string =>
  whyNotRun(events, { atMs: START + seconds * 1_000, ...(holder === undefined ? {} : { holder }) }, clock)
    .answer;

describe("the history of a lease", () => {
  it("has each tenure with its holder, its fence and how it ended", () => {
    const { tenures } = historyOf([
      grant(0, "a", 1),
      end(10, "release", 1),
      grant(20, "b", 2),
      end(30, "expire", 2),
      grant(40, "c", 3),
      end(50, "revoke", 3),
      grant(60, "d", 4),
      end(70, "handoff", 4),
      grant(70, "e", 5),
      grant(90, "f", 6),
    ]);
    expect(
      tenures.map(({ holder, fence, fromMs, toMs, end }) => [
        holder,
        fence,
        clock(fromMs),
        toMs && clock(toMs),
        end,
      ]),
    ).toEqual([
      ["a", "1", "0 s", "10 s", "released"],
      ["b", "2", "20 s", "30 s", "expired"],
      ["c", "3", "40 s", "50 s", "revoked"],
      ["d", "4", "60 s", "70 s", "handed over"],
      ["e", "5", "70 s", "90 s", "superseded"],
      ["f", "6", "90 s", null, null],
    ]);
  });

  it("counts a repeated grant as a renewal, and ends before the grant of the same instant", () => {
    const { tenures } = historyOf([
      grant(20, "b", 2, { waitedMs: 5_000 }),
      end(20, "release", 1),
      grant(0, "a", 1),
      grant(3, "a", 1),
      end(5, "renew", 1),
      end(8, "break", 1),
    ]);
    expect(tenures).toMatchObject([
      {
        holder: "a",
        end: "released",
        renewedAtMs: [START + 3_000, START + 5_000],
        brokenAtMs: [START + 8_000],
      },
      { holder: "b", end: null, waitedMs: 5_000 },
    ]);
  });

  it("is not changed by attempts that were denied", () => {
    const { tenures, denials } = historyOf([
      grant(0, "a", 1),
      event(5, "release", { holder: "b", allowed: false, reason: "LEASE_TOKEN_INVALID" }),
      denied(6, "b", "a", 4),
    ]);
    expect(tenures).toMatchObject([{ holder: "a", end: null }]);
    expect(denials).toMatchObject([{ holder: "b", atMs: START + 6_000, reason: "LEASE_HELD_BY_OTHER" }]);
  });

  it("knows how long a waiter waited, from what the wait queue's attempts put into the audit", async () => {
    const env = new ManualEnv();
    const audit = new MemoryAuditTrail({ capacity: 100 });
    const service = new LeaseService({ executor: new MemoryExecutor({ env }), audit, env });
    const queue = withWaitQueue({ env })(service);
    const key = { tenant: "default", name: "job" };
    await queue.execute({ op: "acquire", key, holder: "a", token: "t", ttlMs: 60_000 });
    const second = queue.execute({ op: "acquire", key, holder: "b" }, { wait: { waitMs: 30_000 } });
    await env.advance(7_000);
    await queue.execute({ op: "release", key, holder: "a", token: "t" });
    await env.advance(100);
    await second;
    const { tenures } = historyOf(await audit.query({ key: "job" }));
    expect(tenures.map(({ end, waitedMs }) => [end, waitedMs >= 7_000])).toEqual([
      ["released", false],
      [null, true],
    ]);
  });
});

describe("why a job did not run", () => {
  it("says who held it, for how long still, and when it was granted after all", () => {
    const events = [grant(0, "a", 1), denied(8, "b", "a", 12), end(20, "release", 1), grant(25, "b", 2)];
    expect(why(events, 9, "b")).toBe(
      "b asked at 8 s and was denied: held by a for another 12 s. a held it from 0 s until 20 s (released). It was granted later, at 25 s.",
    );
  });

  it("says that nobody asked, and whether it was free", () => {
    expect(why([grant(0, "a", 1), end(10, "release", 1)], 5_000)).toBe(
      "Nobody asked for it within 5 min of 5000 s: the job was not started, or did not reach this server. It was free then.",
    );
    expect(why([grant(0, "a", 1)], 5_000, "b")).toBe(
      "b did not ask for it within 5 min of 5000 s: the job was not started, or did not reach this server. a held it then.",
    );
  });

  it("does not claim that it was free before the audit begins", () => {
    const answer = why([end(1_000, "release", 1), grant(1_010, "b", 2)], 0);
    expect(answer).toContain("Nobody asked for it within 5 min of 0 s");
    expect(answer).toContain("The audit does not say that anybody held it then.");
  });

  it("says that a holder lost it in the middle, and how", () => {
    expect(why([grant(0, "a", 1), end(30, "expire", 1)], 1, "a")).toBe(
      "a was granted it at 0 s with fence 1, held it for 30 s, and lost it at 30 s: it was not renewed in time.",
    );
    expect(why([grant(0, "a", 1), end(30, "revoke", 1)], 1)).toContain("an operator revoked it");
  });

  it("says that it did run, or runs, where it did", () => {
    expect(why([grant(10, "a", 1, { waitedMs: 4_000 }), end(30, "release", 1)], 12, "a")).toBe(
      "It did run: a was granted it at 10 s with fence 1 after waiting 4 s and held it for 20 s, until it was released.",
    );
    expect(why([grant(10, "a", 1)], 12)).toContain("holds it: if its work does not run");
  });

  it("says how late it ran, and who held it while it waited", () => {
    const events = [
      ...[grant(0, "a", 1), end(40, "release", 1), grant(40, "b", 2, { waitedMs: 30_000 })],
      end(60, "release", 2),
    ];
    expect(why(events, 10, "b")).toBe(
      "It did run, 30 s late: b was granted it at 40 s with fence 2 after waiting 30 s and held it for 20 s, until it was released. a held it from 0 s until 40 s (released).",
    );
    expect(why(events, 50, "b")).toMatch(/^It did run: b was granted/);
  });

  it("takes the attempt that was nearest to the time, counted from when a waiter asked", () => {
    const events = [
      denied(0, "a", "x", 5),
      grant(400, "a", 2, { waitedMs: 300_000 }),
      denied(700, "a", "x", 9),
    ];
    expect(why(events, 110)).toContain("fence 2");
    expect(why(events, 690)).toContain("another 9 s");
  });

  it("does not claim to know what the store did not confirm", () => {
    const unknown = event(0, "grant", {
      holder: "a",
      allowed: false,
      outcome: "unknown",
      reason: "INTERNAL_PIPELINE_ERROR",
    });
    expect(decisionInWords(unknown)).toBe(
      "denied: the store did not confirm it: whether it was granted is not known",
    );
  });
});

it("never says how to get what was denied", () => {
  const denials = Object.keys(REASONS).map((reason) =>
    decisionInWords(event(0, "grant", { allowed: false, outcome: "none", holder: "b", reason })),
  );
  expect(denials.filter((words) => /force|steal|revoke it|break it|delete|--/i.test(words))).toEqual([]);
});

it.each([
  [0, "0 ms"],
  [999, "999 ms"],
  [1_500, "1.5 s"],
  [12_000, "12 s"],
  [59_700, "1 min"],
  [200_000, "3 min 20 s"],
  [7_500_000, "2 h 5 min"],
  [360_000_000, "4 d 4 h"],
])("%i ms is %s", (ms, words) => {
  expect(durationInWords(ms)).toBe(words);
});
