// What Leases promise, wherever they come from. Each way to reach leases runs all of it.
import { describeAcquiring } from "./acquiring.ts";
import { describeBelief } from "./belief.ts";
import { describeClosedPeriods } from "./closed-periods.ts";
import { describeCommands } from "./commands.ts";
import { describeHolding } from "./holding.ts";
import { describeOperating } from "./operating.ts";
import { describeSeveral } from "./several.ts";
import { describeSlots } from "./slots.ts";
import { describeWaiting } from "./waiting.ts";
import type { OpenWorld } from "./world.ts";

export { type OpenWorld, World } from "./world.ts";

export function describeLeases(open: OpenWorld): void {
  describeAcquiring(open);
  describeWaiting(open);
  describeBelief(open);
  describeHolding(open);
  describeOperating(open);
  describeClosedPeriods(open);
  describeSlots(open);
  describeSeveral(open);
  describeCommands(open);
}
