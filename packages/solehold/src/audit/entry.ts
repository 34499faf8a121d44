/**
 * What the audit trail records: one event per attempt, refusals included, and the entry that an event
 * becomes once it has its place in the chain.
 *
 * The set of fields is closed, and there is none for a lease's token: a secret has no way in.
 */
export type AuditOutcome = "applied" | "refused" | "unknown" | "none";

export type AuditDetail = Readonly<Record<string, string | number | boolean>>;

export interface AuditEvent {
  /** Milliseconds since 1970 on the clock that judged the attempt: the store's or the server's. */
  readonly at: number;
  readonly tenant: string;
  readonly key: string;
  /** Empty when the attempt named no lease. */
  readonly leaseId: string;
  /** grant, renew, use, release, revoke, break, handoff, expire, ... */
  readonly action: string;
  readonly allowed: boolean;
  /** The reason's name and its stable number. */
  readonly reason: string;
  readonly reasonCode: number;
  /** What the lease service calls it: LS_OK, LS_EXPIRED, LS_STALE_USE, ... Absent for what is about no lease. */
  readonly code?: string;
  readonly holder?: string;
  /** Decimal, padded or not. */
  readonly fence?: string;
  readonly purpose?: string;
  /** Who was authenticated: the id of an API key, never the key. The holder is only what the caller said. */
  readonly caller?: string;
  /** The network address that the request came from. */
  readonly address?: string;
  readonly traceId: string;
  /** What became of the write: "none" when the attempt did not lead to one. */
  readonly outcome: AuditOutcome;
  readonly detail?: AuditDetail;
}

/** An event in its place: `hash` covers everything else, and `previousHash` everything before. */
export interface AuditEntry extends AuditEvent {
  /** 1, 2, 3, ... without gaps. */
  readonly sequence: number;
  readonly previousHash: string;
  readonly hash: string;
}

/** The end of a chain. A copy kept elsewhere proves that nothing before it has changed. */
export interface AuditHead {
  /** 0 while the trail is empty. */
  readonly sequence: number;
  readonly hash: string;
}

/** Characters (UTF-16 units). Generous for what the service accepts, small enough to bound a line. */
export const TEXT_LIMITS = {
  tenant: 256,
  key: 1024,
  leaseId: 384,
  action: 64,
  reason: 128,
  code: 64,
  holder: 256,
  purpose: 256,
  caller: 256,
  address: 64,
  traceId: 128,
} as const;

export const DETAIL_LIMITS = { keys: 24, keyCharacters: 64, valueCharacters: 1024 } as const;

/** No entry within the limits above is longer, even if every character needs an escape of six bytes. */
export const MAX_LINE_BYTES = 256 * 1024;

export const AUDIT_OUTCOMES: readonly AuditOutcome[] = ["applied", "refused", "unknown", "none"];
