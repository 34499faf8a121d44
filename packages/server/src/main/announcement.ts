/**
 * How this replica is known: its name, and the URL that clients are sent to. Nothing is announced that clients could not
 * use: a wildcard address leads each of them to its own machine, and behind a proxy the own address leads past it.
 */
import { hostname } from "node:os";
import { isWildcard } from "../access/loopback.ts";
import type { ServerConfig } from "./config.ts";

export interface Announcement {
  /** Names this replica among the others, and as the holder of the server's own leases. */
  readonly nodeId: string;
  /** Null: clients stay with the URL that they were given. */
  readonly url: string | null;
  /** Why there is no URL, and what to do; empty when there is one. */
  readonly obstacle: string;
}

/** `listening`: where the server listens. */
export function announcementOf(config: ServerConfig, listening: string): Announcement {
  const { nodeId, advertiseUrl } = config;
  const obstacle = advertiseUrl === "" ? obstacleTo(config) : "";
  const url = obstacle !== "" ? null : advertiseUrl === "" ? listening : advertiseUrl;
  const fallback = url === null ? `${hostname()}:${new URL(listening).port}` : new URL(url).host;
  return { nodeId: nodeId === "" ? fallback : nodeId, url, obstacle };
}

function obstacleTo({ host, behindProxy }: ServerConfig): string {
  const fix = "give --advertise-url if clients may reach this replica directly";
  if (isWildcard(host)) return `--host ${host} is no address that clients could use: ${fix}`;
  return behindProxy === "yes" ? `clients reach this server through a proxy: ${fix}` : "";
}
