/** Consent of signers, and the choice of a node. */
import { type Command, choice, flag, value } from "../command.ts";
import { COMMON_OPTIONS, FENCE_OPTION, PURPOSE_OPTION, TTL_OPTION } from "../options.ts";

/** `solehold keygen`: a signer's key pair. The private key goes to a file and nowhere else. */
export const keygen: Command = {
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

/** `solehold approve`: says in words what is being signed, asks, signs, and adds the approval to a file. */
export const approve: Command = {
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

/** `solehold quorum verify`: would these approvals do? Nothing is used up by asking. */
export const quorum: Command = {
  name: "quorum",
  summary: "Check whether approvals are enough",
  usage: "verify --file FILE --policy FILE [options]",
  positionals: [{ name: "ACTION", presence: "required", choices: ["verify"] }],
  options: {
    file: value("FILE", "the request and its approvals, from approve"),
    policy: value("FILE", "the approval policy, or only signers and thresholds, as JSON"),
    at: value("TIME", "as of this instant, ISO 8601 (default now)"),
    "trace-id": value("TEXT", "repeated in the answer"),
    ...COMMON_OPTIONS,
  },
  notes: ["Exit code 0 when they are enough, 1 when not, with every reason."],
  examples: { "solehold quorum verify --file drop.json --policy approvals.json": "before it is presented" },
  action: async () => (await import("../actions/quorum.ts")).quorum,
};

/** `solehold coordinator select`: which node is a key's home. The same answer on every machine. */
export const coordinator: Command = {
  name: "coordinator",
  summary: "Say which node is a key's home, by weighted rendezvous",
  usage: "select KEY --nodes NAME=WEIGHT,... [options]",
  positionals: [
    { name: "ACTION", presence: "required", choices: ["select"] },
    { name: "KEY", presence: "required" },
  ],
  options: {
    nodes: value("NAME=WEIGHT,...", "the nodes; a weight of 0 leaves one out"),
    algorithm: choice(["rendezvous-v1", "product-v1"], "how to choose (default rendezvous-v1)"),
    all: flag("the whole order: where to go when the first does not answer"),
    "trace-id": value("TEXT", "repeated in the answer"),
    ...COMMON_OPTIONS,
  },
  examples: {
    "solehold coordinator select lease-1 --nodes a=10,b=5,c=8": "its home",
    "solehold coordinator select lease-1 --nodes a=10,b=5,c=8 --all --json": "and who is next",
  },
  action: async () => (await import("../actions/coordinator.ts")).coordinator,
};
