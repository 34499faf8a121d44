/** Whether a server's trail on disk proves itself and has every grant that a client got. */
import { exportAudit, verifyAudit } from "solehold/internal";
import { expect } from "vitest";

export interface HeardGrant {
  readonly name: string;
  readonly fence: bigint;
  readonly holder: string;
}

export async function expectAudited(dataDir: string, grants: readonly HeardGrant[]): Promise<void> {
  const folder = `${dataDir}/audit`;
  expect(await verifyAudit(folder)).toMatchObject({ ok: true });
  const audited = new Set<string>();
  for await (const { action, allowed, key, fence, holder } of exportAudit(folder)) {
    if (action === "grant" && allowed) audited.add(`${key} ${BigInt(fence ?? 0)} ${holder}`);
  }
  const missing = grants.filter(({ name, fence, holder }) => !audited.has(`${name} ${fence} ${holder}`));
  expect(missing).toEqual([]);
}
