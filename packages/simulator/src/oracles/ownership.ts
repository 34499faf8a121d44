/**
 * RenewalRequiresOwnership, and release touches only its own grant: the process that prolongs, releases or hands
 * on a grant is the one that was granted it, or one that adopted it. Where a server writes for its clients,
 * such a process must have asked it to, with the secret of this very grant; only a grant that its owner never
 * prolonged may be released unasked, because the client may be gone before the answer reached it.
 */
import type { RemoteRequest } from "solehold/internal";
import { askedKey, hashToken, keyId, type LeaseRecord, recordFence } from "solehold/internal";
import type { AppliedWrite } from "../store/engine.ts";
import { isGrant, type Oracle, type OracleContext } from "./oracle.ts";

export interface OwnershipOracle extends Oracle {
  /** A process asked a server for something, or gave up on it. */
  asked(process: string, request: RemoteRequest, event: "sent" | "given up"): void;
  /** Another process got the grant's secret, by transfer. */
  adopted(grantId: string, process: string): void;
}

export function ownership(context: OracleContext): OwnershipOracle {
  const name = "ownership";
  const owners = new Map<string, Set<string>>();
  const presented = new PresentedTokens();
  return {
    name,
    asked: (process, request, event) => presented.add(process, request, event),
    adopted: (grantId, process) => void owners.get(grantId)?.add(process),
    // A process that repeats a request by its key, after a restart say, gets the secret of its grant again.
    onCallEnd: ({ request, outcome, process }) => {
      if (request.op !== "acquire" || request.idempotencyKey === undefined) return;
      if (outcome?.kind !== "applied" || !outcome.decision.replayed) return;
      const { lease } = outcome.decision;
      owners.get(`${keyId(lease.key)}@${recordFence(lease)}`)?.add(process);
    },
    onWrite: (write) => {
      const { before, after, by } = write;
      if (after === null || after.key.name.startsWith("$")) return;
      const grantId = `${keyId(after.key)}@${recordFence(after)}`;
      // Servers also hold leases of their own, in a tenant of their own.
      const throughServer =
        context.config.entry === "server" && context.keys.some(({ tenant }) => tenant === after.key.tenant);
      if (isGrant(write)) {
        owners.set(grantId, throughServer ? presented.by(after, ["acquire"]) : new Set([by]));
        return;
      }
      if (before === null || !isOwnersAct(write)) return;
      const owner = owners.get(grantId);
      if (owner === undefined) return;
      if (throughServer) {
        if (after.state === "released" && before.renewals === 0) return;
        const askers = presented.by(before, after.state === "released" ? ENDING : PROLONGING);
        if (![...askers].some((process) => owner.has(process)))
          context.fail(
            name,
            `${by} changed ${grantId}, and none of its owners (${[...owner].join(", ")}) had asked for that, only ${[...askers].join(", ") || "nobody"}`,
          );
      } else if (!owner.has(by))
        context.fail(name, `${by} changed ${grantId}, which belongs to ${[...owner].join(", ")}`);
    },
  };
}

/** Anybody may revoke, break or repair; only the owner prolongs and releases. */
function isOwnersAct({ before, after }: AppliedWrite): boolean {
  if (before === null || after === null || after.note === "repaired") return false;
  return after.renewals > before.renewals || (after.state === "released" && before.state !== "released");
}

/** To repeat an acquire with the secret of a grant prolongs that grant. */
const PROLONGING = ["renew", "acquire"];

/** What ends a grant: its owner's wish, or a server's when the owner gave up waiting for it. */
const ENDING = ["release", "handoff", "given up"];

/** Who sent which command with which secret. */
class PresentedTokens {
  readonly #processes = new Map<string, Set<string>>();
  readonly #hashes = new Map<string, string>();

  add(process: string, { path, body }: RemoteRequest, event: "sent" | "given up"): void {
    const { tenant, name, token } = (body ?? {}) as { tenant?: string; name?: string; token?: string };
    if (tenant === undefined || name === undefined || token === undefined) return;
    const hash = this.#hashes.get(token) ?? hashToken(token);
    this.#hashes.set(token, hash);
    const op = event === "sent" ? (path.split("/").at(-1) ?? "") : event;
    const id = `${op} ${keyId(askedKey({ tenant, name }))} ${hash}`;
    this.#processes.set(id, (this.#processes.get(id) ?? new Set()).add(process));
  }

  by({ key, tokenHash }: LeaseRecord, ops: readonly string[]): Set<string> {
    const asked = keyId(askedKey(key));
    return new Set(ops.flatMap((op) => [...(this.#processes.get(`${op} ${asked} ${tokenHash}`) ?? [])]));
  }
}
