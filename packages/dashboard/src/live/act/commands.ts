/** What an operator or a holder can do to a lease from this page, and what each does, in words. Pure. */
import type { Lease } from "../data/api.ts";

export type CommandName = "revoke" | "break" | "release" | "handoff" | "repair";

export interface CommandSpec {
  readonly name: CommandName;
  readonly label: string;
  readonly isDangerous: boolean;
  /** What will happen. */
  readonly effect: (name: string, lease: Lease | null) => string;
  /** Fields that it asks for. */
  readonly fields: readonly ("token" | "period" | "successor")[];
}

const holderOf = (lease: Lease | null): string => lease?.holder ?? "its holder";

export const COMMANDS: readonly CommandSpec[] = [
  {
    name: "break",
    label: "Break…",
    isDangerous: false,
    effect: (_name, lease) =>
      `${holderOf(lease)} can go on until the period is over, and no renewal reaches past that. Then the next one may take it.`,
    fields: ["period"],
  },
  {
    name: "revoke",
    label: "Revoke…",
    isDangerous: true,
    effect: (_name, lease) =>
      `The lease ends now. ${holderOf(lease)} learns it at its next renewal or use; nobody else gets it before ${holderOf(lease)} can no longer believe that it holds it. This cannot be taken back.`,
    fields: [],
  },
  {
    name: "release",
    label: "Release…",
    isDangerous: false,
    effect: (_name, lease) =>
      `The grant of ${holderOf(lease)} ends now and the next waiter gets it at once. Only its holder can do this: it needs the token of the grant.`,
    fields: ["token"],
  },
  {
    name: "handoff",
    label: "Hand over…",
    isDangerous: false,
    effect: (_name, lease) =>
      `The grant of ${holderOf(lease)} ends, and until the deadline only the successor may take it. Only its holder can do this: it needs the token of the grant.`,
    fields: ["token", "successor", "period"],
  },
];

export const REPAIR: CommandSpec = {
  name: "repair",
  label: "Repair…",
  isDangerous: true,
  effect: (name) =>
    `The damaged record of ${name} is replaced, so that it can be acquired again. What it said is lost: make sure first that its last holder has stopped.`,
  fields: [],
};

export interface CommandInput {
  readonly token: string;
  readonly seconds: number;
  readonly successor: string;
  /** The file that `solehold approve` makes, as text; empty for none. */
  readonly approval: string;
}

/** Bound to the grant that is seen: a later one is not touched by mistake. Throws where the approval file is none. */
export function bodyOf(
  command: CommandName,
  key: { readonly tenant: string; readonly name: string },
  lease: Lease | null,
  input: CommandInput,
): object {
  const generation = lease === null ? {} : { generation: lease.generation };
  const owner = { ...key, holder: lease?.holder ?? "", token: input.token, ...generation };
  switch (command) {
    case "revoke":
      return { ...key, ...generation, ...approvalIn(input.approval) };
    case "break":
      return { ...key, ...generation, periodMs: input.seconds * 1_000, ...approvalIn(input.approval) };
    case "release":
      return owner;
    case "handoff":
      return { ...owner, successor: input.successor, withinMs: input.seconds * 1_000 };
    default:
      return key;
  }
}

function approvalIn(text: string): object {
  if (text.trim() === "") return {};
  let file: { request?: { nonce?: string }; approvals?: unknown };
  try {
    file = JSON.parse(text) as typeof file;
  } catch {
    throw new Error("approvals must be the content of the file that 'solehold approve' made");
  }
  const { request, approvals } = file;
  if (typeof request?.nonce !== "string" || !Array.isArray(approvals))
    throw new Error("approvals must have 'request' with its nonce, and 'approvals'");
  return { approval: { nonce: request.nonce, approvals } };
}
