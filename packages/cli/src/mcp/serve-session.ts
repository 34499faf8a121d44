/**
 * One session between the SDK's transport on stdin and stdout and an `AgentSession`. It ends with the input, with the
 * output, or with a signal. Every answer names the session's holder, so that another agent can hand off to it.
 */
import type { Server } from "@modelcontextprotocol/sdk/server/index.js";
import type { StdioServerTransport } from "@modelcontextprotocol/sdk/server/stdio.js";
import type {
  CallToolRequestSchema,
  CallToolResult,
  ErrorCode,
  ListToolsRequestSchema,
  McpError,
} from "@modelcontextprotocol/sdk/types.js";
import { escapeControls } from "../format/terminal.ts";
import type { Io } from "../io.ts";
import type { Answer } from "./answer.ts";
import type { AgentSession } from "./session.ts";
import { argumentsOf, INSTRUCTIONS, TOOLS, type Tool } from "./tools.ts";

/** What is loaded of the SDK. */
export interface Sdk {
  readonly Server: typeof Server;
  readonly StdioServerTransport: typeof StdioServerTransport;
  readonly CallToolRequestSchema: typeof CallToolRequestSchema;
  readonly ListToolsRequestSchema: typeof ListToolsRequestSchema;
  readonly McpError: typeof McpError;
  readonly ErrorCode: typeof ErrorCode;
}

interface Surrounding {
  readonly version: string;
  readonly io: Io;
}

/** Resolves when the session is over. Its leases are still to be released. */
export async function serveSession(
  sdk: Sdk,
  session: AgentSession,
  { version, io }: Surrounding,
): Promise<void> {
  const server = new sdk.Server(
    { name: "solehold", version },
    { capabilities: { tools: {} }, instructions: INSTRUCTIONS },
  );
  // A line that is no message has nobody to answer to.
  server.onerror = ({ message }) =>
    io.stderr.write(`solehold mcp: ${escapeControls(message.replaceAll(/\s+/g, " ")).slice(0, 200)}\n`);
  server.oninitialized = () => session.introduce(server.getClientVersion()?.name ?? "");
  server.setRequestHandler(sdk.ListToolsRequestSchema, () => ({ tools: TOOLS.map(describe) }));
  server.setRequestHandler(sdk.CallToolRequestSchema, async ({ params }, { signal }) => {
    const tool = TOOLS.find(({ name }) => name === params.name);
    if (tool === undefined) {
      const known = TOOLS.map(({ name }) => name).join(", ");
      throw new sdk.McpError(
        sdk.ErrorCode.InvalidParams,
        `there is no tool '${params.name}': there are ${known}`,
      );
    }
    const lost = session.lost();
    const answer = await answerOf(session, tool, params.arguments ?? {}, signal);
    return resultOf(session.holder, [...lost, ...session.lost()], answer);
  });
  const over = new Promise<void>((resolve) => {
    // A second signal ends the process at once, as it would without a listener.
    const stopListening = io.onSignals(["SIGTERM", "SIGINT", "SIGHUP"], () => {
      stopListening();
      resolve();
    });
    for (const event of ["end", "close", "error"]) process.stdin.once(event, () => resolve());
    // Without a listener an agent that is gone would end this process before its leases are released.
    process.stdout.on("error", () => resolve());
    server.onclose = () => resolve();
  });
  await server.connect(new sdk.StdioServerTransport());
  await over;
}

function describe({ name, description, takes, needs, changes }: Tool) {
  const properties = Object.entries(takes).map(([argument, text]) => [
    argument,
    { type: "string", description: text },
  ]);
  return {
    name,
    description,
    inputSchema: {
      type: "object" as const,
      properties: Object.fromEntries(properties),
      required: [...needs],
      additionalProperties: false,
    },
    annotations: { readOnlyHint: changes === "nothing", destructiveHint: false, openWorldHint: false },
  };
}

/** Never rejects: what went wrong is an answer, so that the agent reads it. */
async function answerOf(
  session: AgentSession,
  tool: Tool,
  given: Readonly<Record<string, unknown>>,
  signal: AbortSignal,
): Promise<Answer> {
  try {
    return await tool.call(session, argumentsOf(tool, given), signal);
  } catch (error) {
    return { outcome: "failed", text: error instanceof Error ? error.message : String(error), fields: {} };
  }
}

function resultOf(you: string, lost: readonly string[], { outcome, text, fields }: Answer): CallToolResult {
  const lines = [...lost, text, `You are "${you}".`];
  return {
    isError: outcome === "failed",
    content: [{ type: "text", text: lines.join("\n") }],
    structuredContent: { ...fields, you },
  };
}
