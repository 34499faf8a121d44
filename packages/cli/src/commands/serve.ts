/** `solehold serve`: the lease server. It runs until a signal tells it to stop, and then drains. */
import { flagName, SETTING_NAMES, SETTINGS, type SettingName } from "@solehold/server/config";
import type { Command, Invocation, OptionSpec, OptionSpecs } from "../command.ts";
import { COMMON_OPTIONS } from "../options.ts";

const PLACEHOLDERS = { text: "TEXT", count: "NUMBER", duration: "DURATION", choice: "NAME" } as const;

function optionOf(name: SettingName): OptionSpec {
  const { kind, help, fallback, choices, shown } = SETTINGS[name] as (typeof SETTINGS)[SettingName] & {
    readonly choices?: readonly string[];
    readonly shown?: string;
  };
  if (kind === "flag") return { type: "flag", help };
  const standard = fallback === "" ? "" : ` (default ${shown ?? fallback})`;
  return {
    type: "value",
    placeholder: PLACEHOLDERS[kind],
    help: `${help}${standard}`,
    ...(choices === undefined ? {} : { choices }),
  };
}

const options: OptionSpecs = {
  config: { type: "value", placeholder: "FILE", help: "settings as JSON (env SOLEHOLD_CONFIG)" },
  ...Object.fromEntries(SETTING_NAMES.map((name) => [flagName(name), optionOf(name)])),
  ...COMMON_OPTIONS,
};

export const command: Command = {
  name: "serve",
  summary: "Run the lease server",
  usage: "[options]",
  positionals: [],
  trailing: "none",
  options,
  notes: [
    "Each setting is taken from its flag, else from its environment variable (--wait-limit-ms is SOLEHOLD_WAIT_LIMIT_MS), else from the file (waitLimitMs), else its default.",
    "Without API keys it listens on loopback only. Make the first key with 'solehold keys add'.",
    "SIGTERM and SIGINT let requests finish, send waiting clients elsewhere, and make the audit trail safe.",
  ],
  examples: [
    { line: "solehold serve", what: "on http://127.0.0.1:7077, with an embedded store" },
    { line: "solehold serve --store postgres://db/leases --port 8080", what: "over another store" },
  ],
  run,
};

async function run({ values, flags, io }: Invocation): Promise<number> {
  const { ConfigError, readConfigFile, resolveConfig, startServer } = await import("@solehold/server");
  const { EXIT } = await import("../exit-codes.ts");
  const { Failure } = await import("../failure.ts");
  try {
    const path = values.config ?? io.env.SOLEHOLD_CONFIG;
    const file = path === undefined ? {} : { file: await readConfigFile(path) };
    const config = resolveConfig({ flags: given(values, flags), env: io.env, ...file });
    const server = await startServer(config);
    const stopped = new Promise<void>((resolve) => {
      // A second signal ends the process at once, as it would without us.
      const stopListening = io.onSignals(["SIGTERM", "SIGINT"], () => {
        stopListening();
        resolve();
      });
    });
    io.stdout.write(
      flags.has("json")
        ? `${JSON.stringify({ url: server.url, store: config.store })}\n`
        : `solehold is at ${server.url}\n`,
    );
    await stopped;
    await server.close();
    return EXIT.ok;
  } catch (error) {
    if (!(error instanceof ConfigError)) throw error;
    throw new Failure(error.message, { exitCode: EXIT.usage, code: "CONFIG" });
  }
}

function given(
  values: Readonly<Record<string, string>>,
  flags: ReadonlySet<string>,
): Readonly<Record<string, string | boolean | undefined>> {
  return Object.fromEntries(
    SETTING_NAMES.map((name) => {
      const flag = flagName(name);
      return [name, SETTINGS[name].kind === "flag" ? flags.has(flag) || undefined : values[flag]];
    }),
  );
}
