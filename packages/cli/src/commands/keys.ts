/** `solehold keys`: the API keys of a server, kept in its data folder. A running server follows changes. */
import { type Command, choice, value } from "../command.ts";
import { COMMON_OPTIONS } from "../options.ts";

export const command: Command = {
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
