import { describe, expect, test } from "vitest";
import { FileAuditTrail, verifyAudit } from "../../src/audit/index.ts";
import { Writer } from "./process.ts";
import { allEntries, eventOf, temporaryFolder } from "./support.ts";

describe("kill -9 of a process that appends in before-reply mode", () => {
  test("every acknowledged entry is there, once, and the next process continues the chain", async () => {
    const folder = await temporaryFolder();
    const acknowledged: string[] = [];
    for (const [round, lines] of [40, 150, 333, 77].entries()) {
      const writer = new Writer(folder, `round${round}`, "append");
      await writer.printed(lines);
      await writer.kill();
      expect(writer.lines[0]).toBe("open");
      expect(writer.lines.length).toBeGreaterThanOrEqual(lines);
      acknowledged.push(...writer.lines.slice(1));
    }
    const trail = await FileAuditTrail.open({ folder, durability: "before-reply" });
    await trail.append(eventOf({ traceId: "last" }));
    await trail.close();
    const found = (await allEntries(folder)).map((entry) => entry.traceId);
    const missing = acknowledged.filter((trace) => !found.includes(trace));
    expect(missing).toEqual([]);
    expect(new Set(found).size).toBe(found.length);
    expect(found.at(-1)).toBe("last");
    expect(await verifyAudit(folder)).toEqual({ ok: true, entries: found.length, head: trail.head() });
  });
});
