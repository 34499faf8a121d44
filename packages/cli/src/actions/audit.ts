/** What was decided and why, and the proof that nobody changed it since. */
import { given } from "solehold/internal";
import type { Invocation } from "../command.ts";
import { EXIT, errorFailure } from "../failure.ts";
import { printAnswer } from "../format/answer.ts";
import { plainTable } from "../format/table.ts";
import { wholeOption } from "../parse/option-values.ts";
import { headOption, headText, signedHead } from "./audit-heads.ts";
import { type AuditSource, auditSource } from "./audit-source.ts";

const DEFAULT_LIMIT = 20;

export async function audit(invocation: Invocation): Promise<number> {
  const source = auditSource(invocation);
  const [verb] = invocation.positionals;
  if (verb === "ls") return await list(invocation, source);
  if (verb === "verify") return await verify(invocation, source);
  if (verb === "head") return await head(invocation, source);
  for await (const entry of source.entries(selectionOf(invocation))) {
    invocation.io.stdout.write(`${JSON.stringify(entry)}\n`);
  }
  return EXIT.ok;
}

function selectionOf({ values: { tenant, key, holder, action, caller } }: Invocation) {
  return given({ tenant, key, holder, action, caller });
}

async function list(invocation: Invocation, source: AuditSource): Promise<number> {
  const entries = await source.last(
    selectionOf(invocation),
    wholeOption(invocation, "limit") ?? DEFAULT_LIMIT,
  );
  const rows = entries.map((entry) => [
    String(entry.sequence),
    new Date(entry.at).toISOString(),
    entry.tenant,
    entry.key,
    entry.action,
    entry.holder ?? "",
    entry.caller ?? "",
    entry.fence === undefined ? "" : String(BigInt(entry.fence)),
    entry.allowed ? "allowed" : entry.reason,
  ]);
  const titles = ["SEQ", "TIME", "TENANT", "KEY", "ACTION", "HOLDER", "CALLER", "FENCE", "RESULT"];
  printAnswer(invocation, {
    document: () => ({ entries: entries.map((entry) => ({ ...entry, detail: { ...entry.detail } })) }),
    lines: () => (rows.length === 0 ? ["no entries"] : plainTable(titles, rows)),
  });
  return EXIT.ok;
}

async function head(invocation: Invocation, source: AuditSource): Promise<number> {
  const last = await source.head();
  if (last === null) throw errorFailure("AUDIT_EMPTY", "the audit trail has no entries yet");
  const { sequence, hash } = last;
  const keyFile = invocation.values["sign-key"];
  const text = keyFile === undefined ? headText(last) : await signedHead(last, keyFile);
  printAnswer(invocation, {
    document: () => ({ sequence, hash, head: text }),
    lines: () => [text],
  });
  return EXIT.ok;
}

async function verify(invocation: Invocation, source: AuditSource): Promise<number> {
  const anchor = headOption(invocation, "anchor");
  const startAfter = headOption(invocation, "start-after");
  const result = await source.verify(given({ anchor, startAfter }));
  if (result.ok) {
    const { ok, entries, head } = result;
    const proven = `${entries} entries are proven; the head is ${headText(head)}`;
    printAnswer(invocation, { document: () => ({ ok, entries, ...head }), lines: () => [proven] });
    return EXIT.ok;
  }
  const { ok, entry, problem, message } = result;
  printAnswer(invocation, {
    document: () => ({ ok, entry, problem, message }),
    lines: () => [`NOT PROVEN from entry ${entry} on (${problem}): ${message}`],
  });
  return EXIT.error;
}
