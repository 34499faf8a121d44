/** Mistakes about what is told or seen before it is certain: news, and ends that are not safe yet. */
import { keyId, type LeaseKey } from "../../core/index.ts";
import type { ConditionalWrite, LeaseStore, StoreEvent, WriteResult } from "../../store/index.ts";
import { isGivenBack } from "../../stores/postgres/writes.ts";
import type { StoreEngine } from "../store/engine.ts";
import type { PlantedBug } from "./bug.ts";
import { withApply, withMembers } from "./wrap.ts";

const BELIEF = ["mutual-belief", "belief-has-record"];

export const NEWS_BUGS: readonly PlantedBug[] = [
  {
    name: "told-version-not-compared",
    mistake: "what news has shown of a key is taken for what is there: the write on it asks for no version",
    caughtBy: [...BELIEF, "fences-grow", "ownership", "linearizability", "no-resurrection"],
    withinSeeds: 200,
    mutations: { store: (store, _env, engine) => trustingWhatWasTold(store, engine) },
  },
  {
    name: "own-news-taken-for-answer",
    mistake: "a release counts as done when the news of it arrives, which may be before it is safe",
    caughtBy: ["linearizability"],
    withinSeeds: 200,
    mutations: { store: (store, _env, engine) => answeringByNews(store, engine) },
  },
  {
    name: "end-answered-unsafe",
    mistake: "the store answers a release as soon as others can see it, before its disk has it",
    caughtBy: ["linearizability"],
    withinSeeds: 200,
    mutations: { engineLog: "end answered unsafe" },
  },
  {
    name: "grant-answered-unsafe",
    mistake: "the store answers a grant before its disk has it, and the end on which it stands",
    caughtBy: [...BELIEF, "fences-grow", "linearizability", "ownership", "liveness", "idempotency"],
    withinSeeds: 200,
    mutations: { engineLog: "grant answered unsafe" },
  },
  {
    name: "grant-seen-unsafe",
    mistake:
      "the store shows grants before they are safe, as it does with ends: a fence is seen that was never given",
    caughtBy: [...BELIEF, "fences-grow", "linearizability", "liveness"],
    withinSeeds: 200,
    mutations: { engineLog: "grant seen unsafe" },
  },
  {
    name: "end-not-doubted",
    mistake:
      "whoever looks is shown a release that is not safe, and one that was not answered counts as done",
    caughtBy: ["linearizability"],
    withinSeeds: 400,
    mutations: { endDoubts: "never" },
  },
];

function trustingWhatWasTold(store: LeaseStore, engine: StoreEngine): LeaseStore {
  const told = new Map<string, string>();
  const noting =
    (listener: (event: StoreEvent) => void) =>
    (event: StoreEvent): void => {
      if (event.kind === "reset" || event.stored === undefined) {
        listener(event);
        return;
      }
      const { key, stored } = event;
      const look = (): ReturnType<typeof stored> => {
        const shown = stored();
        if (shown?.kind === "found") told.set(keyId(key), shown.version);
        return shown;
      };
      listener({ ...event, stored: look });
    };
  const forced = (write: ConditionalWrite): ConditionalWrite => {
    const [current] = engine.read([write.key]);
    const isTold = write.expected !== null && told.get(keyId(write.key)) === write.expected;
    return isTold && current?.kind === "found" ? { ...write, expected: current.version } : write;
  };
  const { watch, standInLine } = store;
  return withMembers(store, {
    apply: (writes) => store.apply(writes.map(forced)),
    ...(watch === undefined ? {} : { watch: (scope, listener) => watch(scope, noting(listener)) }),
    ...(standInLine === undefined
      ? {}
      : { standInLine: (key, listener) => standInLine(key, noting(listener)) }),
  });
}

function answeringByNews(store: LeaseStore, engine: StoreEngine): LeaseStore {
  return withApply(store, (writes) => {
    const [write] = writes;
    const nonce = write?.next?.nonce;
    const answer = store.apply(writes);
    if (write === undefined || writes.length > 1 || !isGivenBack(write) || nonce === undefined) return answer;
    return Promise.race([answer, ownNews(engine, write.key, nonce)]).then((reply) =>
      "results" in reply ? reply : { storeTimeMs: null, results: [reply] },
    );
  });
}

function ownNews(engine: StoreEngine, key: LeaseKey, nonce: string): Promise<WriteResult> {
  return new Promise((resolve) => {
    const forget = engine.subscribe({ tenant: key.tenant, prefix: key.name }, (_event, stored) => {
      if (stored.kind !== "found" || stored.record.nonce !== nonce) return;
      resolve({ kind: "applied", version: stored.version });
      forget();
    });
  });
}
