/** Where `solehold audit` reads: a trail's folder on this machine, or a server. */
import { existsSync } from "node:fs";
import {
  type AuditEntry,
  type AuditFilter,
  type AuditHead,
  type AuditVerification,
  exportAudit,
  type VerifyOptions,
  verifyAudit,
} from "solehold/internal";
import type { Invocation } from "../command.ts";
import { errorFailure, type Failure, usageFailure } from "../failure.ts";
import { headText } from "./audit-heads.ts";

type Selection = Pick<AuditFilter, "tenant" | "key" | "holder" | "action" | "caller">;

export interface AuditSource {
  /** Every matching entry, oldest first. */
  entries(selection: Selection): AsyncIterable<AuditEntry>;
  /** The newest matching ones, oldest of them first. */
  last(selection: Selection, limit: number): Promise<readonly AuditEntry[]>;
  /** `heads` were kept elsewhere. A server does not say in which file it found what. */
  verify(heads: Pick<VerifyOptions, "anchor" | "startAfter">): Promise<AuditVerification>;
  /** The last entry; null when there is none. */
  head(): Promise<AuditHead | null>;
}

const PAGE = 1_000;

export function auditSource({ values, io }: Invocation): AuditSource {
  const { server, folder } = values;
  if (server !== undefined && folder !== undefined) {
    throw usageFailure("--folder and --server exclude each other: give one of them");
  }
  // Where the leases are on a server, so is their trail.
  const [url = ""] = (io.env.SOLEHOLD_URL ?? "").split(",");
  const address = server ?? (folder === undefined && /^https?:/i.test(url) ? url : null);
  if (address !== null) return serverSource(address, io.env.SOLEHOLD_API_KEY);
  return folderSource(folder ?? `${io.env.SOLEHOLD_DATA_DIR ?? "./.solehold"}/audit`);
}

function folderSource(folder: string): AuditSource {
  if (!existsSync(folder)) {
    throw failed(`there is no audit trail in ${folder}: name one with --folder, or a server with --server`);
  }
  const last: AuditSource["last"] = async (selection, limit) => {
    let newest: AuditEntry[] = [];
    for await (const entry of exportAudit(folder, selection)) {
      newest.push(entry);
      if (newest.length >= limit * 2) newest = newest.slice(-limit);
    }
    return newest.slice(-limit);
  };
  return {
    entries: (selection) => exportAudit(folder, selection),
    last,
    verify: (heads) => verifyAudit(folder, heads),
    head: async () => (await last({}, 1))[0] ?? null,
  };
}

/** As for leases, an API key may stand in the URL, and no message repeats it. */
function serverSource(address: string, fromEnvironment: string | undefined): AuditSource {
  if (!URL.canParse(address)) throw usageFailure("--server must be an http:// or https:// URL");
  const { origin: server, password } = new URL(address);
  const apiKey = password === "" ? fromEnvironment : decodeURIComponent(password);
  const headers: Record<string, string> = apiKey === undefined ? {} : { authorization: `Bearer ${apiKey}` };
  const get = async (path: string): Promise<unknown> => {
    const response = await fetch(new URL(path, server), { headers }).catch((cause: unknown) => {
      throw failed(`${server} cannot be reached: ${String((cause as Error).cause ?? cause)}`);
    });
    const body = (await response.json()) as { readonly detail?: string };
    if (!response.ok) throw failed(`${server} answered ${response.status}: ${body.detail ?? ""}`);
    return body;
  };
  const page = async (
    { key, ...selection }: Selection,
    paging: Readonly<Record<string, string>>,
  ): Promise<AuditPage> => {
    const name = key === undefined ? {} : { name: key };
    const query = new URLSearchParams({ ...selection, ...name, ...paging });
    return (await get(`/v1/audit?${query}`)) as AuditPage;
  };
  return {
    entries: async function* (selection) {
      for (let after: number | null = 0; after !== null; ) {
        const { entries, next }: AuditPage = await page(selection, {
          limit: String(PAGE),
          after: String(after),
        });
        yield* entries;
        after = next;
      }
    },
    last: async (selection, limit) => {
      const paging = { limit: String(Math.min(limit, PAGE)), order: "newest-first" };
      return [...(await page(selection, paging)).entries].reverse();
    },
    verify: async (heads) => {
      const known = Object.entries(heads).map(([name, head]) => [name, headText(head)]);
      const query = new URLSearchParams(Object.fromEntries(known));
      return (await get(`/v1/audit/verify?${query}`)) as AuditVerification;
    },
    head: async () => {
      const { head } = await page({}, { limit: "1" });
      return head.sequence === 0 ? null : head;
    },
  };
}

interface AuditPage {
  readonly entries: readonly AuditEntry[];
  readonly next: number | null;
  readonly head: AuditHead;
}

function failed(message: string): Failure {
  return errorFailure("AUDIT_UNAVAILABLE", message);
}
