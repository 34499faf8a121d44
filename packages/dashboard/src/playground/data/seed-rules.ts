/** Rules whose mistake is shown by a drawn world: the shortest of several that were found and shrunk. */
import type { Case } from "./case.ts";
import { ruleSeed } from "./rule-seeds.ts";

/** Bug, title, what the rule is for, and what comes of the mistake. */
type Row = readonly [bug: string, title: string, text: string, bugText: string];

const ROWS: readonly Row[] = [
  [
    "takeover-by-latest",
    "The earliest time decides about others",
    "A client knows the store's time only as an interval. Another's lease is over when even the earliest time of that interval says so.",
    "Here another's lease is judged dead by the latest time that the store may show. It may have a moment left, and its holder uses it.",
  ],
  [
    "stamp-from-earliest",
    "The latest time is written",
    "An expiry is written from the latest time that the store may show, so that nobody sees it end before its holder does.",
    "Here it is written from the earliest time. The record ends before the holder's own count does.",
  ],
  [
    "delete-on-release",
    "A release leaves a tombstone",
    "The record of an ended lease stays for a while, and with it the highest fence.",
    "Here a release deletes the record. On a store that counts, the next grant begins with fence 1 again, below what the guard has seen.",
  ],
  [
    "renew-expired",
    "What is over stays over",
    "A renewal that comes after the end is refused, even if nobody has taken the lease since.",
    "Here an expired lease can be renewed as long as nobody took it. Its holder has been stopped, and the lease comes back to life behind it.",
  ],
  [
    "renew-revives-released",
    "A renewal looks at the state",
    "A released or revoked lease cannot be renewed, however much of its time is left.",
    "Here a renewal looks at the time only. A renewal that was under way brings back what its owner had released.",
  ],
  [
    "name-is-proof",
    "A name is no proof",
    "A grant is proved by its token. Two processes with one name are two holders.",
    "Here whoever has the holder's name has its lease. A second process of the same name takes it from the first, which still believes.",
  ],
  [
    "handoff-for-anybody",
    "A handoff has one successor",
    "Until its deadline a lease that was handed on is kept for the successor that was named.",
    "Here it is given to whoever comes first. The successor was promised something that another got.",
  ],
  [
    "reservation-ignored",
    "A reservation is kept",
    "A released lease is kept for a moment for the process whose turn it is.",
    "Here it is given to whoever comes first. The waiter that was promised it finds it taken.",
  ],
  [
    "min-hold-ends-with-release",
    "A minimum hold outlives a release",
    "A lease that was asked for with a minimum hold stays closed until that time is over, even if it is released before.",
    "Here a release ends the minimum hold too. The lease is granted again in a period in which nobody was to have it.",
  ],
  [
    "lock-delay-ignored",
    "A lock delay is waited for",
    "A lease that expired stays closed for the delay that its holder asked for, so that late work can end.",
    "Here an expired lease can be claimed at once. The delay that was asked for is not there when it is needed.",
  ],
  [
    "nobody-yields",
    "A release serves who waits",
    "A release is for the process that has waited longest, not for the one that is fastest.",
    "Here a release is for whoever comes first. Those who wait can wait for ever.",
  ],
  [
    "priority-ignored",
    "A higher priority is served first",
    "Of those who wait in a process, the one with the highest priority is served first; among equals, the one that came first.",
    "Here a priority is forgotten on the way to the queue. The waiter that was to go first goes last.",
  ],
  [
    "break-ignored",
    "A break sets an end",
    "A break gives the holder a last period; renewals do not reach beyond it.",
    "Here renewals run past the end that the break has set. Whoever asked for the break waits for ever.",
  ],
  [
    "unknown-read-as-lost",
    "Unknown is not the same as no",
    "If an answer is lost, a write may have been done or not. The caller learns just that, or finds out by reading.",
    "Here a lost answer is reported as 'not done'. The write is there all the same, and no order of events explains both.",
  ],
  [
    "acknowledged-before-durable",
    "Acknowledged is kept",
    "A store may answer only when a write will survive. That is asked of every store by the conformance kit.",
    "Here the store forgets writes that it has acknowledged. The next client finds an empty place and takes what another holds.",
  ],
  [
    "stale-reads",
    "Reads are current",
    "A read shows the last write, or the store says that it may not.",
    "Here reads come from a replica that lags behind, and nobody said so. Answers contradict each other.",
  ],
  [
    "watch-as-truth",
    "A hint never decides",
    "A watch event may save a read. The write is still conditional on the version that the decision was based on.",
    "Here an event that shows the end of a lease is enough to overwrite what is there. The event was old, and so is what it said.",
  ],
  [
    "idempotency-unbound",
    "One key, one question",
    "An idempotency key repeats the answer to the same question, and refuses another one.",
    "Here the key is answered whatever the arguments are. A caller that asked for twenty seconds is given the grant of ten.",
  ],
  [
    "counted-after-loss",
    "Fences come from the clock",
    "Where the store may lose records, the next fence is taken from the store's time, which does not go back.",
    "Here generations are counted from the last record. When that is lost the count begins again below what the guard has seen.",
  ],
  [
    "skew-not-declared",
    "Several clocks are declared",
    "A store with several machines says how far apart their clocks may be, and clients add that to what they do not know.",
    "Here it says that it has one clock. A client takes over by a machine whose clock is ahead.",
  ],
  [
    "server-change-unreported",
    "A failover is announced",
    "A client that meets a new server after a failover observes the record for a while before it trusts the clock.",
    "Here nobody says that another server took over. A client that comes after it takes the new clock for the old one and judges a living lease dead.",
  ],
  [
    "one-token-per-process",
    "A token for each grant",
    "Each attempt brings its own secret, so that an attempt finds its own grant and no other.",
    "Here all grants of a process carry one token. Two calls of that process find one grant, and both believe that it is theirs.",
  ],
  [
    "everybody-polls",
    "First come, first served",
    "Those who wait in a process stand in one queue, and the first of them asks.",
    "Here each call asks again and again for itself. Who comes second is served first.",
  ],
  [
    "timers-never-cancelled",
    "Nothing is left behind",
    "When everything is released and closed, no timer is left.",
    "Here a timer that is no longer needed is left to fire. A program that takes many leases fills up with them.",
  ],
  [
    "raise-ignored",
    "A new holder raises first",
    "Before it reads, a new holder shows its fence to the guard. From then on no older fence passes, although nothing was written yet.",
    "Here the guard says yes to a raise and forgets it. A write of the holder before still passes, after the new one has read.",
  ],
  [
    "guard-accepts-by-holder-count",
    "The highest fence counts",
    "A guard compares with the highest fence that it has ever seen.",
    "Here it compares with the last one only. Two writes in the wrong order lower the bar for a third.",
  ],
  [
    "refusals-not-audited",
    "Refusals are audited",
    "Every attempt is in the audit once, with the answer that was given.",
    "Here only what was allowed is written down. Whoever asks later why a job did not run finds nothing.",
  ],
  [
    "acquire-without-compare-and-swap",
    "A grant is written on a condition",
    "Between finding a lease free and taking it another may be quicker. The write says what it found, and fails if that changed.",
    "Here an acquire that found the lease free writes without a condition. It overwrites whoever was quicker, and both believe.",
  ],
  [
    "goes-on-after-a-pause",
    "After a pause, look first",
    "A process cannot know that it stood still. So it reads its clocks before each step, and not only when a timer fires.",
    "Here a process goes on after a pause with what it believed before. Its lease went to another while it stood still.",
  ],
  [
    "suspect-shut-out",
    "Who only looked dead comes back",
    "A process that stood still lost its lease rightly. It asks again like any other, and is served.",
    "Here a process that lost a lease because it looked dead gets no other. It lives, and nobody serves it any more.",
  ],
  [
    "record-without-its-key",
    "A record says whose it is",
    "A disk can write to the wrong place. A record names its key, so one that landed under another is recognised and reported as damaged.",
    "Here whatever stands under a key is taken for that key's record. The lease of another key is believed where it never was granted.",
  ],
  [
    "audit-forgets-unknown",
    "What is unknown is audited",
    "An attempt whose fate nobody knows is written down as that.",
    "Here it is left out. A grant of the store has no entry in the audit.",
  ],
  [
    "one-slot-too-many",
    "Slots are counted once",
    "A name with three slots is held by three at most. Each slot is an ordinary lease with a fence of its own.",
    "Here the slots are counted from 0 to their number. There is one more than was asked for.",
  ],
  [
    "slot-taken-from-its-holder",
    "A full house is a denial",
    "Who finds all slots taken waits, or is denied.",
    "Here it takes the slot that ends first. Its holder does not know, and one more believes than there are slots.",
  ],
  [
    "several-in-any-order",
    "Several names, one order",
    "Who wants several names waits for them in the order of the names, whatever order it wrote them in.",
    "Here each waits in its own order. Two that want the same names hold one each, and wait for each other.",
  ],
];

export const SEED_RULES: readonly Case[] = ROWS.map(([bug, title, text, bugText]) => ({
  id: bug,
  title,
  text,
  bug,
  bugText,
  world: { kind: "seed", seed: ruleSeed(bug) },
  shipped: { violation: null, holders: null, refused: null },
  broken: { violation: ruleSeed(bug).oracle, holders: null, refused: null },
}));
