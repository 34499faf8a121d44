/** The server, who may use it, and what it has decided; and leases for AI agents. */
import { flagName, SETTING_NAMES, SETTINGS, type SettingName } from "@solehold/server/config";
import { type Command, choice, flag, type OptionSpec, value } from "../command.ts";
import { COMMON_OPTIONS, CONNECTION_OPTIONS, TTL_OPTION } from "../options.ts";

const PLACEHOLDERS = { text: "TEXT", count: "NUMBER", duration: "DURATION", choice: "NAME" } as const;

function optionOf(name: SettingName): OptionSpec {
  const { kind, help, fallback, choices, shown } = SETTINGS[name] as (typeof SETTINGS)[SettingName] & {
    readonly choices?: readonly string[];
    readonly shown?: string;
  };
  if (kind === "flag") return flag(help);
  const text = `${help}${fallback === "" ? "" : ` (default ${shown ?? fallback})`}`;
  return choices === undefined ? value(PLACEHOLDERS[kind], text) : choice(choices, text, PLACEHOLDERS[kind]);
}

const SERVE_OPTIONS = {
  config: value("FILE", "settings as JSON (env SOLEHOLD_CONFIG)"),
  ...Object.fromEntries(SETTING_NAMES.map((name) => [flagName(name), optionOf(name)])),
  ...COMMON_OPTIONS,
};

/** `solehold serve`: the lease server. It runs until a signal tells it to stop, and then drains. */
export const serve: Command = {
  name: "serve",
  summary: "Run the lease server",
  options: SERVE_OPTIONS,
  notes: [
    "Each setting is taken from its flag, else from its environment variable (--wait-limit-ms is SOLEHOLD_WAIT_LIMIT_MS), else from the file (waitLimitMs), else its default.",
    "Without API keys it listens on loopback only. Make the first key with 'solehold keys add'.",
    "SIGHUP reads the certificate and the policy file again. What cannot be used is logged, and what was known stays in force.",
    "SIGTERM and SIGINT let requests finish, send waiting clients elsewhere, and make the audit trail safe.",
  ],
  examples: {
    "solehold serve": "on http://127.0.0.1:7077, with an embedded store",
    "solehold serve --store postgres://db/leases --port 8080": "over another store",
  },
  action: async () => (await import("../actions/serve.ts")).serve,
};

/** `solehold mcp`: leases as tools for AI agents, over the Model Context Protocol on stdin and stdout. */
export const mcp: Command = {
  name: "mcp",
  summary: "Offer leases to an AI agent (Model Context Protocol over stdio)",
  options: {
    prefix: value("PREFIX", "the session sees and takes only leases whose names begin with it"),
    ttl: TTL_OPTION,
    ...CONNECTION_OPTIONS,
  },
  notes: [
    `For the configuration of an agent's client, which starts one process for each session. Leases belong to the
session: they are renewed while it lives and released when its input ends. After a kill they end by their ttl.`,
    `The tools are acquire, wait, renew, release, handoff, who and list. None takes a lease from its holder.`,
    "Needs the package @modelcontextprotocol/sdk: npm install @modelcontextprotocol/sdk",
  ],
  examples: {
    "solehold mcp --prefix repo/": "agents on this machine that share a repository",
    "solehold mcp --server https://leases.example": "agents on several machines",
  },
  action: async () => (await import("../actions/mcp.ts")).mcp,
};

