/**
 * The dashboard's files, read once. Each has a route of its own, so that no path is ever made of what a client sent. A
 * server from sources that were not built has none.
 */
import { existsSync, readdirSync, readFileSync } from "node:fs";
import { createRequire } from "node:module";
import { dirname, extname, join } from "node:path";
import { gzipSync } from "node:zlib";

export interface PageFile {
  /** Where it is served. */
  readonly path: string;
  readonly contentType: string;
  readonly body: Buffer;
  readonly gzipped: Buffer;
  /** Its name has a hash of its content: it never changes. */
  readonly immutable: boolean;
}

/** Nothing but this server's own files: no inline script or style, no other origin, no frame. */
export const DASHBOARD_POLICY = [
  "default-src 'none'",
  "script-src 'self'",
  "style-src 'self'",
  "connect-src 'self'",
  "img-src 'self' data:",
  "worker-src 'self'",
  "base-uri 'none'",
  "form-action 'none'",
  "frame-ancestors 'none'",
].join("; ");

const TYPES: Readonly<Record<string, string>> = {
  ".html": "text/html; charset=utf-8",
  ".js": "text/javascript; charset=utf-8",
  ".css": "text/css; charset=utf-8",
  ".svg": "image/svg+xml",
  ".png": "image/png",
  ".json": "application/json; charset=utf-8",
};

let known: readonly PageFile[] | null = null;

export function dashboardFiles(): readonly PageFile[] {
  known ??= readFiles();
  return known;
}

function readFiles(): readonly PageFile[] {
  const manifest = createRequire(import.meta.url).resolve("@solehold/dashboard/package.json");
  const folder = join(dirname(manifest), "dist");
  if (!existsSync(folder)) return [];
  const names = readdirSync(folder, { recursive: true, encoding: "utf8" });
  return names.flatMap((name) => {
    const contentType = TYPES[extname(name)];
    return contentType === undefined ? [] : [fileAt(folder, name.replaceAll("\\", "/"), contentType)];
  });
}

function fileAt(folder: string, name: string, contentType: string): PageFile {
  const body = readFileSync(join(folder, name));
  const immutable = name.startsWith("assets/");
  return { path: pathOf(name), contentType, body, gzipped: gzipSync(body), immutable };
}

/** index.html is the root, and playground.html is /playground. */
function pathOf(name: string): string {
  if (name === "index.html") return "/";
  return `/${name.replace(/\.html$/, "")}`;
}
