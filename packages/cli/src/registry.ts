/** The commands, in the order of the help text. A new one is a spec in `commands/`, its action in `actions/`, and a name here. */
import type { Command } from "./command.ts";
import { completion, help, version } from "./commands/about.ts";
import { approve, coordinator, keygen, quorum } from "./commands/approvals.ts";
import { acquire, handoff, release, renew, resume, use } from "./commands/holder.ts";
import { get, ls, top, watch } from "./commands/look.ts";
import { breakLease, collect, doctor, repair, revoke, schema } from "./commands/operator.ts";
import { explore, sim } from "./commands/proof.ts";
import { elect, run } from "./commands/run.ts";
import { audit, keys, mcp, serve } from "./commands/server.ts";

export const COMMANDS: readonly Command[] = [
  serve,
  mcp,
  run,
  elect,
  acquire,
  renew,
  release,
  use,
  resume,
  handoff,
  get,
  ls,
  watch,
  top,
  revoke,
  breakLease,
  collect,
  repair,
  keys,
  audit,
  keygen,
  approve,
  quorum,
  coordinator,
  sim,
  explore,
  doctor,
  schema,
  completion,
  version,
  help,
];
