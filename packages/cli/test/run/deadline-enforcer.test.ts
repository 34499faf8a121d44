import fc from "fast-check";
import { ManualEnv } from "solehold/internal";
import { describe, expect, it } from "vitest";
import { type Deadline, deadlineOf, leftUntil } from "../../src/run/deadline.ts";
import { DeadlineEnforcer, type StopCause } from "../../src/run/deadline-enforcer.ts";
import type { StopPlan } from "../../src/run/plan.ts";

const PLAN: StopPlan = { onLoss: "term", graceMs: 600, marginMs: 150 };

class World {
  readonly env = new ManualEnv();
  readonly sent: { readonly signal: string; readonly atMs: number }[] = [];
  readonly causes: StopCause[] = [];
  readonly startMs = this.env.monotonicMs();
  readonly enforcer: DeadlineEnforcer;

  constructor(plan: StopPlan, lengthMs: number) {
    this.enforcer = new DeadlineEnforcer({
      env: this.env,
      plan,
      deadline: this.deadlineIn(lengthMs),
      kill: (signal) => this.sent.push({ signal, atMs: this.env.monotonicMs() - this.startMs }),
      onStopping: (cause) => this.causes.push(cause),
    });
  }

  deadlineIn(ms: number): Deadline {
    return { monotonicMs: this.env.monotonicMs() + ms, wallMs: this.env.wallMs() + ms };
  }

  get signals(): readonly string[] {
    return [...new Set(this.sent.map(({ signal }) => signal))];
  }

  first(signal: string): number | undefined {
    return this.sent.find((each) => each.signal === signal)?.atMs;
  }
}

describe("the deadline enforcer", () => {
  it("sends SIGTERM a grace before SIGKILL, and SIGKILL a margin before the deadline", async () => {
    const world = new World(PLAN, 3_000);
    await world.env.advance(3_000);
    expect(world.first("SIGTERM")).toBe(2_250);
    expect(world.first("SIGKILL")).toBe(2_850);
    expect(world.causes).toEqual(["deadline"]);
  });

  it("leaves a command alone while fresh deadlines come", async () => {
    const world = new World(PLAN, 3_000);
    for (let renewals = 0; renewals < 20; renewals += 1) {
      await world.env.advance(1_000);
      world.enforcer.extend(world.deadlineIn(3_000));
    }
    expect(world.sent).toEqual([]);
    await world.env.advance(2_249);
    expect(world.sent).toEqual([]);
    await world.env.advance(1);
    expect(world.signals).toEqual(["SIGTERM"]);
  });

  it("is not called off by a deadline that comes after SIGTERM", async () => {
    const world = new World(PLAN, 3_000);
    await world.env.advance(2_300);
    world.enforcer.extend(world.deadlineIn(30_000));
    await world.env.advance(600);
    expect(world.first("SIGKILL")).toBe(2_850);
  });

  it("kills at once when the machine slept past the deadline", async () => {
    const world = new World(PLAN, 3_000);
    world.env.suspend(3_000);
    await world.env.advance(100);
    expect(world.signals).toEqual(["SIGKILL"]);
  });

  it("does not let a wall clock that was set back give a command more time", async () => {
    const world = new World(PLAN, 3_000);
    world.env.stepWall(-3_600_000);
    await world.env.advance(2_850);
    expect(world.first("SIGKILL")).toBe(2_850);
  });

  it("kills at once, without SIGTERM, when another may have the lease already", () => {
    const world = new World(PLAN, 3_000);
    world.enforcer.stop("lost", "now");
    expect(world.signals).toEqual(["SIGKILL"]);
    expect(world.causes).toEqual(["lost"]);
  });

  it("gives the grace when there is time, but never past the deadline", async () => {
    const early = new World(PLAN, 30_000);
    early.enforcer.stop("orphaned", "grace");
    await early.env.advance(30_000);
    expect([early.first("SIGTERM"), early.first("SIGKILL")]).toEqual([0, 600]);
    const late = new World({ ...PLAN, graceMs: 5_000 }, 6_000);
    await late.env.advance(800);
    late.enforcer.stop("orphaned", "grace");
    await late.env.advance(10_000);
    expect([late.first("SIGTERM"), late.first("SIGKILL")]).toEqual([800, 5_800]);
    const later = new World({ ...PLAN, graceMs: 1_000 }, 3_000);
    await later.env.advance(1_800);
    later.enforcer.stop("orphaned", "grace");
    later.enforcer.extend(later.deadlineIn(60_000));
    await later.env.advance(3_000);
    expect(later.first("SIGKILL")).toBe(2_800);
  });

  it("sends nothing once it has finished: the group's number may be another's by then", async () => {
    const world = new World(PLAN, 3_000);
    world.enforcer.finish();
    world.enforcer.stop("orphaned", "now");
    await world.env.advance(10_000);
    expect(world.sent).toEqual([]);
    expect(world.env.pendingTimers).toBe(0);
  });

  it("never stops a command that may outlive its lease", async () => {
    const world = new World({ ...PLAN, onLoss: "ignore" }, 3_000);
    world.enforcer.stop("lost", "now");
    await world.env.advance(10_000);
    expect(world.sent).toEqual([]);
  });

  it("has killed by the newest deadline whatever comes when", async () => {
    const step = fc.oneof(
      fc.record({ kind: fc.constant("advance" as const), ms: fc.integer({ min: 0, max: 4_000 }) }),
      fc.record({ kind: fc.constant("extend" as const), ms: fc.integer({ min: 0, max: 5_000 }) }),
      fc.record({ kind: fc.constant("wall" as const), ms: fc.integer({ min: -5_000, max: 5_000 }) }),
      fc.record({ kind: fc.constant("stop" as const), ms: fc.constant(0) }),
    );
    await fc.assert(
      fc.asyncProperty(fc.array(step, { maxLength: 12 }), async (steps) => {
        const world = new World(PLAN, 3_000);
        let newest = world.deadlineIn(3_000);
        for (const { kind, ms } of steps) {
          if (kind === "wall") world.env.stepWall(ms);
          if (kind === "stop") world.enforcer.stop("lost", "grace");
          if (kind === "extend" && world.causes.length === 0) newest = world.deadlineIn(ms);
          if (kind === "extend") world.enforcer.extend(world.deadlineIn(ms));
          // A look is at most 100 ms away; after it the enforcer must have acted on what is true now.
          await world.env.advance(kind === "advance" ? ms : 100);
          const mustBeDead = leftUntil(newest, world.env) <= PLAN.marginMs - 100;
          if (mustBeDead) expect(world.signals).toContain("SIGKILL");
        }
      }),
      { numRuns: 200 },
    );
  });
});

describe("a deadline", () => {
  it("is never later than the lease, even if the process was paused while it was computed", () => {
    const env = new ManualEnv();
    const endMs = env.monotonicMs() + 3_000;
    const lease = {
      remaining: () => {
        env.pause(1_000);
        return endMs - env.monotonicMs();
      },
    };
    expect(deadlineOf(lease, env).monotonicMs).toBeLessThanOrEqual(endMs);
  });
});
