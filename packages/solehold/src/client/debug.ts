/** `SOLEHOLD_DEBUG=1`: what happens to leases, a line each, on standard error. Never a token. */
import { type LeaseEventName, type LeaseEvents, subscribe } from "./diagnostics.ts";
import type { Lease } from "./lease.ts";

let isOn = false;

/** Once for the process, however often it is asked for. */
export function debugIfAsked(): void {
  const asked = process.env.SOLEHOLD_DEBUG ?? "";
  if (isOn || asked === "" || asked === "0") return;
  isOn = true;
  const print = (line: string): void => void process.stderr.write(`solehold: ${line}\n`);
  for (const name of Object.keys(LINES) as LeaseEventName[]) printed(name, print);
}

function printed<Name extends LeaseEventName>(name: Name, print: (line: string) => void): void {
  subscribe(name, (event) => print(LINES[name](event)));
}

const LINES: { readonly [name in LeaseEventName]: (event: LeaseEvents[name]) => string } = {
  attempt: ({ key, holder, waitMs }) => `${key.name}: ${holder} asks, and waits ${ms(waitMs)} at most`,
  waiting: ({ key, holder, for: { position, holder: heldBy } }) =>
    `${key.name}: ${holder} waits${heldBy === null ? "" : ` for ${heldBy}`}, with ${position} ahead of it`,
  granted: ({ lease, durationMs }) => `${about(lease)} granted to ${lease.holder} after ${ms(durationMs)}`,
  refused: ({ key, holder, durationMs, error }) =>
    `${key.name}: ${holder} has no lease after ${ms(durationMs)}: ${error instanceof Error ? error.message : String(error)}`,
  renewed: ({ lease, durationMs, remainingMs }) =>
    `${about(lease)} renewed in ${ms(durationMs)}, for ${ms(remainingMs)}`,
  jeopardy: ({ lease, remainingMs }) => `${about(lease)} in jeopardy, for ${ms(remainingMs)} at most`,
  lost: ({ lease, reason, heldMs }) => `${about(lease)} lost after ${ms(heldMs)}: ${reason}`,
  released: ({ lease, heldMs, durationMs, result }) =>
    `${about(lease)} ${result.released ? "released" : `not released (${result.reason})`} in ${ms(durationMs)}, held for ${ms(heldMs)}`,
};

function about({ key, fence }: Lease): string {
  return `${key.name}: fence ${fence}`;
}

function ms(duration: number): string {
  return Number.isFinite(duration) ? `${Math.round(duration)} ms` : "for ever";
}
