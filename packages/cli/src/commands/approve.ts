/** `solehold approve`: says in words what is being signed, asks, signs, and adds the approval to a file. */
import type { Command, Invocation } from "../command.ts";
import { COMMON_OPTIONS, FENCE_OPTION, PURPOSE_OPTION, TTL_OPTION } from "../options.ts";

export const command: Command = {
  name: "approve",
  summary: "Approve a dangerous request with a signature",
  usage: "[KEY] --file FILE --signer NAME --key FILE [options]",
  positionals: [{ name: "KEY", presence: "optional" }],
  trailing: "none",
  options: {
    file: {
      type: "value",
      placeholder: "FILE",
      help: "the request and its approvals; made by the first who approves, added to by the others",
    },
    signer: { type: "value", placeholder: "NAME", help: "who approves, as the policy file names it" },
    key: { type: "value", placeholder: "FILE", help: "the signer's private key, from keygen" },
    "valid-for": {
      type: "value",
      placeholder: "DURATION",
      help: "until when the approval may be used (default 1h)",
    },
    yes: { type: "flag", help: "do not ask" },
    action: {
      type: "value",
      choices: ["acquire", "revoke", "break"],
      help: "what is approved (default acquire)",
    },
    holder: { type: "value", placeholder: "NAME", help: "who may take the lease" },
    purpose: PURPOSE_OPTION,
    ttl: TTL_OPTION,
    period: { type: "value", placeholder: "DURATION", help: "for --action break" },
    fence: FENCE_OPTION,
    tier: {
      type: "value",
      choices: ["Standard", "Risky", "Dangerous"],
      help: "as the policy says for this key (default Dangerous)",
    },
    nonce: { type: "value", placeholder: "TEXT", help: "the id of the request (default random)" },
    tenant: {
      type: "value",
      placeholder: "NAME",
      help: "the tenant (env SOLEHOLD_TENANT; default 'default')",
    },
    ...COMMON_OPTIONS,
  },
  notes: [
    `With KEY it describes a new request and writes it to --file. Without KEY it takes the request from --file,
shows it, and adds one more approval. Everything that is signed is shown first.`,
  ],
  examples: [
    {
      line: "solehold approve db/drop --holder ops-1 --ttl 5m --file drop.json --signer alice --key alice.pem",
      what: "the first of several",
    },
    { line: "solehold approve --file drop.json --signer bob --key bob.pem", what: "the next one" },
  ],
  run,
};

async function run(invocation: Invocation): Promise<number> {
  const { approve } = await import("../approvals/approve.ts");
  return await approve(invocation);
}
