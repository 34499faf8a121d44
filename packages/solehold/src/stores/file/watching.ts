/** News of a folder: the operating system tells which file changed, whoever changed it. */
import { type FSWatcher, watch } from "node:fs";
import type { LeaseRecord } from "../../core/index.ts";
import type { Env } from "../../env/index.ts";
import { StoreError, type StoreEvent, type StoreWatch, type WatchScope } from "../../store/index.ts";
import { Watchers } from "../embedded/watchers.ts";
import { oneLine } from "./failures.ts";
import type { LeaseFiles } from "./lease-file.ts";
import { keyOf } from "./listing.ts";
import { LEASE_SUFFIX } from "./names.ts";

export class FolderNews {
  readonly #folder: string;
  readonly #files: LeaseFiles;
  readonly #watchers: Watchers;
  #source: FSWatcher | null = null;

  constructor(folder: string, files: LeaseFiles, env: Env) {
    this.#folder = folder;
    this.#files = files;
    this.#watchers = new Watchers(env);
  }

  open(scope: WatchScope, listener: (event: StoreEvent) => void): StoreWatch {
    this.#source ??= this.#listen();
    const remove = this.#watchers.add(scope, listener);
    return {
      close: async () => {
        remove();
        if (this.#watchers.isEmpty) this.#silence();
      },
    };
  }

  close(): void {
    this.#watchers.clear();
    this.#silence();
  }

  #silence(): void {
    this.#source?.close();
    this.#source = null;
  }

  #listen(): FSWatcher {
    try {
      const source = watch(this.#folder, { persistent: false }, (_type, file) => void this.#heard(file));
      source.on("error", () => {
        if (this.#source === source) this.#source = null;
        source.close();
        this.#watchers.reset();
      });
      return source;
    } catch (cause) {
      const message = `'${this.#folder}' cannot be watched (${oneLine(cause)}): raise fs.inotify.max_user_watches and max_user_instances`;
      throw new StoreError("full", message, { outcome: "not-applied", cause });
    }
  }

  /** Null when the system does not say which file it was. */
  async #heard(file: string | null): Promise<void> {
    if (file === null) return this.#watchers.reset();
    if (!file.endsWith(LEASE_SUFFIX)) return;
    const key = await keyOf(this.#folder, file.slice(0, -LEASE_SUFFIX.length));
    if (key === null) return;
    this.#watchers.changed(key, (): LeaseRecord | null | "unreadable" => {
      const stored = this.#files.readNow(key);
      if (stored.kind === "corrupt") return "unreadable";
      return stored.kind === "found" ? stored.record : null;
    });
  }
}
