/**
 * Modules of Node that the library can do without: it also runs where there is no Node, as in a browser's worker. They are
 * undefined there.
 */
interface Builtins {
  readonly "node:diagnostics_channel": typeof import("node:diagnostics_channel");
  readonly "node:events": typeof import("node:events");
}

export function builtin<Name extends keyof Builtins>(name: Name): Builtins[Name] | undefined {
  const found: unknown = globalThis.process?.getBuiltinModule?.(name);
  return found as Builtins[Name] | undefined;
}
