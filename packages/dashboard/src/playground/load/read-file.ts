/** A file that somebody dropped: a trace of `solehold sim --trace`, or an audit export. */
import { parseTrace, type Trace } from "@solehold/simulator/trace";
import { auditTrace } from "./audit.ts";

const LARGEST_BYTES = 64 * 2 ** 20;

export async function readFile(file: File): Promise<Trace> {
  if (file.size > LARGEST_BYTES)
    throw new RangeError(
      `${file.name} has ${file.size} bytes, more than ${LARGEST_BYTES}: export one key with --key`,
    );
  return traceIn(await file.text(), file.name);
}

export function traceIn(text: string, name: string): Trace {
  // A trace is one JSON document that says what it is; an export has an entry in each line.
  if (!/^\s*\{[^\n]{0,200}"format"/.test(text)) return { ...auditTrace(text, name) };
  try {
    return parseTrace(text);
  } catch (error) {
    throw new RangeError(`${name}: ${error instanceof Error ? error.message : String(error)}`);
  }
}
