/** Mistakes about the record and the write: what is compared, what is kept, what is believed about an answer. */
import { keyId, type StoredRecord, StoreError } from "solehold/internal";
import { BELIEF, type PlantedBug } from "./bug.ts";
import { withApply, withCommand, withMembers, withSnapshot, withWritten } from "./wrap.ts";

export const PROTOCOL_BUGS: readonly PlantedBug[] = [
  {
    name: "no-compare-and-swap",
    mistake: "the store writes whatever it is given",
    caughtBy: [...BELIEF, "fences-grow", "ownership", "no-resurrection", "linearizability", "reservations"],
    withinSeeds: 50,
    mutations: { engineWrites: "blind" },
  },
  {
    name: "acquire-without-compare-and-swap",
    mistake: "an acquire found the key free and writes without a condition, over a grant that came first",
    caughtBy: [...BELIEF, "fences-grow"],
    withinSeeds: 200,
    faults: [],
    mutations: {
      store: (store, _env, engine) =>
        withApply(store, (writes) => {
          // Without a clock nobody can say whether what was overwritten was alive.
          if (store.capabilities.clock === "none") return store.apply(writes);
          const forced = writes.map((write) => {
            const [current] = engine.read([write.key]);
            const isGrant = write.next?.state === "held" && write.next.renewals === 0;
            const isHeld = current?.kind === "found" && current.record.state === "held";
            return isGrant && isHeld ? { ...write, expected: current.version } : write;
          });
          return store.apply(forced);
        }),
    },
  },
  {
    name: "delete-on-release",
    mistake: "release deletes the record, and with it the highest fence",
    caughtBy: ["fences-grow"],
    withinSeeds: 50,
    mutations: { policy: { release: "delete" } },
  },
  {
    name: "same-fence-on-regrant",
    mistake: "a new grant keeps the fence of the one before",
    caughtBy: ["fences-grow"],
    withinSeeds: 50,
    mutations: {
      decide: withWritten((record, { op }, before) =>
        op === "acquire" && before !== null ? { ...record, generation: before.generation } : record,
      ),
    },
  },
  {
    name: "renew-expired",
    mistake: "an expired lease can be renewed as long as nobody took it",
    caughtBy: ["no-resurrection"],
    withinSeeds: 400,
    mutations: { policy: { renewExpired: "if-unclaimed" } },
  },
  {
    name: "renew-revives-released",
    mistake: "a renewal does not look at the state: released and revoked leases come back",
    caughtBy: ["no-resurrection", "ownership", ...BELIEF, "linearizability"],
    withinSeeds: 200,
    mutations: {
      decide: withSnapshot((record, { op }) => (op === "renew" ? { ...record, state: "held" } : record)),
    },
  },
  {
    name: "release-by-key",
    mistake: "a release ends whatever lease is there, without proof that it is the caller's",
    caughtBy: ["ownership", "linearizability", "belief-has-record"],
    withinSeeds: 300,
    mutations: {
      decide: withCommand((command, { record }) =>
        command.op === "release" && record !== null
          ? { ...command, tokenHash: record.tokenHash, holder: record.holder }
          : command,
      ),
    },
  },
  {
    name: "name-is-proof",
    mistake: "a process with the holder's name has its lease",
    caughtBy: [...BELIEF, "ownership"],
    withinSeeds: 200,
    mutations: { policy: { reacquire: "supersede" } },
  },
  {
    name: "revoke-frees-at-once",
    mistake: "a revoked lease is granted to another before its holder can know",
    caughtBy: BELIEF,
    withinSeeds: 100,
    mutations: { policy: { revoked: "claim-at-once" } },
  },
  {
    name: "handoff-for-anybody",
    mistake: "a lease that was handed on is granted to any process that asks",
    caughtBy: ["reservations"],
    withinSeeds: 200,
    mutations: {
      decide: withSnapshot((record, { op }) => (op === "acquire" ? { ...record, handoff: null } : record)),
    },
  },
  {
    name: "reservation-ignored",
    mistake: "a lease that was kept for a waiter is granted to any process that asks",
    caughtBy: ["reservations"],
    withinSeeds: 200,
    mutations: {
      decide: withSnapshot((record, { op }) =>
        op === "acquire" ? { ...record, reservation: null } : record,
      ),
    },
  },
  {
    name: "min-hold-ends-with-release",
    mistake: "a lease that is released before its minimum hold is over can be claimed at once",
    caughtBy: ["closed-periods"],
    withinSeeds: 200,
    mutations: {
      decide: withWritten((record, { op }) =>
        op === "release" ? { ...record, minHoldUntilMs: null } : record,
      ),
    },
  },
  {
    name: "lock-delay-ignored",
    mistake: "an expired lease can be claimed at once, whatever delay was asked for",
    caughtBy: ["closed-periods"],
    withinSeeds: 200,
    mutations: {
      decide: withSnapshot((record, { op }) => (op === "acquire" ? { ...record, lockDelayMs: 0 } : record)),
    },
  },
  {
    name: "one-slot-too-many",
    mistake: "slots are counted from 0 to their number, and so there is one more",
    caughtBy: ["slots"],
    withinSeeds: 100,
    faults: [],
    mutations: {
      executor: (executor) =>
        withMembers(executor, {
          execute: (request, context) =>
            executor.execute(
              request.op === "acquire" && (request.slots ?? 1) > 1
                ? { ...request, slots: (request.slots ?? 1) + 1 }
                : request,
              context,
            ),
        }),
    },
  },
  {
    name: "slot-taken-from-its-holder",
    mistake: "one who found all slots taken takes the one that ends first",
    caughtBy: [...BELIEF, "slots", "ownership"],
    withinSeeds: 200,
    mutations: {
      decide: withSnapshot((record, { op, key }) =>
        op === "acquire" && key.name.includes("#slot/") ? { ...record, expiresAtMs: 0 } : record,
      ),
    },
  },
  {
    name: "break-ignored",
    mistake: "renewals run past the end that a break has set",
    caughtBy: ["reservations"],
    withinSeeds: 200,
    mutations: {
      decide: withSnapshot((record, { op }) => (op === "renew" ? { ...record, breakAtMs: null } : record)),
    },
  },
  {
    name: "unknown-read-as-lost",
    mistake: "a 409 or a dropped reply is reported as 'not done'",
    caughtBy: ["linearizability", "audit"],
    withinSeeds: 300,
    mutations: {
      store: (store) =>
        withApply(store, async (writes) => {
          const lost = new StoreError("internal", "the write failed", { outcome: "not-applied" });
          const reply = await store.apply(writes).catch(() => {
            throw lost;
          });
          if (reply.results.some(({ kind }) => kind === "unknown")) throw lost;
          return reply;
        }),
    },
  },
  {
    name: "acknowledged-before-durable",
    mistake: "the store forgets writes that it has acknowledged",
    // Who saw the forgotten fence refuses to go below it, for good: then the key is not granted any more.
    caughtBy: [...BELIEF, "fences-grow", "linearizability", "ownership", "liveness"],
    withinSeeds: 100,
    mutations: {
      store: (store, _env, engine) =>
        withApply(store, async (writes) => {
          const reply = await store.apply(writes);
          if (engine.nowMs() % 7 === 0) engine.forgetLastWrites(1);
          return reply;
        }),
    },
  },
  {
    name: "stale-reads",
    mistake: "reads come from a replica that lags behind, and nobody said so",
    caughtBy: ["linearizability", "liveness"],
    withinSeeds: 200,
    mutations: {
      store: (store) => {
        const replica = new Map<string, StoredRecord>();
        return withMembers(store, {
          read: async (keys) => {
            const reply = await store.read(keys);
            const records = reply.records.map((current, index) => {
              const key = keys[index];
              const id = key === undefined ? "" : keyId(key);
              const seen = replica.get(id) ?? current;
              replica.set(id, current);
              return seen;
            });
            return { ...reply, records };
          },
        });
      },
    },
  },
  {
    name: "watch-as-truth",
    mistake: "an event that shows the end of a lease is enough to overwrite what is there",
    caughtBy: [...BELIEF, "fences-grow", "ownership", "linearizability", "no-resurrection"],
    withinSeeds: 300,
    mutations: {
      store: (store, _env, engine) => {
        const free = new Set<string>();
        engine.subscribe({ tenant: null, prefix: "" }, (key, stored) => {
          if (stored.kind !== "found" || stored.record.state !== "held") free.add(keyId(key));
        });
        return withApply(store, async (writes) => {
          const forced = writes.map((write) => {
            const [current] = engine.read([write.key]);
            const known = free.delete(keyId(write.key)) && current?.kind === "found";
            return known ? { ...write, expected: current.version } : write;
          });
          return await store.apply(forced);
        });
      },
    },
  },
  {
    name: "idempotency-unbound",
    mistake: "an idempotency key is answered whatever the arguments are",
    caughtBy: ["idempotency"],
    withinSeeds: 300,
    mutations: {
      decide: withCommand((command, { record }) => {
        const mark = record?.idempotency;
        if (mark === null || mark === undefined || command.idempotency === undefined) return command;
        return { ...command, idempotency: { ...command.idempotency, fingerprint: mark.fingerprint } };
      }),
    },
  },
];
