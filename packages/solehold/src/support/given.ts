type Given<Fields> = { readonly [name in keyof Fields]?: Exclude<Fields[name], null | undefined> };

/** Only the fields that have a value, for options in which what is not given must be absent. Not for hot paths. */
export function given<Fields extends object>(fields: Fields): Given<Fields> {
  const entries = Object.entries(fields).filter(([, field]) => field !== null && field !== undefined);
  return Object.fromEntries(entries) as Given<Fields>;
}
