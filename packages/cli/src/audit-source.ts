/** Where `solehold audit` reads: a trail's folder on this machine, or a server. */
import { type AuditEntry, type AuditVerification, exportAudit, verifyAudit } from "solehold/service";
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
  return folderSource(folder ?? `${io.env.SOLEHOLD_DATA_DIR ?? "./.solehold"}/audit`);
}

function folderSource(folder: string): AuditSource {
  return {
    entries: (selection) => exportAudit(folder, selection),
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
    verify: async () => {
      const result = (await get("/v1/audit/verify")) as AuditVerification;
      return verificationOf(result);
    },
  };
}

async function* pages(
  get: (path: string) => Promise<unknown>,
  { key, ...rest }: AuditSelection,
): AsyncGenerator<AuditEntry> {
  let after = 0;
  for (;;) {
    const query = new URLSearchParams({ limit: String(PAGE), after: String(after), ...rest });
    if (key !== undefined) query.set("name", key);
    const { entries } = (await get(`/v1/audit?${query}`)) as { readonly entries: readonly AuditEntry[] };
    yield* entries;
    if (entries.length < PAGE) return;
    after = entries.at(-1)?.sequence ?? after;
  }
}

function failed(message: string): Failure {
  return new Failure(message, { exitCode: EXIT.error, code: "AUDIT_UNAVAILABLE" });
}
