/** The lease server. It runs until a signal asks it to stop, and then drains. */
import {
  ConfigError,
  flagName,
  readConfigFile,
  resolveConfig,
  SETTING_NAMES,
  SETTINGS,
  serviceManagerOf,
  startServer,
} from "@solehold/server";
import { realEnv } from "solehold/internal";
import type { Invocation } from "../command.ts";
import { EXIT, Failure } from "../failure.ts";
import { printAnswer } from "../format/answer.ts";
import { withoutSecrets } from "../format/url.ts";

export async function serve(invocation: Invocation): Promise<number> {
  const { values, io } = invocation;
  try {
    const path = values.config ?? io.env.SOLEHOLD_CONFIG;
    const file = path === undefined ? {} : { file: await readConfigFile(path) };
    const config = resolveConfig({ flags: settingsOf(invocation), env: io.env, ...file });
    const server = await startServer(config);
    const serviceManager = serviceManagerOf({
      ...{ env: realEnv, variables: io.env, pid: process.pid },
      onFailed: (message) => void io.stderr.write(`solehold: ${message}\n`),
    });
    const stopped = new Promise<void>((resolve) => {
      // A second signal ends the process at once, as it would without a listener.
      const stopListening = io.onSignals(["SIGTERM", "SIGINT"], () => {
        stopListening();
        resolve();
      });
    });
    // Before the answer: its reader may send the signal at once.
    const stopReloading = io.onSignals(["SIGHUP"], () => void server.reload());
    printAnswer(invocation, {
      document: () => ({ url: server.url, store: withoutSecrets(config.store) }),
      lines: () => [`solehold is at ${server.url}`],
    });
    serviceManager.ready();
    await stopped;
    serviceManager.stopping();
    await server.close();
    stopReloading();
    return EXIT.ok;
  } catch (error) {
    if (!(error instanceof ConfigError)) throw error;
    throw new Failure(error.message, { exitCode: EXIT.usage, code: "CONFIG" });
  }
}

function settingsOf({ values, flags }: Invocation): Readonly<Record<string, string | boolean | undefined>> {
  const settings = SETTING_NAMES.map((name) => {
    const flag = flagName(name);
    return [name, SETTINGS[name].kind === "flag" ? flags.has(flag) || undefined : values[flag]];
  });
  return Object.fromEntries(settings);
}
