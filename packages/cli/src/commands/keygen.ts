/** `solehold keygen`: a signer's key pair. The private key goes to a file and nowhere else. */
import { type Command, value } from "../command.ts";
import { COMMON_OPTIONS } from "../options.ts";

export const command: Command = {
  name: "keygen",
  summary: "Make a key pair for a signer of approvals",
  usage: "--out FILE [options]",
  options: {
    out: value("FILE", "where the private key goes; it is never overwritten"),
    signer: value("NAME", "the signer's id in the printed entry (default 'me')"),
    ...COMMON_OPTIONS,
  },
  examples: { "solehold keygen --out alice.pem --signer alice": "the public half goes into the policy file" },
  action: async () => (await import("../actions/keygen.ts")).keygen,
};
