/** What makes a command impossible to decide: the field, what is wrong with it, how to correct it. */
import { describe, expect, it } from "vitest";
import { commandProblem, MAX_U64 } from "../../src/core/index.ts";
import { acquire, breakLease, handoff, hashOf, release, renew, resume, revoke, use } from "./cell.ts";

describe("commandProblem", () => {
  it("finds none in a good command of any kind", () => {
    const idempotency = { keyHash: hashOf("k"), fingerprint: hashOf("f"), sealedToken: "" };
    const commands = [
      acquire("a", { term: MAX_U64, note: "", provenTokenHash: hashOf("p"), idempotency }),
      renew("a", { generation: 0n, term: 0n }),
      release("a"),
      use("a"),
      resume("a"),
      handoff("a", "b"),
      revoke({ generation: MAX_U64 }),
      breakLease(0),
    ];
    expect(commands.map((command) => commandProblem(command))).toEqual(commands.map(() => null));
  });

  it.each([
    ["op", { op: "steal" }],
    ["op", { op: "constructor" }],
    ["op", { op: ["acquire"] }],
    ["key", { key: "acme/orders" }],
    ["key", { key: null }],
    ["key.tenant", { key: { tenant: "a/b", name: "n" } }],
    ["key.name", { key: { tenant: "acme", name: "$floor" } }],
    ["key.name", { key: { tenant: "acme" } }],
    ["key.name", { key: { tenant: "acme", name: "n".repeat(257) } }],
    ["nonce", { nonce: "" }],
    ["nonce", { nonce: "n".repeat(65) }],
    ["holder", { holder: "" }],
    ["holder", { holder: "h".repeat(129) }],
    ["holder", { holder: "a\nb" }],
    ["tokenHash", { tokenHash: "short" }],
    ["tokenHash", { tokenHash: "x".repeat(44) }],
    ["tokenHash", { tokenHash: `${"x".repeat(42)}=` }],
    ["purpose", { purpose: "operation" }],
    ["ttlMs", { ttlMs: "30s" }],
    ["provenTokenHash", { provenTokenHash: null }],
    ["note", { note: 5 }],
    ["note", { note: "n".repeat(513) }],
    ["term", { term: 5 }],
    ["term", { term: MAX_U64 + 1n }],
    ["term", { term: -1n }],
    ["idempotency", { idempotency: null }],
    ["idempotency.keyHash", { idempotency: {} }],
    ["idempotency.fingerprint", { idempotency: { keyHash: hashOf("k"), fingerprint: 1, sealedToken: "" } }],
    [
      "idempotency.sealedToken",
      { idempotency: { keyHash: hashOf("k"), fingerprint: hashOf("f"), sealedToken: "s".repeat(385) } },
    ],
  ])("names %s", (field, fields) => {
    const problem = commandProblem({ ...acquire("a"), ...fields });
    expect(problem?.field).toBe(field);
    expect(problem?.message).toMatch(/^(must|may)/);
  });

  it.each([
    ["generation", renew("a"), { generation: "1" }],
    ["purpose", use("a"), { purpose: undefined }],
    ["successor", handoff("a", "b"), { successor: " b" }],
    ["withinMs", handoff("a", "b"), { withinMs: Number.NaN }],
    ["periodMs", breakLease(0), { periodMs: -1 }],
    ["generation", revoke(), { generation: 1 }],
  ])("names %s of a command that has it", (field, command, fields) => {
    expect(commandProblem({ ...command, ...fields })?.field).toBe(field);
  });

  it.each([undefined, null, 5, "acquire", true, Symbol("s")])("says that %s is no command", (value) => {
    expect(commandProblem(value)).toMatchObject({
      field: "command",
      message: expect.stringMatching(/^must be an object, got /),
    });
  });

  it("shows the number that is out of range, not only its type", () => {
    expect(commandProblem(acquire("a", { ttlMs: -5 }))?.message).toMatch(/from 1 to 31536000000, got -5$/);
    expect(commandProblem({ ...acquire("a"), ttlMs: "5" })?.message).toMatch(/got string$/);
  });

  it("does not take fields from the prototype of nothing: an empty object lacks everything", () => {
    expect(commandProblem({})?.field).toBe("op");
    expect(commandProblem(Object.create(null))?.field).toBe("op");
  });
});
