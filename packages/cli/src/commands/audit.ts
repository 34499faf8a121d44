/** `solehold audit`: what was decided and why, and the proof that nobody changed it since. */
import type { AuditSource } from "../audit-source.ts";
import type { Command, Invocation } from "../command.ts";
import { COMMON_OPTIONS } from "../options.ts";

const VERBS = ["ls", "export", "verify"] as const;
const DEFAULT_LIMIT = 20;

export const command: Command = {
  name: "audit",
  summary: "List, export and verify the audit trail of a server",
  usage: "ls | export | verify [options]",
  positionals: [{ name: "ls|export|verify", presence: "required", choices: VERBS }],
  trailing: "none",
  options: {
    folder: {
      type: "value",
      placeholder: "FOLDER",
      help: "the trail's folder (default: audit in SOLEHOLD_DATA_DIR, or ./.solehold/audit)",
    },
    server: {
      type: "value",
      placeholder: "URL",
      help: "a running server, in place of --folder (env SOLEHOLD_URL, if it names one)",
    },
    tenant: { type: "value", placeholder: "NAME", help: "only this tenant" },
    key: { type: "value", placeholder: "KEY", help: "only this lease" },
    holder: { type: "value", placeholder: "NAME", help: "only this holder" },
    action: {
      type: "value",
      placeholder: "NAME",
      help: "only this: grant, renew, release, use, expire, ...",
    },
    limit: { type: "value", placeholder: "NUMBER", help: `ls: the last so many (default ${DEFAULT_LIMIT})` },
    ...COMMON_OPTIONS,
  },
  notes: [
    "verify reads the whole trail and finds every entry that was changed, dropped, inserted or moved. It needs no running server. Exit code 1 when something is not proven.",
    "export writes JSON lines, oldest first. With --server, an API key comes from SOLEHOLD_API_KEY.",
  ],
  examples: [
    { line: "solehold audit ls --key db/main", what: "what happened to one lease" },
    { line: "solehold audit verify", what: "prove the trail on this machine" },
    { line: "solehold audit export --server https://leases.example | gzip > audit.gz", what: "keep a copy" },
  ],
  run,
};

async function run(invocation: Invocation): Promise<number> {
  const { auditSource } = await import("../audit-source.ts");
  const { usageFailure } = await import("../failure.ts");
  const source = auditSource(invocation);
  const [verb] = invocation.positionals;
  if (verb === "ls") return await list(invocation, source);
  if (verb === "export") return await exportAll(invocation, source);
  if (verb === "verify") return await verify(invocation, source);
  throw usageFailure(`audit takes ls, export or verify, got ${JSON.stringify(verb)}`);
}

function selectionOf({ values: { tenant, key, holder, action } }: Invocation): {
  readonly tenant?: string;
  readonly key?: string;
  readonly holder?: string;
  readonly action?: string;
} {
  return {
    ...(tenant === undefined ? {} : { tenant }),
    ...(key === undefined ? {} : { key }),
    ...(holder === undefined ? {} : { holder }),
    ...(action === undefined ? {} : { action }),
  };
}

async function list(invocation: Invocation, source: AuditSource): Promise<number> {
  const { limitOption } = await import("../values.ts");
  const { printAnswer } = await import("../text/print.ts");
  const { tableLines } = await import("../text/table.ts");
  const limit = limitOption(invocation) ?? DEFAULT_LIMIT;
  const entries = await source.last(selectionOf(invocation), limit);
  const titles = ["SEQ", "TIME", "TENANT", "KEY", "ACTION", "HOLDER", "FENCE", "RESULT"];
  const columns = titles.map((title) => ({ title, align: "left" as const }));
  const rows = entries.map((entry) => [
    String(entry.sequence),
    new Date(entry.at).toISOString(),
    entry.tenant,
    entry.key,
    entry.action,
    entry.holder ?? "",
    entry.fence === undefined ? "" : String(BigInt(entry.fence)),
    entry.allowed ? "allowed" : entry.reason,
  ]);
  printAnswer(invocation, {
    document: () => ({ entries: entries.map((entry) => ({ ...entry, detail: { ...entry.detail } })) }),
    lines: () => (entries.length === 0 ? ["no entries"] : tableLines(columns, rows, null, (cell) => cell)),
  });
  return 0;
}

async function exportAll(invocation: Invocation, source: AuditSource): Promise<number> {
  for await (const entry of source.entries(selectionOf(invocation))) {
    invocation.io.stdout.write(`${JSON.stringify(entry)}\n`);
  }
  return 0;
}

async function verify(invocation: Invocation, source: AuditSource): Promise<number> {
  const { EXIT } = await import("../exit-codes.ts");
  const { printAnswer } = await import("../text/print.ts");
  const result = await source.verify();
  printAnswer(invocation, {
    document: () => ({ ...result }),
    lines: () =>
      result.ok
        ? [`${result.entries} entries are proven; the head is ${result.sequence} ${result.hash}`]
        : [`NOT PROVEN from entry ${result.entry} on (${result.problem}): ${result.message}`],
  });
  return result.ok ? EXIT.ok : EXIT.error;
}
