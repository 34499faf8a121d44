/**
 * A lone write as it is sent: the statement that does the least for it, its values, and the version that it brings.
 *
 * The statements of batches would do, but cost a lone write a fifth of its speed.
 */
import type { LeaseRecord } from "../../core/index.ts";
import type { ConditionalWrite } from "../../store/index.ts";
import type { Values } from "./driver.ts";
import { isPlainEnd, toldEnd } from "./plain-ends.ts";
import type { Statement, Statements } from "./statements.ts";
import { knownVersion } from "./versions.ts";
import { operationOf, valuesOf, valuesOfEnd } from "./writes.ts";

export interface LoneWrite {
  readonly statement: Statement;
  readonly values: Values;
  readonly version: string;
  /** How the lease ends, to be told to those who know the row before; null where it does not, or not plainly. */
  readonly end: { readonly before: string; readonly next: LeaseRecord } | null;
}

/**
 * "unheard": done only if nobody listens, and answered without the time. There is no such delete. "early": told with it,
 * by one more value. There is no such creation.
 */
export type Form = "told" | "unheard" | "early";

/** Null for a check, which writes nothing. Throws on a record that cannot be written. */
export function loneWriteOf(
  write: ConditionalWrite,
  form: Form,
  version: string,
  statements: Statements,
): LoneWrite | null {
  const { next, replaces = null } = write;
  // The version of a record that the database showed is one that it understands.
  const isUnderstood = write.expected === null || replaces !== null;
  const expected = isUnderstood ? write.expected : knownVersion(write.expected);
  if (expected !== null && next !== null && replaces !== null && isPlainEnd(replaces, next)) {
    const values = valuesOfEnd(write, next, expected, version);
    return { statement: endIn(form, statements), values, version, end: { before: expected, next } };
  }
  const statement = usualStatement(write, form, statements);
  if (statement === null) return null;
  return { statement, values: valuesOf(write, expected, version), version, end: null };
}

/** An end is told with what follows it. */
export function endToTell({ version, end }: LoneWrite, id: string): string | null {
  return end === null ? null : toldEnd(end.next, version, end.before, id);
}

function endIn(form: Form, { endOne, endUnheard, endEarly }: Statements): Statement {
  if (form === "early") return endEarly;
  return form === "told" ? endOne : endUnheard;
}

function usualStatement(write: ConditionalWrite, form: Form, statements: Statements): Statement | null {
  switch (operationOf(write)) {
    case "insert":
      return form === "unheard" ? statements.insertUnheard : statements.insertOne;
    case "update":
      if (form === "early") return statements.updateEarly;
      return form === "told" ? statements.updateOne : statements.updateUnheard;
    case "delete":
      return form === "early" ? statements.deleteEarly : statements.deleteOne;
    case "check":
      return null;
  }
}
