// A registry for npm that needs no network: it has the tarballs that it is given, and of everything else what `npm ci`
// installed in this checkout, in those versions.
import { execFile } from "node:child_process";
import { existsSync, readFileSync } from "node:fs";
import { createServer, type ServerResponse } from "node:http";
import type { AddressInfo } from "node:net";
import { basename, dirname, join } from "node:path";
import { promisify } from "node:util";

const ROOT = join(import.meta.dirname, "../../../..");

export interface Release {
  readonly manifest: { readonly name: string; readonly version: string };
  readonly tarball: () => Promise<Buffer>;
}

export interface Registry {
  readonly url: string;
  close(): Promise<void>;
}

export async function startRegistry(own: readonly Release[]): Promise<Registry> {
  const releases = [...own, ...installedHere()];
  const server = createServer((request, response) => {
    answer(releases, new URL(request.url ?? "/", origin(server.address())), response).catch((error) => {
      response.writeHead(500).end(String(error));
    });
  });
  await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
  return {
    url: origin(server.address()),
    close: async () => {
      server.closeAllConnections();
      await new Promise((resolve) => server.close(resolve));
    },
  };
}

function origin(address: AddressInfo | string | null): string {
  return `http://127.0.0.1:${(address as AddressInfo).port}/`;
}

/** Two kinds of request: all versions of a package (`/@scope%2fname`), and the tarball of one (`/@scope/name/-/1.0.0`). */
async function answer(releases: readonly Release[], url: URL, response: ServerResponse): Promise<void> {
  const [name = "", version] = decodeURIComponent(url.pathname.slice(1)).split("/-/");
  const found = releases.filter(
    ({ manifest }) => manifest.name === name && (version ?? manifest.version) === manifest.version,
  );
  const [first] = found;
  if (first === undefined) {
    response.writeHead(404).end("{}");
  } else if (version !== undefined) {
    response.end(await first.tarball());
  } else {
    const versions = found.map(({ manifest }) => [
      manifest.version,
      { ...manifest, dist: { tarball: new URL(`${name}/-/${manifest.version}`, url).href } },
    ]);
    const latest = first.manifest.version;
    response.end(JSON.stringify({ name, "dist-tags": { latest }, versions: Object.fromEntries(versions) }));
  }
}

function installedHere(): Release[] {
  const lock: unknown = JSON.parse(readFileSync(join(ROOT, "package-lock.json"), "utf8"));
  const { packages } = lock as { readonly packages: Readonly<Record<string, { readonly link?: boolean }>> };
  return Object.entries(packages)
    .filter(([path, { link }]) => path.includes("node_modules/") && link !== true)
    .map(([path]) => join(ROOT, path))
    .filter((folder) => existsSync(join(folder, "package.json")))
    .map((folder) => ({
      manifest: JSON.parse(readFileSync(join(folder, "package.json"), "utf8")),
      tarball: async () => await tarOf(folder),
    }));
}

/** npm does not mind what the folder in a tarball is called. */
async function tarOf(folder: string): Promise<Buffer> {
  const args = ["-czf", "-", "--exclude=node_modules", "-C", dirname(folder), basename(folder)];
  const { stdout } = await promisify(execFile)("tar", args, { encoding: "buffer", maxBuffer: 2 ** 28 });
  return stdout;
}