/** `solehold keys`: the API keys of a server, kept in its data folder. A running server follows changes. */
export const keys: Command = {
  name: "keys",
  summary: "Make, list and revoke the API keys of a server",
  usage: "add NAME | ls | revoke ID [options]",
  positionals: [
    { name: "add|ls|revoke", presence: "required", choices: ["add", "ls", "revoke"] },
    { name: "NAME or ID", presence: "optional" },
  ],
  options: {
    "data-dir": value("FOLDER", "the server's data folder (env SOLEHOLD_DATA_DIR; default ./.solehold)"),
    store: value(
      "URL",
      "keys for all replicas on this store, in place of a folder: they run with --keys store",
    ),
    tenants: value("LIST", "tenants it is for, or '*' (default 'default')"),
    prefixes: value("LIST", "names must begin with one of these (default: all names)"),
    actions: value(
      "LIST",
      "what it allows: acquire, renew, release, use, resume, handoff, revoke, break, read, repair, collect, audit, coordinate, metrics; hold for the first six, operate for revoke and break, '*' for all (default hold,read)",
    ),
    role: choice(
      ["holder", "observer", "auditor", "operator", "administrator"],
      "the actions of a role, in place of --actions: holder hold,read; observer read,metrics; auditor read,audit; operator all but audit and coordinate; administrator '*'",
    ),
    expires: value("DURATION", "refused after this, such as 90d (default: valid until it is revoked)"),
    ...COMMON_OPTIONS,
  },
  notes: [
    "Lists are separated by commas. The key itself is shown once, by add; on disk there is only its hash.",
    "With the first key a server needs keys for everything, and a running one from that moment on. Revoking, expiry and changes take effect within a second, also for what is open: streams, watches and waits.",
  ],
  examples: {
    "solehold keys add ci --tenants ci --prefixes deploy/": "a key for one team's leases",
    "solehold keys add admin --tenants '*' --actions '*'": "a key for everything",
    "solehold keys add audits --tenants '*' --role auditor --expires 90d": "a key that ends by itself",
    "solehold keys revoke 3f2a9c0d1e4b": "the id is the first part of a key, and in ls",
  },
  action: async () => (await import("../actions/keys.ts")).keys,
};

/** `solehold audit`: what was decided and why, and the proof that nobody changed it since. */
export const audit: Command = {
  name: "audit",
  summary: "List, export and verify the audit trail of a server",
  usage: "ls | export | verify | head [options]",
  positionals: [
    { name: "ls|export|verify|head", presence: "required", choices: ["ls", "export", "verify", "head"] },
  ],
  options: {
    folder: value("FOLDER", "the trail's folder (default: audit in SOLEHOLD_DATA_DIR, or ./.solehold/audit)"),
    server: value("URL", "a running server, in place of --folder (env SOLEHOLD_URL, if it names one)"),
    tenant: value("NAME", "only this tenant"),
    key: value("KEY", "only this lease"),
    holder: value("NAME", "only this holder"),
    caller: value("ID", "only requests with the API key of this id"),
    action: value("NAME", "only this: grant, renew, release, use, expire, ..."),
    anchor: value("HEAD", "verify: a head that was kept elsewhere; it must be part of the trail"),
    "start-after": value("HEAD", "verify: where the entries end that were archived, if some were"),
    "sign-key": value("FILE", "head: sign it with this private key, made by 'solehold keygen'"),
    "public-key": value("KEY", "verify: the heads must be signed by the owner of this key"),
    limit: value("NUMBER", "ls: the last so many (default 20)"),
    ...COMMON_OPTIONS,
  },
  notes: [
    "verify reads the whole trail and finds every entry that was changed, dropped, inserted or moved. It needs no running server. Exit code 1 when something is not proven.",
    "head prints the last entry as SEQUENCE:HASH. Whoever can change the trail can also make up a new one; nobody can make up one that fits a head kept elsewhere. Where it is kept need not be trusted if it is signed: --sign-key, and --public-key to verify.",
    "export writes JSON lines, oldest first. With --server, an API key comes from SOLEHOLD_API_KEY.",
  ],
  examples: {
    "solehold audit ls --key db/main": "what happened to one lease",
    "solehold audit verify": "prove the trail on this machine",
    "solehold audit verify --anchor $HEAD": "nobody rewrote or cut what was there when HEAD was printed",
    "solehold audit export --server https://leases.example | gzip > audit.gz": "keep a copy",
  },
  action: async () => (await import("../actions/audit.ts")).audit,
};
