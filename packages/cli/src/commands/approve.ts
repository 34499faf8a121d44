/** `solehold approve`: says in words what is being signed, asks, signs, and adds the approval to a file. */
import { type Command, choice, flag, value } from "../command.ts";
import { COMMON_OPTIONS, FENCE_OPTION, PURPOSE_OPTION, TTL_OPTION } from "../options.ts";

export const command: Command = {
  name: "approve",
  summary: "Approve a dangerous request with a signature",
  usage: "[KEY] --file FILE --signer NAME --key FILE [options]",
  positionals: [{ name: "KEY", presence: "optional" }],
  options: {
    file: value(
      "FILE",
      "the request and its approvals; made by the first who approves, added to by the others",
    ),
    signer: value("NAME", "who approves, as the policy file names it"),
    key: value("FILE", "the signer's private key, from keygen"),
    "valid-for": value("DURATION", "until when the approval may be used (default 1h)"),
    yes: flag("do not ask"),
    action: choice(["acquire", "revoke", "break"], "what is approved (default acquire)"),
    holder: value("NAME", "who may take the lease"),
    purpose: PURPOSE_OPTION,
    ttl: TTL_OPTION,
    period: value("DURATION", "for --action break"),
    fence: FENCE_OPTION,
    tier: choice(["Standard", "Risky", "Dangerous"], "as the policy says for this key (default Dangerous)"),
    nonce: value("TEXT", "the id of the request (default random)"),
    tenant: value("NAME", "the tenant (env SOLEHOLD_TENANT; default 'default')"),
    ...COMMON_OPTIONS,
  },
  notes: [
    `With KEY it describes a new request and writes it to --file. Without KEY it takes the request from --file,
shows it, and adds one more approval. Everything that is signed is shown first.`,
  ],
  examples: {
    "solehold approve db/drop --holder ops-1 --ttl 5m --file drop.json --signer alice --key alice.pem":
      "the first of several",
    "solehold approve --file drop.json --signer bob --key bob.pem": "the next one",
  },
  action: async () => (await import("../actions/approve.ts")).approve,
};
