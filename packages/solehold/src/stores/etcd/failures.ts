/** What went wrong, as a StoreError of one line that says what to do. Messages never carry a password. */
import { type FailedOutcome, StoreError, type StoreErrorKind } from "../../store/index.ts";

/**
 * What may help, within the time of the call: "another-member" to leave this one, "new-login" to log in again, "wait"
 * to ask again a little later.
 */
export type Remedy = "none" | "another-member" | "new-login" | "wait";

interface Diagnosis {
  readonly kind: StoreErrorKind;
  readonly remedy: Remedy;
  readonly pattern: RegExp;
  readonly advice: string;
}

function table(
  kind: StoreErrorKind,
  remedy: Remedy,
  rows: readonly (readonly [pattern: RegExp, advice: string])[],
): readonly Diagnosis[] {
  return rows.map(([pattern, advice]) => ({ kind, remedy, pattern, advice }));
}

/** The server says that it did not do it, before or while it would have been applied. */
const REFUSALS: readonly Diagnosis[] = [
  ...table("unreachable", "another-member", [
    [/no leader|not supported for learner/, "it has no leader: start enough members for a majority"],
  ]),
  ...table("unreachable", "wait", [[/too many requests/, "it is overloaded"]]),
  ...table("auth", "new-login", [
    [/invalid auth token|revision of auth store is old/, "the login is no longer valid"],
  ]),
  ...table("auth", "none", [
    [/authentication failed|invalid user ID/, "the user name or password is wrong: correct it in the URL"],
    [/user name is empty/, "it wants a user: put it into the URL, etcd://user:password@host"],
    [/permission denied/, "grant the role of its user readwrite on the prefix, see docs/stores/etcd.md"],
  ]),
  ...table("full", "none", [
    [/space exceeded/, "compact, defragment and disarm its alarm, or raise --quota-backend-bytes"],
  ]),
  ...table("config", "none", [
    [/too many operations/, "it takes fewer operations at once: set --max-txn-ops to 128"],
    [/request is too large/, "it refuses requests of this size: raise --max-request-bytes"],
  ]),
  ...table("internal", "none", [
    [/corrupt cluster/, "it found its members to differ: see its CORRUPT alarm"],
  ]),
  ...table("unreachable", "wait", [[/watch canceled/, "it ended a watch"]]),
];

/** Failures of the connection, before or while a request was on its way, and what only time can tell. */
const FAILURES: readonly Diagnosis[] = [
  ...table("config", "another-member", [
    [
      /self[- ]signed|certificate|UNABLE_TO_/i,
      "TLS failed: name its CA with ?ca=file, and with &cert=file&key=file a certificate if it wants one",
    ],
    [
      /before secure TLS|EPROTO|ERR_SSL|wrong version number/i,
      "it does not speak TLS on that port: use etcd: instead of etcds:",
    ],
    [
      /UNIMPLEMENTED|Protocol error|HTTP status|NGHTTP2|message parsing error|not a message of etcd/,
      "what answers there does not speak etcd's API 3: correct host and port, or use etcds: for TLS",
    ],
  ]),
  ...table("unreachable", "another-member", [
    [/ECONNREFUSED/, "nothing listens there: start etcd or correct the URL"],
    [/ENOTFOUND|EAI_AGAIN|resolution failed/, "that host is unknown: correct the URL"],
    [/timed out|leader changed|server stopped|unhealthy/, "it could not agree with its cluster in time"],
  ]),
];

const LOST: Omit<Diagnosis, "pattern"> = {
  kind: "unreachable",
  remedy: "another-member",
  advice: "the connection was lost",
};

/** A StoreError that also says what may be done about it. */
export class EtcdError extends StoreError {
  readonly remedy: Remedy;

  constructor(
    { kind, remedy }: Pick<Diagnosis, "kind" | "remedy">,
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
  if (cause instanceof StoreError)
    return new EtcdError({ kind: cause.kind, remedy: "none" }, cause.message, cause.outcome);
  const text = (cause instanceof Error ? cause.message : String(cause)).replace(/\s+/g, " ").slice(0, 300);
  const fits = ({ pattern }: Diagnosis): boolean => pattern.test(text);
  const refusal = text.includes("etcdserver:") ? REFUSALS.find(fits) : undefined;
  const { advice, ...diagnosis } = refusal ?? FAILURES.find(fits) ?? LOST;
  const certain = refusal === undefined ? outcome : "not-applied";
  return new EtcdError(diagnosis, `etcd at ${address}: ${advice} (${text})`, certain, cause);
}

export function closedError(): EtcdError {
  return new EtcdError({ kind: "closed", remedy: "none" }, "the etcd store was closed", "not-applied");
}

export function silence(address: string, timeoutMs: number, outcome: FailedOutcome): EtcdError {
  const message = `etcd at ${address} gave no answer within ${Math.ceil(timeoutMs)} ms: check that it runs and is not overloaded`;
  return new EtcdError({ kind: "timeout", remedy: "another-member" }, message, outcome);
}

/** Thrown once for each loss: afterwards the client works on what is there. */
export function lossError(addresses: string, loss: string, outcome: FailedOutcome): EtcdError {
  const message = `etcd at ${addresses} lost data (${loss}): leases that were granted since its backup are gone, and their holders may still believe in them`;
  return new EtcdError({ kind: "data-loss", remedy: "none" }, message, outcome);
}

/** Of the failures of several members, the one that a person can correct. */
export function mostTelling(error: unknown): EtcdError {
  const failures: unknown[] = error instanceof AggregateError ? error.errors : [error];
  const known = failures.filter((each) => each instanceof EtcdError);
  const lasting = known.find(({ kind }) => kind === "auth" || kind === "config");
  return (
    lasting ?? known.find(({ kind }) => kind !== "timeout") ?? known[0] ?? errorFrom(error, "", "not-applied")
  );
}
