import { describe, expect, it } from "vitest";
import { Quorum, type QuorumConfig } from "../../src/approvals/index.ts";
import { quorumOf, signerOf, testKey } from "./fixtures.ts";

function problemsOf(config: unknown): readonly string[] {
  const definition = Quorum.define(config as QuorumConfig);
  return definition.ok ? [] : definition.problems.map(({ field, message }) => `${field} ${message}`);
}

const SIGNERS = ["s1", "s2", "s3"].map(signerOf);

describe("the thresholds", () => {
  it("are 1, 2 and 3 unless they are given, and strict", () => {
    const quorum = quorumOf(["s3", "s1", "s2"]);
    expect(quorum.thresholds).toEqual({ standard: 1, risky: 2, dangerous: 3 });
    expect(quorum.mode).toBe("strict");
    expect(quorum.signerIds).toEqual(["s1", "s2", "s3"]);
  });

  it("count 0 as 1", () => {
    const quorum = quorumOf(["s1"], { thresholds: { standard: 0, risky: 0, dangerous: 0 } });
    expect(quorum.thresholds).toEqual({ standard: 1, risky: 1, dangerous: 1 });
    expect(problemsOf({ signers: SIGNERS, thresholds: { standard: 1, risky: 0, dangerous: 0 } })).toEqual([]);
    expect(problemsOf({ signers: SIGNERS, thresholds: { standard: 2, risky: 0, dangerous: 2 } })).toEqual([
      "thresholds.risky must be at least thresholds.standard (2), got 1",
    ]);
  });

  it.each([
    [
      { standard: 2, risky: 1, dangerous: 3 },
      ["thresholds.risky must be at least thresholds.standard (2), got 1"],
    ],
    [
      { standard: 1, risky: 3, dangerous: 2 },
      ["thresholds.dangerous must be at least thresholds.risky (3), got 2"],
    ],
    [
      { standard: 1, risky: 2, dangerous: 4 },
      ["thresholds.dangerous must be at most the number of signers (3), got 4"],
    ],
    [
      { standard: -1, risky: 2, dangerous: 3 },
      ["thresholds.standard must be a whole number from 0 to 3, got -1"],
    ],
    [
      { standard: 1, risky: 1.5, dangerous: 3 },
      ["thresholds.risky must be a whole number from 0 to 3, got 1.5"],
    ],
    [
      { standard: 1, risky: 2, dangerous: "3" },
      ['thresholds.dangerous must be a whole number from 0 to 3, got "3"'],
    ],
    [{ standard: 1, risky: 2 }, ["thresholds.dangerous must be a whole number from 0 to 3, got undefined"]],
    [7, ["thresholds must be an object, got 7"]],
  ])("%j are refused with what is wrong", (thresholds, expected) => {
    expect(problemsOf({ signers: SIGNERS, thresholds })).toEqual(expected);
  });

  it("of the default need three signers", () => {
    expect(problemsOf({ signers: SIGNERS.slice(0, 2) })).toEqual([
      "thresholds.dangerous must be at most the number of signers (2), got 3",
    ]);
  });
});

describe("the signers", () => {
  const { publicKey } = testKey("s1");

  it.each<readonly [string, unknown, string]>([
    ["no configuration", undefined, "quorum must be an object, got undefined"],
    ["a list instead", [], "quorum must be an object, got an array"],
    ["no signers", { signers: [] }, "signers must be an array of 1 to 256 signers, got 0 entries"],
    ["another mode", { signers: SIGNERS, mode: "loose" }, 'mode must be "strict" or "lenient", got "loose"'],
    ["a signer that is none", { signers: [7, ...SIGNERS] }, "signers[0] must be an object, got 7"],
    [
      "a signer with a bad id",
      { signers: [{ ...signerOf("s4"), signerId: "s 4" }, ...SIGNERS] },
      'signers[0].signerId must not contain white space, got "s 4"',
    ],
    [
      "a signer twice",
      { signers: [...SIGNERS, { ...signerOf("s4"), signerId: "s1" }] },
      'signers[3].signerId "s1" is listed before; give each signer one entry with all its keys',
    ],
    [
      "a signer without keys",
      { signers: [...SIGNERS, { signerId: "s4", keys: [] }] },
      "signers[3].keys must be an array of 1 to 8 keys, got 0 entries",
    ],
    [
      "a key that is none",
      { signers: [...SIGNERS, { signerId: "s4", keys: ["x"] }] },
      'signers[3].keys[0] must be an object with publicKey, got "x"',
    ],
    [
      "one key for two signers",
      { signers: [...SIGNERS, { signerId: "s4", keys: [{ publicKey }] }] },
      "signers[3].keys[0].publicKey is the key of signers[0].keys[0]; one key, one place",
    ],
    [
      "an empty window",
      {
        signers: [
          ...SIGNERS,
          { signerId: "s4", keys: [{ publicKey: testKey("s4").publicKey, notBeforeMs: 5, notAfterMs: 5 }] },
        ],
      },
      "signers[3].keys[0].notAfterMs must be later than notBeforeMs, got 5",
    ],
    [
      "a window of text",
      {
        signers: [
          ...SIGNERS,
          { signerId: "s4", keys: [{ publicKey: testKey("s4").publicKey, notBeforeMs: "5" }] },
        ],
      },
      'signers[3].keys[0].notBeforeMs must be a whole number of milliseconds from 0 to 8640000000000000, got "5"',
    ],
  ])("with %s are refused with what is wrong", (_, config, expected) => {
    expect(problemsOf(config)).toEqual([expected]);
  });

  it("with several faults have all of them listed", () => {
    const problems = problemsOf({
      mode: 1,
      signers: [{ signerId: "", keys: [{ publicKey: "x" }] }],
      thresholds: {},
    });
    expect(problems.length).toBe(6);
  });

  it("do not have their keys repeated in a message", () => {
    const bad = `${publicKey.slice(0, -1)}*`;
    const [problem] = problemsOf({
      signers: [{ signerId: "s1", keys: [{ publicKey: bad }] }, ...SIGNERS.slice(1), signerOf("s4")],
    });
    expect(problem).toContain("signers[0].keys[0].publicKey must be 43 characters");
    expect(problem).not.toContain(bad.slice(3, 12));
  });

  it("are known by their id only", () => {
    const quorum = quorumOf(["s1", "s2", "s3"]);
    expect(quorum.keysOf("s1")?.length).toBe(1);
    expect(quorum.keysOf("constructor")).toBeUndefined();
    expect(Object.isFrozen(quorum) && Object.isFrozen(quorum.thresholds)).toBe(true);
  });
});
