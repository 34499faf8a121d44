/** `solehold doctor`: can the store be reached, and may it be trusted with leases? */
import type { Command } from "../command.ts";
import { CONNECTION_OPTIONS } from "../options.ts";

export const command: Command = {
  name: "doctor",
  summary: "Check a store: reachable, compare-and-swap, clock, durability, permissions",
  usage: "[options]",
  options: CONNECTION_OPTIONS,
  notes: [
    `It takes real leases on keys of its own (solehold-doctor/...) and cleans up after itself. Exit code 1 when
a check failed; warnings do not count.`,
  ],
  examples: {
    "solehold doctor": "the default store",
    "solehold doctor --store redis://localhost:6379 --json": "another one, for a script",
  },
  action: async () => (await import("../actions/doctor.ts")).doctor,
};
