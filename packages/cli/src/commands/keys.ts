/** `solehold keys`: the API keys of a server, kept in its data folder. A running server follows changes. */
import type { Command, Invocation } from "../command.ts";
import { COMMON_OPTIONS } from "../options.ts";

const VERBS = ["add", "ls", "revoke"] as const;

/** Names for actions that go together. */
const GROUPS = {
  hold: ["acquire", "renew", "release", "use", "resume", "handoff"],
  operate: ["revoke", "break"],
} as const;

export const command: Command = {
  name: "keys",
  summary: "Make, list and revoke the API keys of a server",
  usage: "add NAME | ls | revoke ID [options]",
  positionals: [
    { name: "add|ls|revoke", presence: "required", choices: VERBS },
    { name: "NAME or ID", presence: "optional" },
  ],
  trailing: "none",
  options: {
    "data-dir": {
      type: "value",
      placeholder: "FOLDER",
      help: "the server's data folder (env SOLEHOLD_DATA_DIR; default ./.solehold)",
    },
    tenants: { type: "value", placeholder: "LIST", help: "tenants it is for, or '*' (default 'default')" },
    prefixes: {
      type: "value",
      placeholder: "LIST",
      help: "names must begin with one of these (default: all names)",
    },
    actions: {
      type: "value",
      placeholder: "LIST",
      help: "what it allows: acquire, renew, release, use, resume, handoff, revoke, break, read, repair, collect, audit, coordinate, metrics; hold for the first six, operate for revoke and break, '*' for all (default hold,read)",
    },
    ...COMMON_OPTIONS,
  },
  notes: [
    "Lists are separated by commas. The key itself is shown once, by add; on disk there is only its hash.",
    "With the first key a server needs keys for everything, and a running one from that moment on. Revoking takes effect within a second.",
  ],
  examples: [
    { line: "solehold keys add ci --tenants ci --prefixes deploy/", what: "a key for one team's leases" },
    { line: "solehold keys add admin --tenants '*' --actions '*'", what: "a key for everything" },
    { line: "solehold keys revoke 3f2a9c0d1e4b", what: "the id is the first part of a key, and in ls" },
  ],
  run,
};

async function run(invocation: Invocation): Promise<number> {
  const { KeyFile } = await import("@solehold/server");
  const { realEnv } = await import("solehold");
  const { usageFailure } = await import("../failure.ts");
  const { values, io, positionals } = invocation;
  const [verb, subject] = positionals;
  const folder = values["data-dir"] ?? io.env.SOLEHOLD_DATA_DIR ?? "./.solehold";
  const file = new KeyFile(folder, realEnv);
  if (verb === "ls") return await list(invocation, file);
  if (verb !== "add" && verb !== "revoke") {
    throw usageFailure(`keys takes add, ls or revoke, got ${JSON.stringify(verb)}`);
  }
  if (subject === undefined) throw usageFailure(`keys ${verb} needs ${verb === "add" ? "a NAME" : "the ID"}`);
  return verb === "add" ? await add(invocation, file, subject) : await revoke(invocation, file, subject);
}

type KeyFile = InstanceType<typeof import("@solehold/server").KeyFile>;

async function add(invocation: Invocation, file: KeyFile, name: string): Promise<number> {
  const { tenantProblem } = await import("solehold");
  const { usageFailure } = await import("../failure.ts");
  const { printAnswer } = await import("../text/print.ts");
  const { values } = invocation;
  const tenants = listOf(values.tenants ?? "default");
  for (const tenant of tenants) {
    const problem = tenant === "*" ? null : tenantProblem(tenant);
    if (problem !== null) throw usageFailure(`--tenants ${problem}, got ${JSON.stringify(tenant)}`);
  }
  const prefixes = values.prefixes === undefined ? [""] : listOf(values.prefixes);
  const actions = await actionsOf(values.actions ?? "hold,read");
  const { key, stored } = await file.add({ name, tenants, prefixes, actions });
  printAnswer(invocation, {
    document: () => ({ id: stored.id, key, name, tenants, prefixes, actions }),
    lines: () => [key, "", "Keep it: it is not shown again. Clients send it as SOLEHOLD_API_KEY."],
  });
  return 0;
}

async function actionsOf(
  text: string,
): Promise<readonly typeof import("@solehold/server").ACTIONS[number][]> {
  const { ACTIONS } = await import("@solehold/server");
  const { usageFailure } = await import("../failure.ts");
  const { didYouMean } = await import("../parse/suggest.ts");
  const wanted = new Set<string>();
  for (const word of listOf(text)) {
    const group = Object.hasOwn(GROUPS, word) ? GROUPS[word as keyof typeof GROUPS] : null;
    for (const action of word === "*" ? ACTIONS : (group ?? [word])) wanted.add(action);
  }
  const unknown = [...wanted].find((word) => !ACTIONS.some((action) => action === word));
  if (unknown !== undefined) {
    const known = [...ACTIONS, ...Object.keys(GROUPS), "*"];
    throw usageFailure(`--actions has no '${unknown}'${didYouMean(unknown, known)}: use ${known.join(", ")}`);
  }
  return ACTIONS.filter((action) => wanted.has(action));
}

async function list(invocation: Invocation, file: KeyFile): Promise<number> {
  const { printAnswer } = await import("../text/print.ts");
  const { tableLines } = await import("../text/table.ts");
  const keys = (await file.read()).map(({ hash: _hash, ...key }) => key);
  const titles = ["ID", "NAME", "TENANTS", "PREFIXES", "ACTIONS", "CREATED", "STATE"];
  const columns = titles.map((title) => ({ title, align: "left" as const }));
  const rows = keys.map((key) => [
    key.id,
    key.name,
    key.tenants.join(","),
    key.prefixes.includes("") ? "(all)" : key.prefixes.join(","),
    key.actions.join(","),
    key.createdAt.slice(0, 10),
    key.revokedAt === undefined ? "valid" : `revoked ${key.revokedAt.slice(0, 10)}`,
  ]);
  printAnswer(invocation, {
    document: () => ({
      keys: keys.map(({ revokedAt, ...key }) => ({ ...key, revokedAt: revokedAt ?? null })),
    }),
    lines: () =>
      keys.length === 0
        ? ["no API keys: the server listens on loopback only"]
        : tableLines(columns, rows, null, (cell) => cell),
  });
  return 0;
}

async function revoke(invocation: Invocation, file: KeyFile, id: string): Promise<number> {
  const { EXIT } = await import("../exit-codes.ts");
  const { Failure } = await import("../failure.ts");
  const { printAnswer } = await import("../text/print.ts");
  if (!(await file.revoke(id))) {
    throw new Failure(`there is no valid key with the id ${JSON.stringify(id)}: see solehold keys ls`, {
      exitCode: EXIT.error,
      code: "KEY_NOT_FOUND",
    });
  }
  printAnswer(invocation, {
    document: () => ({ id, revoked: true }),
    lines: () => [`${id} is revoked: servers stop accepting it within a second`],
  });
  return 0;
}

function listOf(text: string): readonly string[] {
  return text
    .split(",")
    .map((item) => item.trim())
    .filter((item) => item !== "");
}
