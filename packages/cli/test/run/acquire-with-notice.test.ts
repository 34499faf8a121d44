import { Leases } from "solehold";
import { MemoryExecutor } from "solehold/internal";
import { describe, expect, it } from "vitest";
import { acquireWithNotice } from "../../src/run/acquire-with-notice.ts";
import { FakeIo } from "../support/fake-io.ts";

describe("an acquire with a notice", () => {
  it.each([0, 10_000, "forever"] as const)(
    "with a wait of %s keeps no lease that was granted after the signal to stop",
    async (wait) => {
      const executor = new MemoryExecutor({});
      const stop = new AbortController();
      const { execute } = executor;
      executor.execute = async (...call) => {
        if (call[0].op === "acquire") stop.abort(new Error("interrupted"));
        return await execute.apply(executor, call);
      };
      const leases = new Leases({ executor, holder: "me" });
      const invocation = { io: new FakeIo(), flags: new Set<string>() };
      const acquiring = acquireWithNotice({ leases }, "job", { wait, signal: stop.signal }, invocation);
      await expect(acquiring).rejects.toThrow("interrupted");
      expect(await leases.inspect("job")).toMatchObject({ state: "released" });
      await leases.close();
    },
  );
});
