/** Reads fields of parsed JSON. Nothing that arrives is trusted to have the right shape: each reader throws. */
export type Fields = { readonly [field: string]: unknown };

export function fieldsOf(value: unknown): Fields {
  if (typeof value !== "object" || value === null) throw new Error("an object was expected");
  return value as Fields;
}

export function textIn(fields: Fields, name: string): string {
  const value = fields[name];
  if (typeof value !== "string") throw new Error(`${name} is not a string`);
  return value;
}

export function wholeIn(fields: Fields, name: string): number {
  const value = fields[name];
  if (!Number.isSafeInteger(value)) throw new Error(`${name} is not a whole number`);
  return value as number;
}

export function wholeOrNullIn(fields: Fields, name: string): number | null {
  return fields[name] === null ? null : wholeIn(fields, name);
}
