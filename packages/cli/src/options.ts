/** Options that many commands share. */
import type { OptionSpec, OptionSpecs } from "./command.ts";

/** The library's purposes, repeated here so that help and completion need not load it; a test compares. */
export const PURPOSE_CHOICES = ["Operation", "StateWrite", "MigrationHandoff"] as const;

export const COMMON_OPTIONS = {
  json: { type: "flag", help: "machine-readable output: one JSON document, or JSON lines for streams" },
  help: { type: "flag", help: "show this help" },
} as const satisfies OptionSpecs;

export const CONNECTION_OPTIONS = {
  store: {
    type: "value",
    placeholder: "URL",
    help: "the lease store (env SOLEHOLD_URL; default embedded:./.solehold/data)",
  },
  server: {
    type: "value",
    placeholder: "URL",
    help: "a Solehold server, in place of --store (API key: env SOLEHOLD_API_KEY)",
  },
  tenant: { type: "value", placeholder: "NAME", help: "the tenant (env SOLEHOLD_TENANT; default 'default')" },
  ...COMMON_OPTIONS,
} as const satisfies OptionSpecs;

export const TTL_OPTION: OptionSpec = {
  type: "value",
  placeholder: "DURATION",
  help: "how long the lease lasts without a renewal: 30s, 5m, 1500ms (default 30s)",
};

export const WAIT_OPTION: OptionSpec = {
  type: "value",
  placeholder: "DURATION",
  help: "how long to wait while another holds it: 0 for not at all, 'forever' (default 10s)",
};

export const PURPOSE_OPTION: OptionSpec = {
  type: "value",
  placeholder: "PURPOSE",
  choices: PURPOSE_CHOICES,
  help: `what the lease is for: ${PURPOSE_CHOICES.join(", ")} (default Operation)`,
};

export const HOLDER_OPTION: OptionSpec = {
  type: "value",
  placeholder: "NAME",
  help: "the name of the holder (env SOLEHOLD_HOLDER; default USER@HOST)",
};

export const NOTE_OPTION: OptionSpec = {
  type: "value",
  placeholder: "TEXT",
  help: "free text for people who look at the lease",
};

export const FENCE_OPTION: OptionSpec = {
  type: "value",
  placeholder: "FENCE",
  help: "only the grant with this fence, as 'get' shows it",
};

export const APPROVALS_OPTION: OptionSpec = {
  type: "value",
  placeholder: "FILE",
  help: "what approve wrote, for a key that needs approvals",
};

/** Proof that the caller is the holder. */
export const OWNER_OPTIONS = {
  token: {
    type: "value",
    placeholder: "TOKEN",
    help: "the secret that acquire printed (better: env SOLEHOLD_TOKEN)",
  },
  holder: HOLDER_OPTION,
} as const satisfies OptionSpecs;
