/** Worlds written by hand: what can befall a lease, what the shipped code does about it, and what happens without a rule. */
import type { Script, ScriptStep } from "@solehold/simulator";
import type { Case } from "./case.ts";

const WRITES = { writeEveryMs: 2_000 } as const;
const A_TAKES: ScriptStep = { atMs: 500, node: "A", do: "acquire", ...WRITES };
const B_WAITS: ScriptStep = { atMs: 3_000, node: "B", do: "acquire", ...WRITES };

const BASE: Script = {
  nodes: ["A", "B"],
  ttlMs: 10_000,
  endMs: 30_000,
  driftRatio: 0.01,
  steps: [A_TAKES, B_WAITS],
  faults: [],
};

function script(changes: Partial<Script>): Case["world"] {
  return { kind: "script", script: { ...BASE, ...changes } };
}

const A_THEN_B = { violation: null, holders: ["A", "B"], refused: false } as const;

export const SCENARIOS: readonly Case[] = [
  {
    id: "frozen-store",
    title: "Frozen store",
    text: "The store stops answering while A holds the lease. A cannot renew, so it stops by its own clock before its time is over, without anybody telling it. B, who waits, is granted the lease when the store is back, with a higher fence.",
    bug: "no-expiry-timer",
    bugText:
      "Here a holder learns that its time is over only from its next renewal. While the store is silent nobody tells it, and it works on after its lease has ended.",
    world: script({ faults: [{ kind: "pause", on: "store", atMs: 11_500, forMs: 12_000 }] }),
    shipped: A_THEN_B,
    broken: { ...A_THEN_B, violation: "abort-in-time" },
  },
  {
    id: "late-reply",
    title: "Late reply",
    text: "A's grant is written at once, but the answer takes more than four seconds. A counts its ten seconds from before it asked, so the late answer leaves it only five. It stops before the record runs out, and B takes over.",
    bug: "stamp-from-reply",
    bugText:
      "Here the holder counts from the moment the answer came. It believes four seconds longer than its record lasts, and for that long A and B both hold the lease.",
    world: script({
      steps: [{ ...A_TAKES, renew: "no", writeEveryMs: 1_500 }, B_WAITS],
      faults: [{ kind: "slow", on: "A", way: "replies", atMs: 1_200, forMs: 4_600 }],
    }),
    shipped: A_THEN_B,
    broken: { violation: "abort-in-time", holders: ["A", "B"], refused: true },
  },
  {
    id: "drifting-clock",
    title: "Drifting clock",
    text: "A's clock runs nine per cent slow, within the ten per cent that it expects, and then A is cut off from the store. It stops one margin early, so even its slow second is over before the record ends. B comes in that moment and is granted.",
    bug: "margin-zero",
    bugText:
      "Here the holder stops exactly when its own clock says that the time is up. Its clock is slow, so it believes for most of a second after the record has ended and B holds the lease.",
    world: script({
      driftRatio: 0.1,
      steps: [A_TAKES, { ...B_WAITS, atMs: 15_500 }],
      faults: [
        { kind: "clock-rate", on: "A", atMs: 0, forMs: 30_000, amount: 0.91 },
        { kind: "cut", on: "A", atMs: 8_000, forMs: 15_000 },
      ],
    }),
    shipped: A_THEN_B,
    broken: { ...A_THEN_B, violation: "belief-has-record" },
  },
  {
    id: "suspended-laptop",
    title: "Suspended laptop",
    text: "A's machine sleeps for fourteen seconds. Its monotonic clock stands still meanwhile, but A also looks at the wall clock, and either one is enough to say that the time is over. When it wakes it knows that B may hold the lease.",
    bug: "monotonic-clock-only",
    bugText:
      "Here the holder measures only with the clock that stands still during sleep. It wakes with almost all of its time left and works beside B.",
    world: script({ faults: [{ kind: "suspend", on: "A", atMs: 6_000, forMs: 14_000 }] }),
    shipped: A_THEN_B,
    broken: { ...A_THEN_B, violation: "false-suspicion-safety" },
  },
  {
    id: "long-pause",
    title: "Long pause",
    text: "A's process stops for fourteen seconds: a garbage collection, a debugger, a busy host. No timer can fire meanwhile. Whoever asks the lease reads the clocks, so the first question after the pause gets the right answer.",
    bug: "held-as-boolean",
    bugText:
      "Here a variable says that the lease is held, and a timer clears it. No timer runs during a pause, so the first thing that A does afterwards is done in the belief that it still holds the lease.",
    world: script({ faults: [{ kind: "pause", on: "A", atMs: 6_000, forMs: 14_000 }] }),
    shipped: A_THEN_B,
    broken: { ...A_THEN_B, violation: "false-suspicion-safety" },
  },
  {
    id: "lost-release",
    title: "Late release",
    text: "A is cut off and cannot release its lease. Nobody waits for ever: the record runs out and B is granted. When the link is back A sends its release, and it is refused, because the lease is B's now.",
    bug: "release-by-key",
    bugText:
      "Here a release ends whatever lease it finds, without proof that it is the caller's. A's late release ends the lease of B, who goes on working beside C.",
    world: script({
      nodes: ["A", "B", "C"],
      steps: [
        { ...A_TAKES, releaseAfterMs: 18_000 },
        B_WAITS,
        { atMs: 17_500, node: "C", do: "acquire", ...WRITES },
      ],
      faults: [{ kind: "cut", on: "A", atMs: 8_200, forMs: 10_800 }],
    }),
    shipped: A_THEN_B,
    broken: { violation: "ownership", holders: ["A", "B", "C"], refused: false },
  },
  {
    id: "zombie-writer",
    title: "Zombie writer",
    text: "A looks, holds the lease, and writes; but its writes are stuck on the way. When they arrive, B has held the lease for five seconds and has written. No lease can prevent that. The guard can: it has seen B's fence and refuses A's lower one.",
    bug: "guard-off",
    bugText:
      "Here the protected resource does not look at the fence. Writes of a holder whose time is long over destroy what the new holder has written.",
    world: script({
      faults: [
        { kind: "slow", on: "A", way: "writes", atMs: 7_000, forMs: 14_000 },
        { kind: "cut", on: "A", atMs: 6_500, forMs: 18_000 },
      ],
    }),
    shipped: { ...A_THEN_B, refused: true },
    broken: { ...A_THEN_B, violation: "guarded-writes" },
  },
];

