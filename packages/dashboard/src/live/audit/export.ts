/** The export of the audit: every entry that matches, page by page, as lines of JSON, the oldest first. */
import type { AuditEntry } from "solehold/browser";
import { get, type Query } from "../data/api.ts";

const PAGE = 1_000;
/** A browser holds it all until it is saved. `solehold audit export` has no bound. */
export const MOST_EXPORTED = 200_000;

export interface Exported {
  readonly file: Blob;
  readonly entries: number;
  /** Whether there are more than may be exported here. */
  readonly isCut: boolean;
}

export async function exportAudit(
  filter: Query,
  onProgress: (entries: number) => void,
  most = MOST_EXPORTED,
): Promise<Exported> {
  const pages: Blob[] = [];
  let entries = 0;
  let after: number | null = 0;
  while (after !== null && entries < most) {
    const limit = Math.min(PAGE, most - entries);
    const page: { readonly entries: readonly AuditEntry[]; readonly next: number | null } = await get(
      "/v1/audit",
      { ...filter, after, limit },
    );
    // A blob is the browser's to keep, on the disk if it likes: only one page is ever on the heap.
    pages.push(new Blob(page.entries.map((entry) => `${JSON.stringify(entry)}\n`)));
    entries += page.entries.length;
    after = page.next;
    onProgress(entries);
  }
  return { file: new Blob(pages, { type: "application/jsonl" }), entries, isCut: after !== null };
}

export function save(file: Blob, name: string): void {
  const link = document.createElement("a");
  link.href = URL.createObjectURL(file);
  link.download = name;
  link.click();
  URL.revokeObjectURL(link.href);
}
