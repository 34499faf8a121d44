/** What went wrong, as a StoreError of one line that says what to do. Messages never carry a password. */
import { type FailedOutcome, StoreError, type StoreErrorKind } from "../../store/index.ts";

/**
 * What may help, within the time of the call: "another-member" to leave this one, "new-token" to log in again,
 * "wait" to ask again a little later.
 */
export type Remedy = "none" | "another-member" | "new-token" | "wait";

interface Diagnosis {
  readonly kind: StoreErrorKind;
  readonly remedy: Remedy;
  readonly advice: string;
}

type Table = readonly (readonly [RegExp, Diagnosis])[];

/** The server says that it did not do it, before or while it would have been applied. */
const REFUSALS: Table = [
  [
    /etcdserver: no leader|not supported for learner/,
    {
      kind: "unreachable",
      remedy: "another-member",
      advice: "it has no leader: start enough members for a majority",
    },
  ],
  [
    /authentication failed|invalid user ID or password/,
    { kind: "auth", remedy: "none", advice: "the user name or password is wrong: correct it in the URL" },
  ],
  [
    /user name is empty/,
    {
      kind: "auth",
      remedy: "none",
      advice: "it wants a user: put it into the URL, etcd://user:password@host",
    },
  ],
  [
    /invalid auth token|revision of auth store is old/,
    { kind: "auth", remedy: "new-token", advice: "the login is no longer valid" },
  ],
  [
    /permission denied/,
    {
      kind: "auth",
      remedy: "none",
      advice: "its user may not do this: grant its role readwrite on the prefix, see docs/stores/etcd.md",
    },
  ],
  [
    /database space exceeded/,
    {
      kind: "full",
      remedy: "none",
      advice:
        "its database is full: compact, defragment and disarm the alarm, or raise --quota-backend-bytes",
    },
  ],
  [/watch canceled/, { kind: "unreachable", remedy: "wait", advice: "it ended a watch" }],
  [/too many requests/, { kind: "unreachable", remedy: "wait", advice: "it is overloaded" }],
  [
    /too many operations in txn/,
    { kind: "config", remedy: "none", advice: "it takes fewer operations at once: set --max-txn-ops to 128" },
  ],
  [
    /request is too large/,
    { kind: "config", remedy: "none", advice: "it refuses requests of this size: raise --max-request-bytes" },
  ],
  [
    /corrupt cluster/,
    { kind: "internal", remedy: "none", advice: "it found its members to differ: see its CORRUPT alarm" },
  ],
];

/** Failures of the connection, before or while a request was on its way, and what only time can tell. */
const FAILURES: Table = [
  [
    /ECONNREFUSED/,
    {
      kind: "unreachable",
      remedy: "another-member",
      advice: "nothing listens there: start etcd or correct the URL",
    },
  ],
  [
    /ENOTFOUND|EAI_AGAIN/,
    {
      kind: "unreachable",
      remedy: "another-member",
      advice: "that host is unknown: correct the URL",
    },
  ],
  [
    /CERT|SELF_SIGNED|UNABLE_TO_|self[- ]signed|certificate/i,
    {
      kind: "config",
      remedy: "another-member",
      advice:
        "TLS failed: name its CA with ?ca=file, and with &cert=file&key=file a certificate if it wants one",
    },
  ],
  [
    /before secure TLS connection|WRONG_VERSION_NUMBER|EPROTO|ERR_SSL|wrong version number/,
    {
      kind: "config",
      remedy: "another-member",
      advice: "it does not speak TLS on that port: use etcd: instead of etcds:",
    },
  ],
  [
    /UNIMPLEMENTED|Protocol error|HTTP status code|NGHTTP2|not a message of etcd/,
    {
      kind: "config",
      remedy: "another-member",
      advice: "what answers there does not speak etcd's API 3: correct host and port, or use etcds: for TLS",
    },
  ],
  [
    /request timed out|leader changed|server stopped|unhealthy/,
    {
      kind: "unreachable",
      remedy: "another-member",
      advice: "it could not agree with its cluster in time",
    },
  ],
];

const LOST: Diagnosis = {
  kind: "unreachable",
  remedy: "another-member",
  advice: "the connection was lost",
};

/** A StoreError that also says what may be done about it. */
export class EtcdError extends StoreError {
  readonly remedy: Remedy;

  constructor(
    { kind, remedy }: Omit<Diagnosis, "advice">,
    message: string,
    outcome: FailedOutcome,
    cause?: unknown,
  ) {
    super(kind, message, { outcome, cause });
    this.remedy = remedy;
  }
}

/** `outcome` is what is true of the request if the server did not say that it refused. */
export function errorFrom(cause: unknown, address: string, outcome: FailedOutcome): EtcdError {
  if (cause instanceof EtcdError) return cause;
  const text = describe(cause);
  const refusal = REFUSALS.find(([pattern]) => text.includes("etcdserver:") && pattern.test(text))?.[1];
  const diagnosis = refusal ?? FAILURES.find(([pattern]) => pattern.test(text))?.[1] ?? LOST;
  const message = `etcd at ${address}: ${diagnosis.advice} (${text})`;
  return new EtcdError(diagnosis, message, refusal === undefined ? outcome : "not-applied", cause);
}

export function closedError(): EtcdError {
  return new EtcdError({ kind: "closed", remedy: "none" }, "the etcd store was closed", "not-applied");
}

export function silence(address: string, timeoutMs: number, outcome: FailedOutcome): EtcdError {
  const message = `etcd at ${address} gave no answer within ${Math.ceil(timeoutMs)} ms: check that it runs and is not overloaded`;
  return new EtcdError({ kind: "timeout", remedy: "another-member" }, message, outcome);
}

/** Errors that waiting does not cure. */
export function isLasting({ kind }: StoreError): boolean {
  return kind === "auth" || kind === "config";
}

function describe(cause: unknown): string {
  const text = cause instanceof Error ? cause.message : String(cause);
  return text.replace(/\s+/g, " ").trim().slice(0, 300);
}
