import { describe, expect, it } from "vitest";
import type { LeaseRecord } from "../../src/core/index.ts";
import { Choices, Machine, World } from "../../src/sim/index.ts";
import type { LogMistake } from "../../src/sim/store/early-writes.ts";
import { StoreEngine } from "../../src/sim/store/engine.ts";
import { WriteLog } from "../../src/sim/store/log.ts";
import type { WriteResult } from "../../src/store/index.ts";

const KEY = { tenant: "default", name: "key" };
const OTHER = { tenant: "default", name: "other" };

function recordOf(generation: bigint, state: LeaseRecord["state"], key = KEY): LeaseRecord {
  return {
    key,
    holder: "n1",
    purpose: "Operation",
    tokenHash: "a".repeat(43),
    term: 0n,
    generation,
    ttlMs: 1_000,
    grantedAtMs: 1_000,
    renewedAtMs: 1_000,
    expiresAtMs: 2_000,
    endedAtMs: state === "held" ? null : 1_500,
    state,
    renewals: 0,
    resumeRequired: false,
    breakAtMs: null,
    handoff: null,
    nonce: `${state}-${generation}`,
    idempotency: null,
    note: "",
  };
}

/** An engine whose disk takes a while, with a held lease that is safe. */
async function scene(mistake: LogMistake | null = null) {
  const world = new World(new Choices(1), { record: "no" });
  const machine = new Machine(world, "store", { monotonicMs: 1_000, wallMs: 1_000, rate: 1 });
  const takenBack: string[] = [];
  const engine = new StoreEngine({
    machine,
    granularityMs: 1,
    writes: "conditional",
    onWrite: () => undefined,
    early: {
      log: new WriteLog({
        world,
        machine,
        diskMs: 10,
        stalls: { rate: 0, longestMs: 0, isOver: () => true },
      }),
      mistake,
      onLogged: () => undefined,
      onTakenBack: ({ after }, seen) => takenBack.push(`${after?.state} ${after?.generation}, seen: ${seen}`),
      onBuiltUpon: () => undefined,
    },
  });
  const answers: string[] = [];
  const send = (
    text: string,
    expected: string | null,
    next: LeaseRecord,
    form: "early" | "usual" = next.state === "released" ? "early" : "usual",
  ): void =>
    engine.submit({ key: next.key, expected, next }, "n1", form, {
      answered: ({ kind }: WriteResult) => answers.push(`${text} ${kind}`),
      broken: () => answers.push(`${text} broken`),
    });
  const pass = (): Promise<void> => world.run(world.nowMs + 1_000, () => "go on");
  const seen = (): string => {
    const record = engine.recordOf(KEY);
    return record === null ? "nothing" : `${record.state} ${record.generation}`;
  };
  const versionOf = (): string | null => {
    const [stored] = engine.read([KEY]);
    return stored?.kind === "found" ? stored.version : null;
  };
  send("grant", null, recordOf(1n, "held"));
  await pass();
  return { engine, answers, takenBack, send, pass, seen, versionOf };
}

describe("a store whose ends are seen before they are safe", () => {
  it("shows an end at once, and answers it when the disk has it", async () => {
    const { answers, send, pass, seen, versionOf } = await scene();
    send("end", versionOf(), recordOf(1n, "released"));
    expect([seen(), answers]).toEqual(["released 1", ["grant applied"]]);
    await pass();
    expect([seen(), answers]).toEqual(["released 1", ["grant applied", "end applied"]]);
  });

  it("shows everything else only when it is safe, and lets other writers of the key wait for that", async () => {
    const { answers, send, pass, seen, versionOf } = await scene();
    const version = versionOf();
    send("renewal", version, recordOf(1n, "held"));
    send("rival", version, recordOf(1n, "revoked"));
    expect(answers).toEqual(["grant applied"]);
    expect(versionOf()).toBe(version);
    await pass();
    expect(answers).toEqual(["grant applied", "renewal applied", "rival conflict"]);
    expect(seen()).toBe("held 1");
  });

  it("takes back by a crash what was not safe, with all that was built upon it, and answers none of it", async () => {
    const { engine, answers, takenBack, send, pass, seen, versionOf } = await scene();
    const version = versionOf();
    send("end", version, recordOf(1n, "released"));
    send("next grant", versionOf(), recordOf(2n, "held"));
    send("waits", versionOf(), recordOf(2n, "held"));
    engine.crash();
    await pass();
    expect(answers.slice(1).sort()).toEqual(["end broken", "next grant broken", "waits broken"]);
    expect(takenBack).toEqual(["released 1, seen: yes"]);
    expect([seen(), versionOf()]).toEqual(["held 1", version]);
  });

  it("never gives the version of what was taken back to something else", async () => {
    const { engine, send, pass, versionOf } = await scene();
    const held = versionOf();
    send("end", held, recordOf(1n, "released"));
    const lost = versionOf();
    engine.crash();
    send("end again", held, recordOf(1n, "released"));
    await pass();
    expect(versionOf()).not.toBe(lost);
  });

  it("keeps by a crash what was answered, and an end below a grant that was", async () => {
    const { engine, answers, takenBack, send, pass, seen, versionOf } = await scene();
    send("end", versionOf(), recordOf(1n, "released"));
    send("next grant", versionOf(), recordOf(2n, "held"));
    await pass();
    engine.crash();
    expect(answers).toEqual(["grant applied", "end applied", "next grant applied"]);
    expect([seen(), takenBack]).toEqual(["held 2", []]);
  });

  it("makes nothing safe before what stands before it in the log, of whatever key", async () => {
    const { answers, send, pass, versionOf } = await scene();
    for (let index = 0; index < 20; index += 1) {
      send("end", versionOf(), recordOf(1n, "released"));
      send("other", null, recordOf(1n, "held", { ...OTHER, name: `other${index}` }));
      send("grant", versionOf(), recordOf(1n, "held"));
      await pass();
      expect(answers.splice(0).slice(-3)).toEqual(["end applied", "other applied", "grant applied"]);
    }
  });

  it("says when what can be seen is safe, and does not say it if that is lost", async () => {
    const { engine, answers, send, pass, versionOf } = await scene();
    const ask = (): void =>
      engine.whenSafe({ safe: () => answers.push("all safe"), lost: () => answers.push("unknown") });
    send("end", versionOf(), recordOf(1n, "released"));
    ask();
    await pass();
    expect(answers.slice(1)).toEqual(["end applied", "all safe"]);
    ask();
    engine.crash();
    await pass();
    expect(answers.at(-1)).toBe("unknown");
  });

  it.each([
    ["end answered unsafe", "end applied"],
    ["grant answered unsafe", "renewal applied"],
  ] as const)("can be told to make a mistake: %s", async (mistake, answer) => {
    const { answers, send, versionOf } = await scene(mistake);
    send("end", versionOf(), recordOf(1n, "released"));
    send("renewal", versionOf(), recordOf(1n, "held"));
    expect(answers.slice(1)).toEqual([answer]);
  });
});
