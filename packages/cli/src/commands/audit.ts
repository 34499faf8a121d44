/** `solehold audit`: what was decided and why, and the proof that nobody changed it since. */
import { type Command, value } from "../command.ts";
import { COMMON_OPTIONS } from "../options.ts";

export const command: Command = {
  name: "audit",
  summary: "List, export and verify the audit trail of a server",
  usage: "ls | export | verify [options]",
  positionals: [{ name: "ls|export|verify", presence: "required", choices: ["ls", "export", "verify"] }],
  options: {
    folder: value("FOLDER", "the trail's folder (default: audit in SOLEHOLD_DATA_DIR, or ./.solehold/audit)"),
    server: value("URL", "a running server, in place of --folder (env SOLEHOLD_URL, if it names one)"),
    tenant: value("NAME", "only this tenant"),
    key: value("KEY", "only this lease"),
    holder: value("NAME", "only this holder"),
    caller: value("ID", "only requests with the API key of this id"),
    action: value("NAME", "only this: grant, renew, release, use, expire, ..."),
    limit: value("NUMBER", "ls: the last so many (default 20)"),
    ...COMMON_OPTIONS,
  },
  notes: [
    "verify reads the whole trail and finds every entry that was changed, dropped, inserted or moved. It needs no running server. Exit code 1 when something is not proven.",
    "export writes JSON lines, oldest first. With --server, an API key comes from SOLEHOLD_API_KEY.",
  ],
  examples: {
    "solehold audit ls --key db/main": "what happened to one lease",
    "solehold audit verify": "prove the trail on this machine",
    "solehold audit export --server https://leases.example | gzip > audit.gz": "keep a copy",
  },
  action: async () => (await import("../actions/audit.ts")).audit,
};
