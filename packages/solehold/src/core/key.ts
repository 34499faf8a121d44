/**
 * What is leased: a name inside a tenant. Tenants have a narrow alphabet without a slash, so
 * `tenant/name` is unambiguous. Names that begin with `$` belong to Solehold itself.
 */
import { nameProblem } from "./identifiers.ts";

export interface LeaseKey {
  readonly tenant: string;
  readonly name: string;
}

export const MAX_TENANT_LENGTH = 64;
export const MAX_NAME_LENGTH = 256;
export const DEFAULT_TENANT = "default";

const TENANT = /^[A-Za-z0-9][A-Za-z0-9._-]{0,63}$/;

export function tenantProblem(value: unknown): string | null {
  if (typeof value === "string" && TENANT.test(value)) return null;
  return `must have 1 to ${MAX_TENANT_LENGTH} letters, digits, '.', '_' or '-' and begin with a letter or digit`;
}

export function keyNameProblem(value: unknown): string | null {
  const problem = nameProblem(value, MAX_NAME_LENGTH);
  if (problem !== null) return problem;
  return (value as string).startsWith("$") ? "must not begin with '$': those names are reserved" : null;
}

/** One string per key, for maps and messages. */
export function keyId(key: LeaseKey): string {
  return `${key.tenant}/${key.name}`;
}

export function isReservedName(name: string): boolean {
  return name.startsWith("$");
}
