/**
 * Watching a folder: the operating system says which file changed, also by another process. Its queue has an end, and what
 * does not fit is lost without a word. So the files are also polled, slowly, for changes that were not announced.
 */
import { type FSWatcher, watch } from "node:fs";
import { readdir, stat } from "node:fs/promises";
import { join } from "node:path";
import { keyId, type LeaseKey } from "../../core/index.ts";
import type { Env } from "../../env/index.ts";
import {
  isInScope,
  StoreError,
  type StoreEvent,
  type StoreWatch,
  type WatchListener,
  type WatchScope,
} from "../../store/index.ts";
import { Polling, type Snapshot } from "../../store/polling.ts";
import { Watchers } from "../../store/watchers.ts";
import type { LeaseFiles } from "./lease-files.ts";

const POLL_MS = 30_000;

export class FolderWatch {
  readonly #files: LeaseFiles;
  readonly #env: Env;
  readonly #watchers = new Watchers();
  readonly #polling: Polling;
  #source: FSWatcher | null = null;

  constructor(files: LeaseFiles, env: Env) {
    this.#files = files;
    this.#env = env;
    this.#polling = new Polling({ env, pollMs: POLL_MS, look: (scopes) => this.#look(scopes) });
  }

  async open(scope: WatchScope, listener: WatchListener): Promise<StoreWatch> {
    this.#source ??= this.#listen();
    let polled: StoreWatch | null = null;
    const opened = this.#watchers.add(scope, listener, async () => {
      await polled?.close();
      if (this.#watchers.size === 0) this.close();
    });
    try {
      polled = await this.#polling.watch(scope, (event) => {
        if (event.kind === "changed") void this.#announce(event.key);
      });
      return opened;
    } catch (error) {
      await opened.close();
      throw error;
    }
  }

  close(): void {
    this.#watchers.clear();
    this.#polling.close();
    this.#source?.close();
    this.#source = null;
  }

  #listen(): FSWatcher {
    const reset = (): void => this.#watchers.announce({ kind: "reset" });
    try {
      const onEvent = (_type: string, file: string | null): void => {
        if (file === null) reset();
        else this.#files.keyOf(file).then((key) => key && this.#announce(key), reset);
      };
      const source = watch(this.#files.folder, { persistent: false }, onEvent);
      source.on("error", () => {
        if (this.#source === source) this.#source = null;
        source.close();
        reset();
      });
      return source;
    } catch (cause) {
      const { message } = cause as Error;
      throw new StoreError(
        "full",
        `'${this.#files.folder}' cannot be watched (${message}): raise fs.inotify.max_user_watches and max_user_instances`,
        { outcome: "not-applied", cause },
      );
    }
  }

  /** As it is now; whoever watches has to read what cannot be read here. Never rejects. */
  async #announce(key: LeaseKey): Promise<void> {
    const reset: StoreEvent = { kind: "reset" };
    const event = await this.#files.read(key).then(
      (stored): StoreEvent => ({ kind: "changed", key, stored }),
      () => reset,
    );
    this.#env.defer(() => this.#watchers.announce(event));
  }

  /** What every file looks like from outside. One by one: it is in no hurry, and others use the disk. */
  async #look(scopes: readonly WatchScope[]): Promise<Snapshot> {
    const { folder } = this.#files;
    const snapshot: Snapshot = new Map();
    for (const file of await readdir(folder)) {
      const key = await this.#files.keyOf(file);
      if (key === null || !scopes.some((scope) => isInScope(scope, key))) continue;
      const found = await stat(join(folder, file), { bigint: true }).catch(() => null);
      const version = `${found?.ino} ${found?.mtimeNs}`;
      if (found !== null) snapshot.set(keyId(key), { key, version, stored: null });
    }
    return snapshot;
  }
}
