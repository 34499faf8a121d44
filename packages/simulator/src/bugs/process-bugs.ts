/** Mistakes of processes: what they leave on, hand out twice, or do not write down. */
import {
  type AcquireRequest,
  type CommandOutcome,
  type Env,
  keyId,
  type Lease,
  type LeaseExecutor,
  type LeaseRequest,
  LeaseSet,
} from "solehold/internal";
import { guarded } from "../full/resources.ts";
import type { Mutations } from "../mutations.ts";
import { SimulatedEnv } from "../world/env.ts";
import { BELIEF, type PlantedBug } from "./bug.ts";
import { heldUntilAborted, withMembers, withoutEvents } from "./wrap.ts";

export const PROCESS_BUGS: readonly PlantedBug[] = [
  {
    name: "several-in-any-order",
    mistake: "several names are waited for in the order in which the caller names them",
    caughtBy: ["liveness"],
    withinSeeds: 100,
    faults: [],
    mutations: {
      leases: (open) => {
        const leases = open();
        return withMembers(leases, {
          acquireAll: async (names, options) => {
            const held: Lease[] = [];
            try {
              for (const name of names) held.push(await leases.acquire(name, options));
            } catch (error) {
              await Promise.all(held.map((lease) => lease.release()));
              throw error;
            }
            return new LeaseSet(held);
          },
        });
      },
    },
  },
  {
    name: "one-token-per-process",
    mistake: "all grants of a process carry the same token, so two calls find one grant",
    caughtBy: [...BELIEF, "fences-grow", "linearizability", "priority"],
    withinSeeds: 200,
    mutations: {
      executor: (executor, env) => {
        const token = Buffer.from(env.randomBytes(16)).toString("base64url");
        return withAcquires(executor, (request) => ({ ...request, token }));
      },
    },
  },
  {
    name: "constant-nonce",
    mistake: "attempts look alike, so another's write is taken for one's own",
    caughtBy: [...BELIEF, "linearizability", "fences-grow", "ownership", "idempotency"],
    withinSeeds: 200,
    faults: ["loss", "lost-reply", "conflict-unknown", "slow", "late-apply"],
    mutations: {
      executorEnv: (env) => withMembers(env, { randomBytes: (length) => new Uint8Array(length) }),
      executor: (executor, env) =>
        withAcquires(executor, (request) => ({
          ...request,
          token: Buffer.from(env.randomBytes(16)).toString("base64url"),
        })),
    },
  },
  {
    name: "goes-on-after-a-pause",
    mistake: "a process that stood still believes what it believed before, until its signal aborts",
    caughtBy: BELIEF,
    withinSeeds: 200,
    faults: ["pause"],
    mutations: { holding: heldUntilAborted },
  },
  {
    name: "suspect-shut-out",
    mistake: "a process that lost a lease because it looked dead gets no other",
    caughtBy: ["false-suspicion-recovery", "liveness"],
    withinSeeds: 200,
    faults: ["pause", "suspend"],
    mutations: { executor: shutOutAfterLoss },
  },
  {
    name: "handoff-keeps-believing",
    mistake: "the holder hands its lease on and works until its time is over",
    caughtBy: BELIEF,
    withinSeeds: 200,
    mutations: {
      holding: (holding, executor) => {
        const { lease } = holding;
        let token = "";
        const secret = (): string => token;
        return {
          ...holding,
          handOff: async (successor, withinMs) => {
            const { key, holder } = lease;
            token = secretOf(executor, keyId(key), lease.fence) ?? secret();
            if (token !== "")
              await executor.execute({ op: "handoff", key, holder, token, successor, withinMs });
          },
        };
      },
      executor: (executor) => rememberSecrets(executor),
    },
  },
  {
    name: "priority-ignored",
    mistake: "who waits with a priority is queued as if it had none",
    caughtBy: ["priority"],
    withinSeeds: 10,
    faults: [],
    mutations: {
      leases: (open) => {
        const leases = open();
        return withMembers(leases, {
          acquire: (name, { priority: _priority, ...options } = {}) => leases.acquire(name, options),
        });
      },
    },
  },
  {
    name: "everybody-polls",
    mistake: "each call waits by asking again and again for itself: there is no queue",
    caughtBy: ["first-come-first-served", "starvation"],
    withinSeeds: 100,
    mutations: {
      leases: (open) => withMembers(open(), { acquire: (name, options) => open().acquire(name, options) }),
    },
  },
  {
    name: "nobody-yields",
    mistake: "a release frees the key for the fastest process, although another waits for it",
    caughtBy: ["starvation"],
    withinSeeds: 200,
    mutations: {
      executor: (executor) =>
        withMembers(executor, {
          execute: (request, context) => {
            if (request.op !== "release") return executor.execute(request, context);
            const { reserveFor: _reserveFor, ...plain } = request;
            return executor.execute(plain, context);
          },
        }),
    },
  },
  {
    name: "signatures-counted",
    mistake: "a quorum counts signatures, so one signer can sign twice",
    caughtBy: ["quorum"],
    withinSeeds: 300,
    mutations: {
      service: (service, openUnguarded) => {
        const unguarded = openUnguarded();
        return withMembers(service, {
          execute: (request, context) => {
            const { approval, ...unapproved } = request;
            const isCounted = request.op === "acquire" && (approval?.approvals.length ?? 0) > 1;
            return isCounted
              ? unguarded.execute(unapproved as LeaseRequest, context)
              : service.execute(request, context);
          },
        });
      },
    },
  },
  {
    name: "timers-never-cancelled",
    mistake: "a timer that is no longer needed is left to fire",
    caughtBy: ["no-leaks"],
    withinSeeds: 20,
    mutations: {
      clientEnv: (env) =>
        withMembers(env, {
          timer: (delayMs, callback, options) => {
            let wanted = true;
            env.timer(
              delayMs + 1_000_000,
              () => {
                if (wanted) callback();
              },
              options,
            );
            const timer = env.timer(delayMs, callback, options);
            return {
              cancel: () => {
                wanted = false;
                timer.cancel();
              },
            };
          },
        }),
    },
  },
  {
    name: "guard-off",
    mistake: "the protected resource does not look at the fence",
    caughtBy: ["guarded-writes"],
    withinSeeds: 300,
    clocks: "unbounded",
    mutations: { guard: () => true },
  },
  {
    name: "raise-ignored",
    mistake: "the guard says yes to a new holder's raise, and compares only with what was written",
    caughtBy: ["guarded-writes"],
    withinSeeds: 100,
    mutations: { guard: (resource, step) => step.kind === "raise" || guarded(resource, step) },
  },
  {
    name: "guard-accepts-by-holder-count",
    mistake: "the resource compares a fence only with the one before it, not with the highest",
    caughtBy: ["guarded-writes"],
    withinSeeds: 600,
    clocks: "unbounded",
    mutations: {
      guard: ((): NonNullable<Mutations["guard"]> => {
        const last = new WeakMap<object, bigint>();
        return (resource, { fence }) => {
          const accepted = fence + 1n >= (last.get(resource) ?? 0n);
          last.set(resource, fence);
          return accepted;
        };
      })(),
    },
  },
  {
    name: "refusals-not-audited",
    mistake: "only what was allowed is written into the audit",
    caughtBy: ["audit"],
    withinSeeds: 30,
    mutations: {
      audit: (trail) => withoutEvents(trail, ({ allowed }) => !allowed),
    },
  },
  {
    name: "audit-forgets-unknown",
    mistake: "an attempt whose fate is unknown is not written into the audit",
    caughtBy: ["audit"],
    withinSeeds: 100,
    mutations: {
      audit: (trail) => withoutEvents(trail, ({ outcome }) => outcome === "unknown"),
    },
  },
];

