/** Grants many leases on a server quickly, over one stream connection. */
import { openExecutor } from "solehold/internal";

const TOGETHER = 2_000;

export const manyName = (index: number): string => `job/${String(index).padStart(6, "0")}`;

export async function grantMany(url: string, count: number): Promise<void> {
  const executor = await openExecutor(url);
  try {
    for (let first = 0; first < count; first += TOGETHER) {
      const granted = Array.from({ length: Math.min(TOGETHER, count - first) }, async (_, offset) => {
        const index = first + offset;
        const key = { tenant: "default", name: manyName(index) };
        const request = { op: "acquire" as const, key, holder: `worker-${index % 50}`, ttlMs: 3_600_000 };
        const { kind } = await executor.execute(request, {});
        if (kind !== "applied") throw new Error(`${key.name} was not granted: ${kind}`);
      });
      await Promise.all(granted);
    }
  } finally {
    await executor.close();
  }
}
