/** One agent's session on stdin and stdout. When it ends, by the end of its input or by a signal, so do its leases. */
import { keyNameProblem } from "solehold/internal";
import type { Invocation } from "../command.ts";
import { withLeases } from "../connection.ts";
import { EXIT, errorFailure, usageFailure } from "../failure.ts";
import { type Sdk, serveSession } from "../mcp/serve-session.ts";
import { AgentSession } from "../mcp/session.ts";
import { durationOption } from "../parse/option-values.ts";
import { versions } from "./about.ts";

export async function mcp(invocation: Invocation): Promise<number> {
  const prefix = prefixOf(invocation);
  const ttlMs = durationOption(invocation, "ttl", 1);
  const sdk = await loadSdk();
  return await withLeases(invocation, "process", async ({ leases }) => {
    const session = new AgentSession({ leases, prefix, ttlMs });
    try {
      await serveSession(sdk, session, { version: versions().solehold, io: invocation.io });
    } finally {
      await session.end();
    }
    return EXIT.ok;
  });
}

function prefixOf({ values: { prefix = "" } }: Invocation): string {
  const problem = prefix === "" ? null : keyNameProblem(prefix);
  if (problem !== null) throw usageFailure(`--prefix ${problem}, got ${JSON.stringify(prefix)}`);
  return prefix;
}

/** Loaded here and nowhere else: it is large, and only agents need it. */
async function loadSdk(): Promise<Sdk> {
  try {
    return {
      ...(await import("@modelcontextprotocol/sdk/server/index.js")),
      ...(await import("@modelcontextprotocol/sdk/server/stdio.js")),
      ...(await import("@modelcontextprotocol/sdk/types.js")),
    };
  } catch (error) {
    const { code, message } = error as NodeJS.ErrnoException;
    const problem = code === "ERR_MODULE_NOT_FOUND" ? "is missing" : `cannot be loaded (${message})`;
    const fix = "run 'npm install @modelcontextprotocol/sdk' where @solehold/cli is installed";
    throw errorFailure("MCP_SDK_MISSING", `the package @modelcontextprotocol/sdk ${problem}: ${fix}`);
  }
}
