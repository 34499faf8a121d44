/** What went wrong, as a StoreError of one line that says what to do. Messages never carry a password. */
import { type FailedOutcome, StoreError } from "../../store/index.ts";
import { type Diagnosis, noConnection } from "../support/failures.ts";

/** The server says that it did not do it, before or while it would have been applied. */
const REFUSALS: readonly Diagnosis[] = [
  [/no leader|learner/, "unreachable", "it has no leader: start enough members for a majority"],
  [/too many requests/, "unreachable", "it is overloaded"],
  [/invalid auth token|auth store is old/, "unreachable", "the login is no longer valid"],
  [/authentication failed/, "auth", "the user name or password is wrong: correct it in the URL"],
  [/user name is empty/, "auth", "it wants a user: put it into the URL, etcd://user:password@host"],
  [/permission denied/, "auth", "grant its user's role readwrite on the prefix, see docs/stores/etcd.md"],
  [/space exceeded/, "full", "compact, defragment, disarm its alarm, or raise --quota-backend-bytes"],
  [/too many operations/, "config", "it takes fewer operations at once: set --max-txn-ops to 128"],
  [/request is too large/, "config", "it refuses requests of this size: raise --max-request-bytes"],
  [/corrupt cluster/, "internal", "it found its members to differ: see its CORRUPT alarm"],
  [/watch canceled/, "unreachable", "it ended a watch"],
];

/** Failures of the connection, before or while a request was on its way, and what only time can tell. */
const FAILURES: readonly Diagnosis[] = [
  [
    /self[- ]signed|certificate|UNABLE_TO_/i,
    "config",
    "TLS failed: name its CA with ?ca=file, and with &cert=file&key=file a certificate if it wants one",
  ],
  [
    /before secure TLS|EPROTO|ERR_SSL|wrong version number/i,
    "config",
    "it does not speak TLS on that port: use etcd: instead of etcds:",
  ],
  [
    /UNIMPLEMENTED|Protocol error|HTTP status|message parsing error|not a message of etcd/,
    "config",
    "what answers there does not speak etcd's API 3: correct host and port, or use etcds: for TLS",
  ],
  [/timed out|leader changed|stopped|unhealthy/, "unreachable", "it did not agree with its cluster in time"],
  ...noConnection("etcd"),
];

const LOST: Diagnosis = [/^/, "unreachable", "the connection was lost"];

/** `outcome` is what is true of the request if the server did not say that it refused. */
export function errorFrom(cause: unknown, address: string, outcome: FailedOutcome): StoreError {
  if (cause instanceof StoreError) return cause;
  const text = (cause instanceof Error ? cause.message : String(cause)).replace(/\s+/g, " ").slice(0, 300);
  const fits = ([pattern]: Diagnosis): boolean => pattern.test(text);
  const refusal = text.includes("etcdserver:") ? REFUSALS.find(fits) : undefined;
  const [, kind, advice] = refusal ?? FAILURES.find(fits) ?? LOST;
  const message = `etcd at ${address}: ${advice} (${text})`;
  return new StoreError(kind, message, { outcome: refusal === undefined ? outcome : "not-applied", cause });
}

/** Whether another member, another login or a little time may help. */
export function mayPass({ kind, outcome }: StoreError): boolean {
  return outcome === "not-applied" && (kind === "unreachable" || kind === "timeout");
}

/** Of the failures of several members: what a person can correct, else what a member said, else that one is silent. */
export function mostTelling(errors: readonly StoreError[]): StoreError {
  const answered = errors.find(({ message }) => message.includes("etcdserver:"));
  const lasting = errors.find((error) => !mayPass(error));
  return lasting ?? answered ?? errors.find(({ kind }) => kind !== "timeout") ?? (errors[0] as StoreError);
}
