import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { realEnv, StoreLeaseManager } from "solehold";
import { openEmbeddedStore } from "solehold/embedded";
import { LeaseService } from "solehold/service";
import { describe, expect, it, onTestFinished } from "vitest";
import { openAudit } from "../src/audit-log.ts";

describe("the audit of a server whose store keeps entries until the files have them", () => {
  it("proves with the first look what was answered just now", async () => {
    const dataDir = mkdtempSync(join(tmpdir(), "solehold-audit-log-"));
    const store = await openEmbeddedStore({ folder: `${dataDir}/data` });
    const audit = await openAudit({ audit: "before-reply", dataDir }, store);
    const manager = new StoreLeaseManager({ store });
    const service = new LeaseService({ manager, audit: audit.trail, env: realEnv });
    onTestFinished(async () => {
      await service.close();
      await audit.trail.close();
      await manager.close();
      rmSync(dataDir, { recursive: true, force: true });
    });
    const key = { tenant: "default", name: "job" };
    const { outcome } = await service.grant({ key, holder: "me", ttlMs: 5_000 });
    expect(outcome.kind).toBe("applied");
    expect(await audit.verify()).toMatchObject({ ok: true, entries: 1 });
  });
});
