/** Where `solehold audit` reads: a trail's folder on this machine, or a server. */
import { existsSync } from "node:fs";
import { type AuditEntry, type AuditVerification, exportAudit, verifyAudit } from "solehold/internal";
import type { Invocation } from "./command.ts";
import { EXIT } from "./exit-codes.ts";
import { Failure, usageFailure } from "./failure.ts";

export interface AuditSelection {
  readonly tenant?: string;
  readonly key?: string;
  readonly holder?: string;
  readonly action?: string;
}

export interface AuditSource {
  /** Every matching entry, oldest first. */
  entries(selection: AuditSelection): AsyncIterable<AuditEntry>;
  /** The newest matching ones, oldest of them first. */
  last(selection: AuditSelection, limit: number): Promise<readonly AuditEntry[]>;
  verify(): Promise<Verification>;
}

/** What both kinds of sources can say. */
export type Verification =
  | { readonly ok: true; readonly entries: number; readonly sequence: number; readonly hash: string }
  | { readonly ok: false; readonly entry: number; readonly problem: string; readonly message: string };

const PAGE = 1_000;

export function auditSource({ values, io }: Invocation): AuditSource {
  const { server, folder } = values;
  if (server !== undefined && folder !== undefined) {
    throw usageFailure("--folder and --server exclude each other: give one of them");
  }
  if (server !== undefined) return serverSource(server, io.env.SOLEHOLD_API_KEY);
  // Where the leases are on a server, so is their trail.
  const [url = ""] = (io.env.SOLEHOLD_URL ?? "").split(",");
  if (folder === undefined && /^https?:/i.test(url)) return serverSource(url, io.env.SOLEHOLD_API_KEY);
  return folderSource(folder ?? `${io.env.SOLEHOLD_DATA_DIR ?? "./.solehold"}/audit`);
}

function folderSource(folder: string): AuditSource {
  if (!existsSync(folder)) {
    const message = `there is no audit trail in ${folder}: name one with --folder, or a server with --server`;
    throw new Failure(message, { exitCode: EXIT.error, code: "AUDIT_UNAVAILABLE" });
  }
  return {
    entries: (selection) => exportAudit(folder, selection),
    last: async (selection, limit) => {
      let newest: AuditEntry[] = [];
      for await (const entry of exportAudit(folder, selection)) {
        newest.push(entry);
        if (newest.length >= limit * 2) newest = newest.slice(-limit);
      }
      return newest.slice(-limit);
    },
    verify: async () => verificationOf(await verifyAudit(folder)),
  };
}

function verificationOf(result: AuditVerification): Verification {
  if (result.ok) return { ok: true, entries: result.entries, ...result.head };
  const { entry, problem, message } = result;
  return { ok: false, entry, problem, message };
}

function serverSource(server: string, apiKey: string | undefined): AuditSource {
  const get = async (path: string): Promise<unknown> => {
    const headers: Record<string, string> = apiKey === undefined ? {} : { authorization: `Bearer ${apiKey}` };
    const response = await fetch(new URL(path, server), { headers }).catch((cause: unknown) => {
      throw failed(`${server} cannot be reached: ${String((cause as Error).cause ?? cause)}`);
    });
    const body = (await response.json()) as { readonly detail?: string };
    if (!response.ok) throw failed(`${server} answered ${response.status}: ${body.detail ?? ""}`);
    return body;
  };
  return {
    entries: (selection) => pages(get, selection),
    last: async (selection, limit) => {
      const query = queryOf(selection, { limit: Math.min(limit, PAGE), order: "newest-first" });
      return [...(await page(get, query))].reverse();
    },
    verify: async () => {
      const result = (await get("/v1/audit/verify")) as AuditVerification;
      return verificationOf(result);
    },
  };
}

type Get = (path: string) => Promise<unknown>;

function queryOf(
  { key, ...rest }: AuditSelection,
  paging: Readonly<Record<string, string | number>>,
): URLSearchParams {
  const query = new URLSearchParams({ ...rest });
  for (const [name, value] of Object.entries(paging)) query.set(name, String(value));
  if (key !== undefined) query.set("name", key);
  return query;
}

async function page(get: Get, query: URLSearchParams): Promise<readonly AuditEntry[]> {
  const { entries } = (await get(`/v1/audit?${query}`)) as { readonly entries: readonly AuditEntry[] };
  return entries;
}

async function* pages(get: Get, selection: AuditSelection): AsyncGenerator<AuditEntry> {
  let after = 0;
  for (;;) {
    const entries = await page(get, queryOf(selection, { limit: PAGE, after }));
    yield* entries;
    if (entries.length < PAGE) return;
    after = entries.at(-1)?.sequence ?? after;
  }
}

function failed(message: string): Failure {
  return new Failure(message, { exitCode: EXIT.error, code: "AUDIT_UNAVAILABLE" });
}