/** Worlds by hand for rules that have no scenario of their own. */
export const RULE_SCRIPTS: readonly Case[] = [
  {
    id: "two-at-once",
    title: "Two ask at once",
    text: "A and B find no record and both try to write one. The store writes only if what was read still stands, so the second write fails and its sender reads again.",
    bug: "no-compare-and-swap",
    bugText:
      "Here the store writes whatever it is given. Each of the two overwrites the other's grant, and both believe.",
    world: script({ endMs: 12_000, steps: [A_TAKES, { ...B_WAITS, atMs: 520 }] }),
    shipped: { violation: null, holders: ["B"], refused: false },
    broken: { violation: "mutual-belief", holders: ["B", "A"], refused: false },
  },
  {
    id: "fence-kept",
    title: "A fence for each grant",
    text: "A releases and B is granted. The new grant has a higher fence, so the guard can tell A's late writes from B's.",
    bug: "same-fence-on-regrant",
    bugText:
      "Here a new grant keeps the fence of the one before. The guard cannot tell the old holder from the new one any more.",
    world: script({ endMs: 16_000, steps: [{ ...A_TAKES, releaseAfterMs: 6_000 }, B_WAITS] }),
    shipped: A_THEN_B,
    broken: { ...A_THEN_B, violation: "fences-grow" },
  },
  {
    id: "revoked-while-away",
    title: "Revoked while away",
    text: "An operator revokes A's lease while A cannot be reached. Nobody can know whether A has noticed, so B has to wait until A's time is over by any clock.",
    bug: "revoke-frees-at-once",
    bugText:
      "Here a revoked lease can be taken at once. A does not know and works on beside B for six seconds; only the guard stands between them.",
    world: script({
      nodes: ["A", "B", "C"],
      steps: [A_TAKES, B_WAITS, { atMs: 8_000, node: "C", do: "revoke" }],
      faults: [{ kind: "cut", on: "A", atMs: 7_500, forMs: 7_500 }],
    }),
    shipped: A_THEN_B,
    broken: { violation: "belief-has-record", holders: ["A", "B"], refused: true },
  },
  {
    id: "handed-on",
    title: "Handed on",
    text: "A hands its lease to B. It stops first and tells the store then, so there is no instant at which both may act.",
    bug: "handoff-keeps-believing",
    bugText:
      "Here the holder hands its lease on and works until its time is over. The record says that it has released it, and B may act as soon as it is granted.",
    world: script({
      endMs: 16_000,
      steps: [A_TAKES, B_WAITS, { atMs: 8_000, node: "A", do: "hand-off", to: "B" }],
    }),
    shipped: A_THEN_B,
    broken: { ...A_THEN_B, violation: "belief-has-record" },
  },
  {
    id: "wrong-clock",
    title: "Whose clock counts",
    text: "B's wall clock is an hour ahead. That does not matter: whether A's lease is over is judged by the time that the store tells, with what it cannot know about it taken into account.",
    bug: "takeover-by-own-clock",
    bugText:
      "Here whoever wants the lease judges by its own wall clock. B's is an hour ahead, so every lease looks dead to it, and it takes A's while A holds it.",
    world: script({
      endMs: 16_000,
      faults: [{ kind: "wall-step", on: "B", atMs: 1_000, forMs: 0, amount: 3_600_000 }],
    }),
    shipped: { violation: null, holders: ["A"], refused: false },
    broken: { violation: "mutual-belief", holders: ["A", "B"], refused: false },
  },
  {
    id: "clock-set-back",
    title: "A clock that is set back",
    text: "A is cut off, and somebody sets its wall clock back by eight seconds. A also looks at the monotonic clock, which nobody can set, and stops in time.",
    bug: "wall-clock-only",
    bugText:
      "Here the holder measures with the wall clock alone. Set back by eight seconds, it gives A eight seconds that the record does not have.",
    world: script({
      faults: [
        { kind: "cut", on: "A", atMs: 8_000, forMs: 15_000 },
        { kind: "wall-step", on: "A", atMs: 9_000, forMs: 0, amount: -8_000 },
      ],
    }),
    shipped: A_THEN_B,
    broken: { violation: "abort-in-time", holders: ["A", "B"], refused: true },
  },
  {
    id: "lost-answer",
    title: "An answer that is lost",
    text: "A's grant is written and the answer is lost. A reads, finds the random number of its own attempt in the record, and knows that the lease is its own; B, who tried at the same time, finds that it is not.",
    bug: "constant-nonce",
    bugText:
      "Here attempts bear no number of their own. B finds A's record, takes it for its own write, and both believe.",
    world: script({
      endMs: 16_000,
      steps: [A_TAKES, { ...B_WAITS, atMs: 1_000 }],
      faults: [{ kind: "cut", on: "A", way: "replies", atMs: 1_200, forMs: 2_500 }],
    }),
    shipped: { violation: null, holders: ["A"], refused: false },
    broken: { violation: "belief-has-record", holders: ["B", "A"], refused: true },
  },
];
