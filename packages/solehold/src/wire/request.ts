/** A request as the JSON body of a command, and back. The key's parts stand beside the other fields; bigints are decimal. */
import type { LeaseKey, LeaseOp } from "../core/index.ts";
import type { LeaseRequest } from "../executor/index.ts";

/** What the server does not take, or gets in another form. */
const NOT_SENT: ReadonlySet<string> = new Set(["op", "key", "timeoutMs"]);

/** `token` is empty for an operator's command. Absent fields do not travel. */
export function encodeRequest(request: LeaseRequest, token: string): Record<string, unknown> {
  const { tenant, name } = request.key;
  const body: Record<string, unknown> = { tenant, name };
  for (const [field, value] of Object.entries(request)) {
    if (value === undefined || NOT_SENT.has(field)) continue;
    body[field] = typeof value === "bigint" ? String(value) : value;
  }
  if (token !== "") body.token = token;
  return body;
}

/** What some bodies have besides the fields that a request takes as they are. */
export interface CommandBody {
  readonly tenant?: string;
  readonly name: string;
  readonly generation?: string;
  readonly term?: string;
  /** Belongs to the call, not to the request. */
  readonly waitMs?: number;
}

/** The body's shape was checked. Whether decimal strings fit into 64 bits is for core to say. */
export function decodeRequest(op: LeaseOp, key: LeaseKey, body: CommandBody): LeaseRequest {
  const { tenant: _tenant, name: _name, waitMs: _waitMs, generation, term, ...rest } = body;
  const request: Record<string, unknown> = { op, key, ...rest };
  if (generation !== undefined) request.generation = BigInt(generation);
  if (term !== undefined) request.term = BigInt(term);
  return request as unknown as LeaseRequest;
}
