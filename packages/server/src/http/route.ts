/**
 * A route as data: what it accepts, what it answers, an example, and the function that does it. The HTTP
 * app and the OpenAPI document are both made from these, so neither can say more than the other does.
 */
import type { WireAnswer } from "solehold/internal";
import { type Static, type TSchema, Type } from "typebox";
import type { Call } from "../access/call.ts";
import type { Principal } from "../access/principal.ts";
import type { Turns } from "../access/turns.ts";
import { type Check, checkOf, checkQueryOf } from "../protocol/validation.ts";
import type { EventSource } from "../watch/sse.ts";

export interface Answer extends WireAnswer {
  /** Where it is not JSON; the body then is text. */
  readonly contentType?: string;
}

export interface RouteReply {
  readonly description: string;
  readonly schema?: TSchema;
  /** Default: application/json. */
  readonly contentType?: string;
}

/** An example that the tests carry out. */
export interface RouteExample {
  readonly summary: string;
  readonly body?: object;
  readonly query?: Readonly<Record<string, string>>;
  readonly status: number;
}

export interface RouteSpec<Body extends TSchema = TSchema, Query extends TSchema = TSchema> {
  readonly method: "GET" | "POST";
  readonly path: string;
  readonly operationId: string;
  readonly tag: string;
  readonly summary: string;
  readonly description?: string;
  /** "open" needs no API key. */
  readonly access?: "open";
  readonly body?: Body;
  /** Where it is not that of one command. Never more than the server's. */
  readonly bodyLimitBytes?: number;
  readonly query?: Query;
  /** What it answers may be long, and begins when it is its caller's turn. */
  readonly size?: "large";
  readonly replies: Readonly<Record<number, RouteReply>>;
  readonly examples: readonly RouteExample[];
  /** Resolves to the body of a 200; all else is a ProblemError. */
  handle(input: { readonly body: Static<Body>; readonly query: Static<Query> }, call: Call): Promise<object>;
}

export interface Route {
  readonly spec: Omit<RouteSpec, "handle">;
  /** Checks the input, throws ProblemError, and answers. */
  run(body: unknown, query: unknown, call: Call): Promise<Answer>;
}

/** A response without an end, as server-sent events. */
export interface EventRoute {
  readonly spec: Omit<RouteSpec, "handle">;
  /** Checks the request and throws ProblemError. `lastEventId` is the header by which a browser resumes. */
  open(query: unknown, principal: Principal, lastEventId: string | null): OpenedEvents;
}

export interface OpenedEvents {
  /** Whose events they are; none where they are those of all tenants. */
  readonly tenant?: string;
  readonly source: EventSource;
}

/** Large ones begin when it is their caller's turn. */
export function inTurns(turns: Turns, { spec, run }: Route): Route {
  if (spec.size !== "large") return { spec, run };
  return { spec, run: (body, query, call) => turns.run(call, () => run(body, query, call)) };
}

export function defineRoute<Body extends TSchema, Query extends TSchema>(
  spec: RouteSpec<Body, Query>,
): Route {
  const checkBody: Check<Body> | null = spec.body === undefined ? null : checkOf(spec.body, "body");
  const checkQuery: Check<Query> | null = spec.query === undefined ? null : checkQueryOf(spec.query);
  return {
    spec,
    run: async (body, query, call) => {
      const input = {
        body: (checkBody === null ? undefined : checkBody(body)) as Static<Body>,
        query: (checkQuery === null ? undefined : checkQuery(query)) as Static<Query>,
      };
      return { status: 200, body: await spec.handle(input, call) };
    },
  };
}

type EventSpec<Query> = Pick<RouteSpec, "path" | "operationId" | "tag" | "summary" | "description"> & {
  readonly query: Query;
};

/** `open` gets the query, checked. */
export function defineEvents<Query extends TSchema>(
  spec: EventSpec<Query>,
  open: (query: Static<Query>, principal: Principal, lastEventId: string | null) => OpenedEvents,
): EventRoute {
  const check = checkQueryOf(spec.query);
  const reply = {
    description: "An endless stream.",
    contentType: "text/event-stream",
    schema: Type.String(),
  };
  return {
    spec: { ...spec, method: "GET", replies: { 200: reply }, examples: [] },
    open: (query, principal, lastEventId) => open(check(query), principal, lastEventId),
  };
}
