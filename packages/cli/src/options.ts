/** Arguments and options that many commands share. */
import { choice, flag, type OptionSpecs, type PositionalSpec, value } from "./command.ts";

export const KEY: readonly PositionalSpec[] = [{ name: "KEY", presence: "required" }];
export const KEYS: readonly PositionalSpec[] = [{ name: "KEY", presence: "required", isRepeatable: true }];
export const PREFIX: readonly PositionalSpec[] = [{ name: "PREFIX", presence: "optional" }];

/** The library's purposes, repeated here so that help and completion need not load it; a test compares. */
export const PURPOSE_CHOICES = ["Operation", "StateWrite", "MigrationHandoff"] as const;

export const COMMON_OPTIONS = {
  json: flag("machine-readable output: one JSON document, or JSON lines for streams"),
  help: flag("show this help"),
} as const satisfies OptionSpecs;

export const TENANT_OPTION = value("NAME", "the tenant (env SOLEHOLD_TENANT; default 'default')");

export const CONNECTION_OPTIONS = {
  store: value("URL", "the lease store (env SOLEHOLD_URL; default embedded:./.solehold/data)"),
  server: value("URL", "a Solehold server, in place of --store (API key: env SOLEHOLD_API_KEY)"),
  tenant: TENANT_OPTION,
  timeout: value(
    "DURATION",
    "how long the store or server may take for a call; a command may take twice as long (default 5s)",
  ),
  ...COMMON_OPTIONS,
} as const satisfies OptionSpecs;

export const TTL_OPTION = value(
  "DURATION",
  "how long the lease lasts without a renewal: 30s, 5m, 1500ms (default 30s)",
);
export const PURPOSE_OPTION = choice(
  PURPOSE_CHOICES,
  `what the lease is for: ${PURPOSE_CHOICES.join(", ")} (default Operation)`,
  "PURPOSE",
);
export const HOLDER_OPTION = value("NAME", "the name of the holder (env SOLEHOLD_HOLDER; default USER@HOST)");
export const FENCE_OPTION = value("FENCE", "only the grant with this fence, as 'get' shows it");
export const APPROVALS_OPTION = value("FILE", "what approve wrote, for a key that needs approvals");

/** For the commands that take a lease. */
export const ACQUIRE_OPTIONS = {
  ttl: TTL_OPTION,
  wait: value(
    "DURATION",
    "how long to wait while another holds it: 0 for not at all, 'forever' (default 10s)",
  ),
  purpose: PURPOSE_OPTION,
  holder: HOLDER_OPTION,
  note: value("TEXT", "free text for people who look at the lease"),
  slots: value("NUMBER", "how many may hold KEY at a time: the lease is one of so many slots (default 1)"),
  priority: value("NUMBER", "among those who wait, the higher one goes first: 0 to 100 (default 0)"),
  "at-least": value(
    "DURATION",
    "keep others out for so long, even if the lease ends before: once per period",
  ),
  "lock-delay": value("DURATION", "keep others out for so long after the lease expired, not after a release"),
  approvals: APPROVALS_OPTION,
} as const satisfies OptionSpecs;

/** Proof that the caller is the holder. */
export const OWNER_OPTIONS = {
  token: value("TOKEN", "the secret that acquire printed (better: env SOLEHOLD_TOKEN)"),
  holder: HOLDER_OPTION,
} as const satisfies OptionSpecs;
