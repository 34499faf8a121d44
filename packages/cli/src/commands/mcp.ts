/** `solehold mcp`: leases as tools for AI agents, over the Model Context Protocol on stdin and stdout. */
import { type Command, value } from "../command.ts";
import { CONNECTION_OPTIONS, TTL_OPTION } from "../options.ts";

export const command: Command = {
  name: "mcp",
  summary: "Offer leases to an AI agent (Model Context Protocol over stdio)",
  usage: "[options]",
  options: {
    prefix: value("PREFIX", "the session sees and takes only leases whose names begin with it"),
    ttl: TTL_OPTION,
    ...CONNECTION_OPTIONS,
  },
  notes: [
    `For the configuration of an agent's client, which starts one process for each session. Leases belong to the
session: they are renewed while it lives and released when its input ends. After a kill they end by their ttl.`,
    `The tools are acquire, wait, renew, release, handoff, who and list. None takes a lease from its holder.`,
    "Needs the package @modelcontextprotocol/sdk: npm install @modelcontextprotocol/sdk",
  ],
  examples: {
    "solehold mcp --prefix repo/": "agents on this machine that share a repository",
    "solehold mcp --server https://leases.example": "agents on several machines",
  },
  action: async () => (await import("../actions/mcp.ts")).mcp,
};
