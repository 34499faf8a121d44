/**
 * Throws where what must always be true is not. Only for mistakes of this code, never for what callers, stores or disks do:
 * a loud end is better than an answer that nobody can trust.
 */
export function invariant(holds: boolean, what: string): asserts holds {
  if (!holds) throw new Error(`an invariant is broken: ${what}`);
}
