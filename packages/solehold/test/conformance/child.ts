/** The processes of the kit, on the store of a URL. They run the build, which the test command makes first. */
import { join } from "node:path";
import type { KitChild } from "../../src/conformance/index.ts";

export function kitProcess(url: string, env: Readonly<Record<string, string>> = {}): KitChild {
  return { module: join(import.meta.dirname, "kit-process.mjs"), args: [url], env };
}
