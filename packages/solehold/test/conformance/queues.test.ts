/** The kit's cases about lines pass on a store that keeps them, and see every mistake that is planted in one. */
import { describe, expect, it } from "vitest";
import { describeStore, storeConformanceCases } from "../../src/conformance/index.ts";
import { LINE_BUGS, type LineBug, linedSubject } from "./queues.ts";

describeStore("memory with lines", linedSubject(null), { describe, it });

describe("the kit", () => {
  for (const [bug, breaks] of Object.entries(LINE_BUGS)) {
    it(`catches a line that ${bug}: ${breaks}`, async () => {
      const cases = storeConformanceCases({ ...linedSubject(bug as LineBug), patienceMs: 200 });
      await expect(cases.find(({ title }) => title === breaks)!.run()).rejects.toThrow();
    });
  }
});
