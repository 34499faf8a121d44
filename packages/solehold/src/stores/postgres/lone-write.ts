/**
 * A lone write as it is sent: the statement that does the least for it, its values, and the version that it brings.
 *
 * The statements of batches would do, but cost a lone write a fifth of its speed.
 */
import type { LeaseRecord } from "../../core/index.ts";
import type { Values } from "./driver.ts";
import { isPlainEnd, type KnownRows, toldEnd } from "./plain-ends.ts";
import type { Statement, Statements } from "./statements.ts";
import { knownVersion } from "./versions.ts";
import { operationOf, type Place, valuesOf, valuesOfEnd } from "./writes.ts";

export interface LoneWrite {
  readonly statement: Statement;
  readonly values: Values;
  readonly version: string;
  /** How the lease ends, to be told to those who know the row before; null where it does not, or not plainly. */
  readonly end: { readonly before: string; readonly next: LeaseRecord } | null;
}

/** "unheard": done only if nobody listens, and answered without the time. There is no such delete. */
export type Form = "told" | "unheard";

/** Null for a check, which writes nothing. Throws on a record that cannot be written. */
export function loneWriteOf(
  { id, write }: Place,
  form: Form,
  version: string,
  { statements, known }: { readonly statements: Statements; readonly known: KnownRows },
): LoneWrite | null {
  const { expected, next } = write;
  const end = next !== null && expected !== null ? plainEndOf(id, expected, next, known) : null;
  if (end !== null) {
    const statement = form === "told" ? statements.endOne : statements.endUnheard;
    return { statement, values: valuesOfEnd(write, end.next, end.before, version), version, end };
  }
  const statement = usualStatement(write, form, statements);
  if (statement === null) return null;
  // A version that the database showed is one that it understands.
  const asked =
    expected === null || known.recordAt(id, expected) !== null ? expected : knownVersion(expected);
  return { statement, values: valuesOf(write, asked, version), version, end };
}

/** An end is told with what follows it. */
export function endToTell({ version, end }: LoneWrite, id: string): string | null {
  return end === null ? null : toldEnd({ ...end.next, version }, end.before, id);
}

function plainEndOf(id: string, expected: string, next: LeaseRecord, known: KnownRows): LoneWrite["end"] {
  if (next.state === "held") return null;
  const before = known.recordAt(id, expected);
  return before !== null && isPlainEnd(before, next) ? { before: expected, next } : null;
}

function usualStatement(write: Place["write"], form: Form, statements: Statements): Statement | null {
  switch (operationOf(write)) {
    case "insert":
      return form === "told" ? statements.insertOne : statements.insertUnheard;
    case "update":
      return form === "told" ? statements.updateOne : statements.updateUnheard;
    case "delete":
      return statements.deleteOne;
    case "check":
      return null;
  }
}
