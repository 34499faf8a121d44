// What a case opened is closed in the opposite order, also when it failed on the way.
import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";

export class Resources {
  #closers = [];

  /** `close(value)` is called at the end; returns the value. */
  add(value, close) {
    this.#closers.push(() => close(value));
    return value;
  }

  /** A fresh folder that is deleted at the end. */
  folder() {
    const folder = mkdtempSync(join(tmpdir(), "solehold-bench-"));
    return this.add(folder, (path) => rmSync(path, { recursive: true, force: true }));
  }

  async close() {
    for (let close = this.#closers.pop(); close !== undefined; close = this.#closers.pop()) await close();
  }
}

export async function withResources(use) {
  const resources = new Resources();
  try {
    return await use(resources);
  } finally {
    await resources.close();
  }
}
