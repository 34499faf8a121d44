/**
 * Values in the words of a seed document. In TypeScript `lease_id` is `leaseId`; as JSON it is `lease_id` again, so that
 * what is printed, logged or kept has the document's own spelling.
 */

class SeedValue {
  toJSON(): object {
    return Object.fromEntries(
      Object.entries(this)
        .filter(([name]) => name !== "token")
        .map(([name, value]) => [snakeCase(name), typeof value === "bigint" ? value.toString() : value]),
    );
  }
}

/** The same fields, frozen, with a `toJSON`. A field called `token` is a secret, and never printed. */
export function seedValue<Value extends object>(value: Value): Readonly<Value> {
  return Object.freeze(Object.assign(new SeedValue(), value));
}

export function snakeCase(name: string): string {
  return name.replace(/[A-Z]/g, (letter) => `_${letter.toLowerCase()}`);
}
