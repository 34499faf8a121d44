/** The kit's case with processes is not fooled by processes that are careless, or that cannot run. */
import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterAll, describe, expect, it } from "vitest";
import { leaseConformanceCases } from "../../src/conformance/index.ts";
import { openEmbeddedStore } from "../../src/stores/sqlite/index.ts";

const folder = mkdtempSync(join(tmpdir(), "solehold-kit-"));

afterAll(() => rmSync(folder, { recursive: true, force: true }));

function takeTurns(module: string, url: string): Promise<void> {
  const open = () => openEmbeddedStore({ folder });
  const child = () => ({ module: join(import.meta.dirname, module), args: [url] });
  const cases = leaseConformanceCases({ open, openSecond: open, child, patienceMs: 100_000 });
  const found = cases.find(({ title }) => title.startsWith("processes that are killed"));
  if (found === undefined) throw new Error("the kit has no case with processes");
  return found.run();
}

describe("the kit", () => {
  it("sees that processes compare and write in two steps", async () => {
    await expect(takeTurns("careless-process.mjs", `embedded:${folder}`)).rejects.toThrow(
      /both held the lease|was handed to/,
    );
  });

  it("says why a process could not take part", async () => {
    await expect(takeTurns("kit-process.mjs", "unknown:place")).rejects.toThrow("unknown scheme");
  });
});
