/** `solehold serve`: the lease server. It runs until a signal tells it to stop, and then drains. */
import { flagName, SETTING_NAMES, SETTINGS, type SettingName } from "@solehold/server/config";
import { type Command, choice, flag, type OptionSpec, value } from "../command.ts";
import { COMMON_OPTIONS } from "../options.ts";

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

const options = {
  config: value("FILE", "settings as JSON (env SOLEHOLD_CONFIG)"),
  ...Object.fromEntries(SETTING_NAMES.map((name) => [flagName(name), optionOf(name)])),
  ...COMMON_OPTIONS,
};

export const command: Command = {
  name: "serve",
  summary: "Run the lease server",
  usage: "[options]",
  options,
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
