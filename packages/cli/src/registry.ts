/** The commands. A new one is a spec in `commands/`, its action in `actions/`, and one line here. */
import type { Command, CommandCatalog } from "./command.ts";

type Load = () => Promise<{ readonly command: Command }>;

/** In the order of the help text. Nothing is loaded before it is asked for. */
const COMMANDS: Readonly<Record<string, Load>> = {
  serve: () => import("./commands/serve.ts"),
  mcp: () => import("./commands/mcp.ts"),
  run: () => import("./commands/run.ts"),
  elect: () => import("./commands/elect.ts"),
  acquire: () => import("./commands/acquire.ts"),
  renew: () => import("./commands/renew.ts"),
  release: () => import("./commands/release.ts"),
  use: () => import("./commands/use.ts"),
  resume: () => import("./commands/resume.ts"),
  handoff: () => import("./commands/handoff.ts"),
  get: () => import("./commands/get.ts"),
  ls: () => import("./commands/ls.ts"),
  watch: () => import("./commands/watch.ts"),
  top: () => import("./commands/top.ts"),
  revoke: () => import("./commands/revoke.ts"),
  break: () => import("./commands/break.ts"),
  collect: () => import("./commands/collect.ts"),
  repair: () => import("./commands/repair.ts"),
  keys: () => import("./commands/keys.ts"),
  audit: () => import("./commands/audit.ts"),
  keygen: () => import("./commands/keygen.ts"),
  approve: () => import("./commands/approve.ts"),
  quorum: () => import("./commands/quorum.ts"),
  coordinator: () => import("./commands/coordinator.ts"),
  sim: () => import("./commands/sim.ts"),
  explore: () => import("./commands/explore.ts"),
  doctor: () => import("./commands/doctor.ts"),
  schema: () => import("./commands/schema.ts"),
  completion: () => import("./commands/completion.ts"),
  version: () => import("./commands/version.ts"),
  help: () => import("./commands/help.ts"),
};

export const catalog: CommandCatalog = {
  names: () => Object.keys(COMMANDS),
  load: async (name) => {
    const load = Object.hasOwn(COMMANDS, name) ? COMMANDS[name] : undefined;
    return load === undefined ? null : (await load()).command;
  },
  loadAll: async () => {
    const modules = await Promise.all(Object.values(COMMANDS).map((load) => load()));
    return modules.map(({ command }) => command);
  },
};
