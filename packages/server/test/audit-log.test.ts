import { LeaseService, MemoryExecutor, realEnv } from "solehold/internal";
import { describe, expect, it, onTestFinished } from "vitest";
import { openAudit } from "../src/main/audit-log.ts";
import { tempFolder } from "./support/server.ts";

describe("the audit of a server", () => {
  it.each(["before-reply", "background"] as const)(
    "%s proves with the first look what was answered just now",
    async (durability) => {
      const audit = await openAudit({ audit: durability, dataDir: await tempFolder() });
      const executor = new MemoryExecutor();
      const service = new LeaseService({ executor, audit: audit.trail, env: realEnv });
      onTestFinished(async () => {
        await service.close();
        await audit.trail.close();
        await executor.close();
      });
      const key = { tenant: "default", name: "job" };
      const outcome = await service.execute({ op: "acquire", key, holder: "me", ttlMs: 5_000 });
      expect(outcome.kind).toBe("applied");
      expect(await audit.verify()).toMatchObject({ ok: true, entries: 1 });
    },
  );
});
