/** `solehold audit`: what was decided and why, and the proof that nobody changed it since. */
import { type Command, value } from "../command.ts";
import { COMMON_OPTIONS } from "../options.ts";

export const command: Command = {
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
