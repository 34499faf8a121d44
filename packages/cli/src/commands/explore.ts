/** `solehold explore`: every state of small worlds, on the shipped decision and validity functions. */
import { type Command, choice, flag, value } from "../command.ts";
import { COMMON_OPTIONS } from "../options.ts";

/** Repeated here so that help and completion need not load the simulator; a test compares. */
export const BUG_CHOICES: readonly string[] = `
  margin-zero stamp-from-reply takeover-by-latest stamp-from-earliest no-compare-and-swap delete-on-release
  same-fence-on-regrant renew-expired renew-revives-released release-by-key revoke-frees-at-once release-before-stopping
  constant-nonce collect-at-once collect-without-floor expired-stays-taken handoff-for-anybody break-ignored
  guard-off min-hold-ends-with-release lock-delay-ignored slot-taken-from-its-holder
`
  .trim()
  .split(/\s+/);
export const WORLD_CHOICES = [
  "clocks",
  "late",
  "both",
  "guard",
  "handoff",
  "closed",
  "crowd",
  "keys",
  "slots",
] as const;

export const command: Command = {
  name: "explore",
  summary: "Walk through all interleavings of small worlds",
  usage: "[options]",
  options: {
    world: choice(WORLD_CHOICES, "only this world (default all)"),
    bug: choice(BUG_CHOICES, "plant this mistake and show the shortest way to it"),
    bugs: flag("plant every mistake, one after another"),
    clients: value("N", "with --world: so many clients"),
    keys: value("N", "with --world: so many keys"),
    ttl: value("N", "with --world: a lease lasts so many ticks"),
    lag: value("N", "with --world: clocks are off by so many ticks at most"),
    doubt: value("N", "with --world: the store's time is known within N ticks"),
    late: value("N", "with --world: so many requests may come too late"),
    ...COMMON_OPTIONS,
  },
  notes: ["Exit code 1 when a promise is broken, or when a planted mistake is not found."],
  examples: {
    "solehold explore": "all worlds: all promises hold",
    "solehold explore --bug margin-zero": "the shortest trace to a false belief",
    "solehold explore --world crowd --ttl 4": "a larger world",
  },
  action: async () => (await import("../actions/explore.ts")).explore,
};
