/** Requests to the server that serves this page. A key, where one is needed, lives as long as the tab does. */
import type { AuditEntry, VerificationFailure } from "solehold/browser";

const KEY = "solehold-api-key";

export interface Problem {
  readonly status: number;
  readonly title: string;
  readonly detail: string;
  readonly reason: string;
  readonly field?: string;
  readonly quorum?: QuorumFindings;
  readonly recordDetail?: string;
}

export interface QuorumFindings {
  readonly tier: string;
  readonly required: number;
  readonly received: number;
  readonly failures: readonly VerificationFailure[];
}

/** The server answered, and the answer is no. */
export class ProblemError extends Error {
  readonly problem: Problem;

  constructor(problem: Problem) {
    super(problem.detail);
    this.problem = problem;
  }
}

export interface Lease {
  readonly tenant: string;
  readonly name: string;
  /** The name that was asked for, and which of its slots this is; 0 for a lease without. */
  readonly slotOf: string;
  readonly slot: number;
  readonly holder: string;
  readonly purpose: string;
  readonly fence: string;
  readonly generation: string;
  readonly term: string;
  readonly state: "held" | "released" | "revoked";
  readonly live: boolean;
  readonly phase: "active" | "grace" | "expired";
  readonly ttlMs: number;
  readonly grantedAtMs: number;
  readonly renewedAtMs: number;
  readonly expiresAtMs: number;
  readonly endedAtMs: number | null;
  readonly remainingMs: number;
  readonly renewals: number;
  readonly resumeRequired: boolean;
  readonly breakAtMs: number | null;
  readonly handoff: { readonly successor: string; readonly deadlineMs: number } | null;
  readonly note: string;
}

export interface LeasePage {
  readonly leases: readonly Lease[];
  readonly corrupt: readonly { readonly name: string; readonly detail: string }[];
  readonly next: string | null;
  readonly watch: string;
}

export interface Queue {
  readonly waiting: number;
  readonly waiters: readonly {
    readonly position: number;
    readonly holder: string;
    readonly waitedMs: number;
    readonly expectedWaitMs: number;
  }[];
}

/** The servers over the store; `home` is that of the key that was asked about. */
export interface Replicas {
  readonly replicas: readonly { readonly nodeId: string; readonly url: string; readonly weight: number }[];
  readonly self: string | null;
  readonly home?: string | null;
}

export interface Who {
  readonly id: string;
  readonly keysRequired: boolean;
  readonly tenants: readonly string[] | null;
  readonly prefixes: readonly string[];
  readonly actions: readonly string[];
  readonly storeTimeMs: number;
}

export type Query = Readonly<Record<string, string | number | boolean | undefined>>;

export function apiKey(): string {
  return sessionStorage.getItem(KEY) ?? "";
}

export function setApiKey(key: string): void {
  if (key === "") sessionStorage.removeItem(KEY);
  else sessionStorage.setItem(KEY, key);
}

export function urlOf(path: string, query: Query = {}): string {
  const given = Object.entries(query).filter(([, value]) => value !== undefined && value !== "");
  const text = new URLSearchParams(given.map(([name, value]) => [name, String(value)])).toString();
  return text === "" ? path : `${path}?${text}`;
}

export function authorization(): Record<string, string> {
  const key = apiKey();
  return key === "" ? {} : { authorization: `Bearer ${key}` };
}

export async function problemIn(response: Response): Promise<ProblemError> {
  const unknown = { title: "Error", detail: `the server answered ${response.status}`, reason: "UNKNOWN" };
  const body: unknown = await response.json().catch(() => null);
  return new ProblemError({ ...unknown, ...(body as object | null), status: response.status });
}

export async function get<Body>(path: string, query: Query = {}, signal?: AbortSignal): Promise<Body> {
  return await send<Body>(urlOf(path, query), { headers: authorization(), ...(signal && { signal }) });
}

export async function post<Body>(path: string, body: object): Promise<Body> {
  return await send<Body>(path, {
    method: "POST",
    headers: { ...authorization(), "content-type": "application/json" },
    body: JSON.stringify(body),
  });
}

async function send<Body>(url: string, init: RequestInit): Promise<Body> {
  const response = await fetch(url, { ...init, cache: "no-store", credentials: "omit" });
  if (!response.ok) throw await problemIn(response);
  return (await response.json()) as Body;
}

export async function queryAudit(query: Query, signal?: AbortSignal): Promise<readonly AuditEntry[]> {
  return (await get<{ entries: readonly AuditEntry[] }>("/v1/audit", query, signal)).entries;
}

export function messageOf(error: unknown): string {
  if (error instanceof ProblemError) return error.problem.detail;
  return error instanceof TypeError
    ? "the server cannot be reached"
    : String((error as Error)?.message ?? error);
}
