/**
 * Leases in files, one a key, for the processes of one machine: the object store's JSON on a local disk, for others to
 * read. Readers take no lock; writers take turns. The embedded store is faster.
 */
import { type ClockedStore, type FullStore, fullCapabilities } from "../../store/index.ts";
import { closedError } from "../support/failures.ts";
import { fileFailure } from "../support/file-failure.ts";
import { FolderWatch } from "./watch.ts";
import { FileWriter, type FileWriterParts } from "./writer.ts";

export type FileStore = FullStore & ClockedStore;

const CAPABILITIES = fullCapabilities({
  durable: true,
  clock: "exact",
  /** All files of a call may be open at once. */
  maxBatch: 100,
  maxConcurrentCalls: 1,
});

export function fileStore(parts: FileWriterParts): FileStore {
  const { files, clock, env } = parts;
  const writer = new FileWriter(parts);
  const folderWatch = new FolderWatch(files, env);
  let isClosed = false;
  const call = async <Value>(work: () => Promise<Value>): Promise<Value> => {
    if (isClosed) throw closedError("file");
    try {
      return await work();
    } catch (error) {
      // What could have been renamed already reports itself as unknown.
      throw fileFailure(`the file store in '${files.folder}'`, error, "not-applied");
    }
  };
  const now = (): number => clock.now();
  return {
    name: "file",
    capabilities: CAPABILITIES,
    now,
    read: async (keys) => {
      const records = await call(() => Promise.all(keys.map((key) => files.read(key))));
      return { storeTimeMs: now(), records };
    },
    apply: async (writes) => {
      const results = await call(() => writer.apply(writes));
      return { storeTimeMs: now(), results };
    },
    list: async (query) => {
      const page = await call(() => files.list(query));
      return { storeTimeMs: now(), ...page };
    },
    watch: (scope, listener) => call(() => folderWatch.open(scope, listener)),
    close: async () => {
      isClosed = true;
      folderWatch.close();
      await writer.idle();
    },
  };
}
