import { expect, it } from "vitest";
import { LeaseLostError } from "../../src/index.ts";

it("an error can be kept as JSON, with its fence as text: loggers and queues do that", () => {
  const error = new LeaseLostError({ tenant: "default", name: "job" }, "revoked", 2n ** 64n + 1n);
  expect(JSON.parse(JSON.stringify({ error })).error).toEqual({
    ...{ name: "LeaseLostError", message: error.message, stack: error.stack, code: "LEASE_LOST" },
    ...{
      key: { tenant: "default", name: "job" },
      retryable: false,
      outcome: "not-applied",
      reason: "revoked",
    },
    fence: "18446744073709551617",
  });
});
