/** The API keys of a server, kept in its data folder. A running server follows changes. */
import { ACTIONS, type Action, KeyFile, KeyStore, type Keys, type StoredKey } from "@solehold/server";
import { openStore } from "solehold";
import { given, realEnv, tenantProblem } from "solehold/internal";
import type { Invocation } from "../command.ts";
import { EXIT, errorFailure, usageFailure } from "../failure.ts";
import { printAnswer } from "../format/answer.ts";
import { plainTable } from "../format/table.ts";
import { durationOption } from "../parse/option-values.ts";
import { didYouMean } from "../parse/suggest.ts";

/** Names for actions that go together. */
const GROUPS: Readonly<Record<string, readonly string[]>> = {
  hold: ["acquire", "renew", "release", "use", "resume", "handoff"],
  operate: ["revoke", "break"],
  "*": ACTIONS,
};

/** What people in a role need, by --role. */
const ROLES: Readonly<Record<string, string>> = {
  holder: "hold,read",
  observer: "read,metrics",
  auditor: "read,audit",
  operator: "hold,read,operate,repair,collect,metrics",
  administrator: "*",
};

export async function keys(invocation: Invocation): Promise<number> {
  const { values, io, positionals } = invocation;
  const [verb, subject] = positionals;
  if (verb !== "ls" && subject === undefined)
    throw usageFailure(`keys ${verb} needs ${verb === "add" ? "a NAME" : "the ID"}`);
  if (values.store === undefined) {
    const folder = values["data-dir"] ?? io.env.SOLEHOLD_DATA_DIR ?? "./.solehold";
    return await carryOut(invocation, new KeyFile(folder, realEnv));
  }
  if (values["data-dir"] !== undefined)
    throw usageFailure("--data-dir and --store exclude each other: give one of them");
  const store = await openStore(values.store, { env: realEnv });
  try {
    return await carryOut(invocation, new KeyStore(store, realEnv));
  } finally {
    await store.close();
  }
}

async function carryOut(invocation: Invocation, file: Keys): Promise<number> {
  const [verb, subject = ""] = invocation.positionals;
  if (verb === "ls") return await list(invocation, file);
  return verb === "add" ? await add(invocation, file, subject) : await revoke(invocation, file, subject);
}

async function add(invocation: Invocation, file: Keys, name: string): Promise<number> {
  const { values } = invocation;
  if (values.role !== undefined && values.actions !== undefined)
    throw usageFailure("--role and --actions exclude each other: give one of them");
  const tenants = listOf(values.tenants ?? "default");
  for (const tenant of tenants) {
    const problem = tenant === "*" ? null : tenantProblem(tenant);
    if (problem !== null) throw usageFailure(`--tenants ${problem}, got ${JSON.stringify(tenant)}`);
  }
  const prefixes = values.prefixes === undefined ? [""] : listOf(values.prefixes);
  const actions = actionsOf(values.actions ?? ROLES[values.role ?? "holder"] ?? "");
  const lifeMs = durationOption(invocation, "expires", 1_000);
  const expiresAt = lifeMs === null ? null : new Date(realEnv.wallMs() + lifeMs).toISOString();
  const rights = { name, tenants, prefixes, actions, ...given({ expiresAt }) };
  const { key, stored } = await file.add(rights);
  const until = expiresAt === null ? "" : ` It expires at ${expiresAt}.`;
  printAnswer(invocation, {
    document: () => ({ id: stored.id, key, ...rights, expiresAt }),
    lines: () => [key, "", `Keep it: it is not shown again. Clients send it as SOLEHOLD_API_KEY.${until}`],
  });
  return EXIT.ok;
}

function actionsOf(text: string): readonly Action[] {
  const wanted = new Set(
    listOf(text).flatMap((word) => (Object.hasOwn(GROUPS, word) ? (GROUPS[word] ?? []) : [word])),
  );
  const unknown = [...wanted].find((word) => !ACTIONS.some((action) => action === word));
  if (unknown !== undefined) {
    const known = [...ACTIONS, ...Object.keys(GROUPS)];
    throw usageFailure(`--actions has no '${unknown}'${didYouMean(unknown, known)}: use ${known.join(", ")}`);
  }
  return ACTIONS.filter((action) => wanted.has(action));
}

async function list(invocation: Invocation, file: Keys): Promise<number> {
  const found = (await file.read()).map(({ hash: _hash, ...key }) => key);
  const rows = found.map((key) => [
    key.id,
    key.name,
    key.tenants.join(","),
    key.prefixes.includes("") ? "(all)" : key.prefixes.join(","),
    key.actions.join(","),
    key.createdAt.slice(0, 10),
    stateOf(key),
  ]);
  const titles = ["ID", "NAME", "TENANTS", "PREFIXES", "ACTIONS", "CREATED", "STATE"];
  printAnswer(invocation, {
    document: () => ({
      keys: found.map((key) => ({
        ...key,
        expiresAt: key.expiresAt ?? null,
        revokedAt: key.revokedAt ?? null,
      })),
    }),
    lines: () =>
      rows.length === 0 ? ["no API keys: the server listens on loopback only"] : plainTable(titles, rows),
  });
  return EXIT.ok;
}

function stateOf({ revokedAt, expiresAt }: Pick<StoredKey, "revokedAt" | "expiresAt">): string {
  if (revokedAt !== undefined) return `revoked ${revokedAt.slice(0, 10)}`;
  if (expiresAt === undefined) return "valid";
  const isOver = Date.parse(expiresAt) <= realEnv.wallMs();
  return `${isOver ? "expired" : "valid until"} ${expiresAt.slice(0, 10)}`;
}

async function revoke(invocation: Invocation, file: Keys, id: string): Promise<number> {
  if (!(await file.revoke(id))) {
    const message = `there is no valid key with the id ${JSON.stringify(id)}: see solehold keys ls`;
    throw errorFailure("KEY_NOT_FOUND", message);
  }
  printAnswer(invocation, {
    document: () => ({ id, revoked: true }),
    lines: () => [`${id} is revoked: servers stop accepting it within a second`],
  });
  return EXIT.ok;
}

function listOf(text: string): readonly string[] {
  const items = text.split(",").map((item) => item.trim());
  return items.filter((item) => item !== "");
}
