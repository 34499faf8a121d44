/**
 * The numbers of a JSON object as they are written. JSON.parse turns them into doubles, which lose integers
 * above 2^53; a term or a generation must never go through one.
 */

const TOKEN = /"(?:[^"\\]|\\.)*"|[{}[\],:]|[^\s{}[\],:"]+/g;

/** The number literals among the fields of the outermost object. `text` must be valid JSON. */
export function numberLexemes(text: string): ReadonlyMap<string, string> {
  const numbers = new Map<string, string>();
  let depth = 0;
  let string = "";
  let field: string | null = null;
  for (const [token] of text.matchAll(TOKEN)) {
    if (token === ":") {
      field = depth === 1 ? (JSON.parse(string) as string) : null;
      continue;
    }
    if (token.startsWith('"')) string = token;
    if (field !== null) note(numbers, field, token);
    field = null;
    if (token === "{" || token === "[") depth += 1;
    else if (token === "}" || token === "]") depth -= 1;
  }
  return numbers;
}

/** As in JSON.parse, the last of several fields with one name counts. */
function note(numbers: Map<string, string>, field: string, token: string): void {
  if (/^[-\d]/.test(token)) numbers.set(field, token);
  else numbers.delete(field);
}
