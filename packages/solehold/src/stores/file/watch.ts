/**
 * Watching a folder: the operating system says which file changed, also by another process. Its queue has an end, and what
 * does not fit is lost without a word. So the files are also surveyed, slowly, for changes that were not announced.
 */
import { type FSWatcher, watch } from "node:fs";
import { readdir, stat } from "node:fs/promises";
import { join } from "node:path";
import type { Env, Timer } from "../../env/index.ts";
import {
  StoreError,
  type StoreEvent,
  type StoreWatch,
  type WatchListener,
  type WatchScope,
} from "../../store/index.ts";
import { Watchers } from "../support/watchers.ts";
import type { LeaseFiles } from "./lease-files.ts";

const SURVEY_INTERVAL_MS = 30_000;

export class FolderWatch {
  readonly #files: LeaseFiles;
  readonly #env: Env;
  readonly #watchers = new Watchers();
  /** What every file looked like when it was last visited. */
  readonly #stamps = new Map<string, string>();
  #source: FSWatcher | null = null;
  #survey: Timer | null = null;

  constructor(files: LeaseFiles, env: Env) {
    this.#files = files;
    this.#env = env;
  }

  async open(scope: WatchScope, listener: WatchListener): Promise<StoreWatch> {
    this.#source ??= this.#listen();
    const opened = this.#watchers.add(scope, listener, () => {
      if (this.#watchers.size === 0) this.#stop();
    });
    if (this.#survey === null) {
      this.#planSurvey();
      await this.#visitAll("baseline");
    }
    return opened;
  }

  close(): void {
    this.#watchers.clear();
    this.#stop();
  }

  #stop(): void {
    this.#source?.close();
    this.#survey?.cancel();
    this.#source = null;
    this.#survey = null;
    this.#stamps.clear();
  }

  #listen(): FSWatcher {
    try {
      const onEvent = (_type: string, file: string | null): void => {
        if (file === null) this.#watchers.announce({ kind: "reset" });
        else void this.#visit(file, "event");
      };
      const source = watch(this.#files.folder, { persistent: false }, onEvent);
      source.on("error", () => {
        if (this.#source === source) this.#source = null;
        source.close();
        this.#watchers.announce({ kind: "reset" });
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

  #planSurvey(): void {
    const timer = this.#env.timer(SURVEY_INTERVAL_MS, async () => {
      await this.#visitAll("survey");
      if (this.#survey === timer) this.#planSurvey();
    });
    this.#survey = timer;
  }

  /** One by one: it is in no hurry, and others use the disk. */
  async #visitAll(why: "baseline" | "survey"): Promise<void> {
    const present = await readdir(this.#files.folder).catch(() => []);
    for (const file of new Set([...present, ...this.#stamps.keys()])) await this.#visit(file, why);
  }

  /** An event is always announced, because two writes can look alike from outside. Never rejects. */
  async #visit(file: string, why: "baseline" | "survey" | "event"): Promise<void> {
    let event: StoreEvent = { kind: "reset" };
    try {
      const key = await this.#files.keyOf(file);
      if (key === null || this.#watchers.size === 0) return;
      const stamp = await stampOf(join(this.#files.folder, file));
      const isKnown = stamp === this.#stamps.get(file);
      if (stamp === undefined) this.#stamps.delete(file);
      else this.#stamps.set(file, stamp);
      if (why === "baseline" || (why === "survey" && isKnown)) return;
      event = { kind: "changed", key, stored: await this.#files.read(key) };
    } catch {
      // What it is now cannot be read here: the watchers have to read it.
    }
    this.#env.defer(() => this.#watchers.announce(event));
  }
}

/** Undefined when there is no such file. */
async function stampOf(path: string): Promise<string | undefined> {
  const found = await stat(path, { bigint: true }).catch(() => undefined);
  return found && `${found.ino} ${found.mtimeNs}`;
}
