/** Mistakes on the way to a server and back: they need a gateway to show. */
import type { RemoteAnswer, RemoteTransport } from "solehold/internal";
import { readClocks, StoreError } from "solehold/internal";
import { BELIEF, type PlantedBug } from "./bug.ts";
import { withGrants, withMembers } from "./wrap.ts";

const entry = "server";

export const SERVER_BUGS: readonly PlantedBug[] = [
  {
    name: "sdk-counts-from-answer",
    mistake: "the SDK counts a grant's validity from the server's answer",
    caughtBy: [...BELIEF, "abort-in-time"],
    withinSeeds: 100,
    entry,
    faults: ["slow", "clog", "store-pause", "partition"],
    mutations: {
      executor: (executor, env) =>
        withGrants(executor, (outcome) =>
          outcome.kind === "applied" ? { ...outcome, believedFrom: readClocks(env) } : outcome,
        ),
    },
  },
  {
    name: "sdk-timeout-reported-as-held",
    mistake: "the SDK reports a request without an answer as refused",
    caughtBy: ["linearizability"],
    withinSeeds: 50,
    entry,
    mutations: {
      transport: (transport) =>
        withSend(transport, async (request) => {
          try {
            return await transport.send(request);
          } catch {
            return { status: 409, body: { reason: "LEASE_HELD_BY_OTHER", heldBy: "somebody" } };
          }
        }),
    },
  },
  {
    name: "sdk-503-reported-as-not-done",
    mistake: "the SDK reports a lost answer, or a server that does not know, as certainly not done",
    caughtBy: ["linearizability"],
    withinSeeds: 200,
    entry,
    mutations: {
      transport: (transport) =>
        withSend(transport, async (request) => {
          const answer = await transport.send(request).catch((cause: unknown) => {
            throw new StoreError("unreachable", "no answer", { outcome: "not-applied", cause });
          });
          if (answer.status !== 503) return answer;
          return { ...answer, body: { ...(answer.body as object), outcome: "not-applied" } };
        }),
    },
  },
  {
    name: "sdk-shares-answers",
    mistake: "two requests for one key that are under way together get one answer",
    // "closed-periods": the answer to another request knows nothing of the minimum hold that was asked for.
    caughtBy: [
      ...BELIEF,
      "linearizability",
      "ownership",
      "audit",
      "idempotency",
      "no-surprise",
      "closed-periods",
    ],
    withinSeeds: 100,
    entry,
    mutations: {
      transport: (transport) => {
        const underWay = new Map<string, Promise<RemoteAnswer>>();
        return withSend(transport, (request) => {
          const id = `${request.path} ${request.routeBy ?? ""}`;
          const known = underWay.get(id);
          if (known !== undefined && request.path.endsWith("/acquire")) return known;
          const sent = transport.send(request);
          underWay.set(id, sent);
          const done = (): void => void underWay.delete(id);
          sent.then(done, done);
          return sent;
        });
      },
    },
  },
  {
    name: "found-taken-for-granted",
    mistake: "a server releases what a request found, whose caller got its answer from another server",
    caughtBy: [...BELIEF, "ownership"],
    withinSeeds: 400,
    entry,
    faults: ["partition", "slow", "clog", "loss"],
    mutations: {
      service: (service) =>
        withMembers(service, {
          execute: async (request, context) => {
            const outcome = await service.execute(request, context);
            if (request.op !== "acquire" || outcome.kind !== "applied") return outcome;
            const { decision } = outcome;
            const fresh = { ...decision, replayed: false, lease: { ...decision.lease, renewals: 0 } };
            return { ...outcome, decision: fresh };
          },
        }),
    },
  },
  {
    name: "queue-served-backwards",
    mistake: "a server carries out what arrived together from its end",
    caughtBy: ["first-come-first-served"],
    withinSeeds: 10,
    entry,
    mutations: {
      endpoint: (endpoint) => ({
        ...endpoint,
        accept: (socket) => {
          const on = socket.on.bind(socket);
          endpoint.accept(
            withMembers(socket, {
              on: (event: string | symbol, listener: (...given: unknown[]) => void) => {
                on(
                  event,
                  event === "message" ? (data: unknown) => listener(backwards(data), false) : listener,
                );
                return socket;
              },
            }),
          );
        },
      }),
    },
  },
];

function withSend(transport: RemoteTransport, send: RemoteTransport["send"]): RemoteTransport {
  return withMembers(transport, { send });
}

function backwards(data: unknown): Buffer {
  const messages: unknown = JSON.parse(String(data));
  return Buffer.from(JSON.stringify(Array.isArray(messages) ? messages.reverse() : messages));
}
