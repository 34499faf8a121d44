/** GET /v1/lease, /v1/leases and /v1/leases/count: what is held, by whom, until when. Tokens are never in it. */

import type { LeaseKey, LeaseView } from "solehold";
import {
  CorruptRecordError,
  delay,
  type Env,
  encodeLease,
  type LeaseService,
  MAX_LIST_LIMIT,
  pagesOf,
  REASONS,
} from "solehold/internal";
import { Type } from "typebox";
import { leaseKeyFor, readableScope } from "../../access/principal.ts";
import { ProblemError, storeCannot } from "../../protocol/problem.ts";
import { scope, target } from "../../protocol/schemas/fields.ts";
import { Closed, OneOf, OrNull, Text, Whole } from "../../protocol/schemas/kinds.ts";
import { LeaseSchema } from "../../protocol/schemas/leases.ts";
import { defineRoute, type Route } from "../route.ts";

const DEFAULT_LIMIT = 100;
/** Made and written in one turn of the event loop, so it must be short; who asks for more finds the rest by `next`. */
const MOST_IN_A_PAGE = 250;

const ListQuery = Closed({
  ...scope,
  holder: Type.Optional(Text("Only leases of exactly this holder.")),
  state: Type.Optional(OneOf(["held", "released", "revoked"], "Only leases of which this was last done.")),
  cursor: Type.Optional(Text("`next` of the page before.")),
  limit: Type.Optional(
    Type.Integer({
      minimum: 1,
      maximum: MAX_LIST_LIMIT,
      description: `How many at most; ${DEFAULT_LIMIT} when not given. A page ends after ${MOST_IN_A_PAGE}, with a cursor.`,
    }),
  ),
});

const ListReply = Closed({
  leases: Type.Array(LeaseSchema, { description: "Ordered by name." }),
  corrupt: Type.Array(Closed({ name: Text("Whose record it is."), detail: Text("What is wrong with it.") }), {
    description: "Damaged records of this page, for an operator to repair.",
  }),
  next: OrNull(Type.String(), "The cursor of the next page; null on the last one."),
  watch: Text(
    "A token. Watching after the one of the first page brings every change that the pages may not show.",
  ),
});

const CountReply = Closed({
  tenant: Text("Whose leases were counted."),
  prefix: Text("Of which names; empty for all."),
  active: Whole("How many are held and not expired."),
});

/** `watchToken` is that of now. */
export function leaseRoutes(service: LeaseService, env: Env, watchToken: () => string): readonly Route[] {
  const get = defineRoute({
    method: "GET",
    path: "/v1/lease",
    operationId: "getLease",
    tag: "leases",
    summary: "One lease by its name",
    description: "The name is a query parameter: in a path, `..` and slashes would not arrive as written.",
    query: Closed(target),
    replies: { 200: { description: "The lease, live or ended.", schema: LeaseSchema } },
    examples: [{ summary: "Look at it", query: { name: "reports/nightly" }, status: 200 }],
    async handle({ query }, { principal }) {
      const view = await readLease(service, leaseKeyFor(principal, "read", query));
      if (view !== null) return encodeLease(view);
      const reason = "LEASE_NOT_FOUND";
      throw new ProblemError({ status: 404, reason, detail: REASONS[reason].sentence });
    },
  });
  const list = defineRoute({
    method: "GET",
    path: "/v1/leases",
    operationId: "listLeases",
    size: "large",
    tag: "leases",
    summary: "Leases by prefix, holder and state",
    query: ListQuery,
    replies: { 200: { description: "A page, ordered by name.", schema: ListReply } },
    examples: [{ summary: "All of a prefix", query: { prefix: "reports/", limit: "10" }, status: 200 }],
    async handle({ query }, { principal }) {
      const { tenant: _tenant, prefix: _prefix, limit = DEFAULT_LIMIT, cursor, ...filter } = query;
      const scope = readableScope(principal, query);
      assertListable(service);
      const after = cursor === undefined ? {} : { after: cursor };
      const watch = watchToken();
      const most = Math.min(limit, MOST_IN_A_PAGE);
      const page = await service.list({ ...scope, limit: most, ...filter, ...after });
      const corrupt = page.corrupt.map(({ key, detail }) => ({ name: key.name, detail }));
      return { leases: page.leases.map(encodeLease), corrupt, next: page.next, watch };
    },
  });
  const count = defineRoute({
    method: "GET",
    path: "/v1/leases/count",
    operationId: "countLeases",
    size: "large",
    tag: "leases",
    summary: "How many leases are alive now",
    query: Closed(scope),
    replies: { 200: { description: "The count.", schema: CountReply } },
    examples: [{ summary: "Of the tenant", query: {}, status: 200 }],
    async handle({ query }, { principal }) {
      const { tenant, prefix } = readableScope(principal, query);
      const active = prefix === "" ? service.activeCount(tenant) : countUnder(service, env, tenant, prefix);
      return { tenant, prefix, active: await active };
    },
  });
  return [get, list, count];
}

async function countUnder(service: LeaseService, env: Env, tenant: string, prefix: string): Promise<number> {
  assertListable(service);
  const query = { tenant, prefix, state: "held", limit: MOST_IN_A_PAGE } as const;
  let active = 0;
  for await (const { leases } of pagesOf((page) => service.list(page), query)) {
    active += leases.filter(({ live }) => live).length;
    // Others come between.
    await delay(env, 0);
  }
  return active;
}

/** Throws a ProblemError where the store cannot enumerate its keys. */
export function assertListable({ executor: { store } }: LeaseService): void {
  if (store.list !== undefined) return;
  throw new ProblemError(
    storeCannot(`the ${store.name} store cannot list its leases: ask for one by its name`),
  );
}

/** A damaged record is the operator's to repair; it must not look like a fault of the server. */
async function readLease(service: LeaseService, key: LeaseKey): Promise<LeaseView | null> {
  try {
    return await service.read(key);
  } catch (error) {
    if (!(error instanceof CorruptRecordError)) throw error;
    const facts = { recordVersion: error.version, recordDetail: error.detail };
    throw new ProblemError({ reason: error.code, detail: REASONS[error.code].sentence, facts });
  }
}
