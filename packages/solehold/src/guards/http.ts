/**
 * The guard of an HTTP service, whatever serves it: requests carry the fence of their lease in the header
 * `Solehold-Fence`, and one that is older than the newest seen is answered 412. Requests for one resource run one after
 * the other, from the check until the handler has ended, so the check and the handler's write are one step. The
 * middleware of each framework is in `solehold/adapters`.
 *
 * It guards what one process writes. With several processes behind it, pass the fence on to the guard of
 * the database.
 */
import { formatFence, type LeaseKey, parseFence } from "../core/index.ts";
import { FenceGate } from "./fence-gate.ts";
import type { Fenced } from "./fenced-resource.ts";
import { StaleFenceError } from "./stale-fence-error.ts";

export const FENCE_HEADER = "solehold-fence";

export interface HttpGuardOptions<Request> {
  /** What the request writes to: the key of the lease that protects it. */
  readonly keyOf: (request: Request) => LeaseKey;
  /** Routes that share a gate share its fences. Default: one of its own. */
  readonly gate?: FenceGate;
}

/** What a client sends along: `fetch(url, { headers: fenceHeaders(lease) })`. */
export function fenceHeaders(by: Pick<Fenced, "fence">): Record<string, string> {
  return { [FENCE_HEADER]: formatFence(by.fence) };
}

/** How a request is answered that may not go on. */
export interface FenceRefusal {
  readonly status: 400 | 412 | 428;
  readonly body: { readonly code: string; readonly message: string; readonly newest?: string };
}

/** The request may go on, and `leave` ends its turn; or it is refused. */
export type FenceAdmission =
  | { readonly leave: () => void; readonly refusal: null }
  | { readonly refusal: FenceRefusal };

/** For adapters. Resolves when it is the request's turn. */
export type AdmitFence<Request> = (
  request: Request,
  header: string | readonly string[] | null | undefined,
) => Promise<FenceAdmission>;

export function fenceAdmission<Request>(options: HttpGuardOptions<Request>): AdmitFence<Request> {
  if (typeof options?.keyOf !== "function")
    throw new TypeError(
      "keyOf must be a function from the request to the key of its lease: { keyOf: () => lease.key }",
    );
  const { keyOf, gate = new FenceGate() } = options;
  return async (request, header) => {
    if (header === undefined || header === null)
      return refused(428, "FENCE_MISSING", `send the fence of your lease in the header ${FENCE_HEADER}`);
    const fence = typeof header === "string" ? parseFence(header) : null;
    if (fence === null)
      return refused(
        400,
        "FENCE_INVALID",
        `the header ${FENCE_HEADER} must be a decimal number, got '${header}'`,
      );
    try {
      return { leave: await gate.enter({ key: keyOf(request), fence }), refusal: null };
    } catch (error) {
      if (!(error instanceof StaleFenceError)) throw error;
      return refused(412, "STALE_FENCE", error.message, { newest: formatFence(error.newestFence) });
    }
  };
}

function refused(
  status: FenceRefusal["status"],
  code: string,
  message: string,
  more: { readonly newest?: string } = {},
): FenceAdmission {
  return { refusal: { status, body: { code, message, ...more } } };
}