function withAcquires(
  executor: LeaseExecutor,
  change: (request: AcquireRequest) => AcquireRequest,
): LeaseExecutor {
  return withMembers(executor, {
    execute: (request, context) =>
      executor.execute(request.op === "acquire" ? change(request) : request, context),
  });
}

/** A process that was granted a key, stood still, and finds another holder has been taken for dead. */
function shutOutAfterLoss(executor: LeaseExecutor, env: Env): LeaseExecutor {
  const grantedAtMs = new Map<string, number>();
  let denial: CommandOutcome | null = null;
  const thawedAtMs = (): number => (env instanceof SimulatedEnv ? env.machine.thawedAtMs : 0);
  return withMembers(executor, {
    execute: async (request, context) => {
      if (denial !== null && request.op === "acquire") return denial;
      const id = keyId(request.key);
      if (request.op === "release" || request.op === "handoff") grantedAtMs.delete(id);
      const outcome = await executor.execute(request, context);
      if (request.op !== "acquire") return outcome;
      const isHeld = outcome.kind === "refused" && outcome.decision.reason === "LEASE_HELD_BY_OTHER";
      if (isHeld && thawedAtMs() > (grantedAtMs.get(id) ?? Number.POSITIVE_INFINITY)) denial = outcome;
      if (outcome.kind === "applied") grantedAtMs.set(id, thawedAtMs());
      return outcome;
    },
  });
}

const SECRETS = new WeakMap<object, Map<string, string>>();

/** Keeps the tokens of this process's grants, as a program does that hands on behind its handle's back. */
function rememberSecrets(executor: LeaseExecutor): LeaseExecutor {
  const secrets = new Map<string, string>();
  const remembering = withMembers(executor, {
    execute: async (request, context) => {
      const outcome = await executor.execute(request, context);
      if (request.op === "acquire" && outcome.kind === "applied") {
        const { key, generation } = outcome.decision.lease;
        secrets.set(`${keyId(key)}@${generation}`, outcome.token);
      }
      return outcome;
    },
  });
  SECRETS.set(remembering, secrets);
  return remembering;
}

function secretOf(executor: object, id: string, fence: bigint): string | null {
  return SECRETS.get(executor)?.get(`${id}@${fence}`) ?? null;
}
