/** That nobody writes while a process opens the store, whoever is dead, frozen, busy or comes at the same time. */
import { once } from "node:events";
import { readdirSync, rmSync, writeFileSync } from "node:fs";
import { createConnection, createServer, type Socket } from "node:net";
import { join } from "node:path";
import { describe, expect, it } from "vitest";
import { realEnv } from "../../../src/env/index.ts";
import type { LeaseStore } from "../../../src/store/index.ts";
import { StoreError } from "../../../src/store/index.ts";
import { lastTransactionIn } from "../../../src/stores/embedded/data-file.ts";
import { DATA_FILE, loadLmdb, openDatabases } from "../../../src/stores/embedded/database.ts";
import { DOOR_FOLDER } from "../../../src/stores/embedded/door.ts";
import { openEmbeddedStore } from "../../../src/stores/embedded/index.ts";
import { openWithSeams } from "../../../src/stores/embedded/open.ts";
import {
  afterThisTest,
  Child,
  closing,
  get,
  put,
  putApplied,
  recordNamed,
  temporaryFolder,
} from "./fixtures.ts";

function storeFolder(): string {
  return join(temporaryFolder(), "store");
}

/** Of sockets; beside them lie the files that say that their processes have opened. */
function namesIn(folder: string): readonly string[] {
  return readdirSync(join(folder, DOOR_FOLDER)).filter((name) => !name.startsWith("open-"));
}

/** Stands in the folder like another process; what it hears is given to `listen`. */
async function neighbourIn(folder: string, name: string, listen: (visitor: Socket) => void): Promise<void> {
  const server = createServer((visitor) => {
    visitor.on("error", () => undefined);
    listen(visitor);
  });
  afterThisTest(() => void server.close());
  server.listen(join(folder, DOOR_FOLDER, name));
  await once(server, "listening");
}

/** Time enough for anything that is not held back: each needs turns of this process's event loop. */
async function someTurns(store: LeaseStore): Promise<void> {
  for (let turn = 0; turn < 20; turn += 1) {
    await new Promise<void>((resolve) => realEnv.timer(1, resolve, { keepAlive: "yes" }));
    await get(store, "any");
  }
}

interface Watched<T> {
  readonly promise: Promise<T>;
  isSettled: boolean;
}

function watched<T>(promise: Promise<T>): Watched<T> {
  const seen: Watched<T> = { promise, isSettled: false };
  const settle = (): void => {
    seen.isSettled = true;
  };
  promise.then(settle, settle);
  return seen;
}

/** Asks the only one in the folder to stand still, as a process that opens does, and returns when it does. */
async function visitorOf(folder: string): Promise<Socket> {
  const [name = ""] = namesIn(folder);
  const visitor = createConnection(join(folder, DOOR_FOLDER, name));
  afterThisTest(() => void visitor.destroy());
  visitor.setEncoding("latin1");
  expect(await once(visitor, "data")).toEqual(["here\n"]);
  visitor.write("stand still\n");
  expect(await once(visitor, "data")).toEqual(["standing still\n"]);
  return visitor;
}

describe("while a process opens the store", () => {
  it("others read and do not write, and go on when it has", async () => {
    const folder = storeFolder();
    const store = closing(await openEmbeddedStore({ folder }));
    await putApplied(store, recordNamed("before"));
    const notebook = await store.notebook("audit");
    const fresh = closing(await openEmbeddedStore({ folder }));
    const beforeOpening = async (): Promise<void> => {
      const last = lastTransactionIn(join(folder, DATA_FILE));
      const many = Array.from({ length: 1_200 }, (_, index) => recordNamed(`many/${index}`));
      const writes = many.map((next) => ({ key: next.key, expected: null, next }));
      waiting.push(
        watched(put(store, recordNamed("during"))),
        watched(put(fresh, recordNamed("first"))),
        watched(store.apply(writes)),
        watched(notebook.save()),
        watched(store.notebook("another")),
        watched(store.watch({ tenant: null, prefix: "" }, () => undefined)),
      );
      await someTurns(store);
      expect(waiting.map(({ isSettled }) => isSettled)).toEqual(waiting.map(() => false));
      expect(lastTransactionIn(join(folder, DATA_FILE))).toBe(last);
    };
    const waiting: Watched<unknown>[] = [];
    closing(await openWithSeams({ folder }, { beforeOpening }));
    await Promise.all(waiting.map(({ promise }) => promise));
    for (const name of ["during", "first", "many/0", "many/1199"])
      expect((await get(store, name)).kind).toBe("found");
  });

  it("what others had under way was done before", async () => {
    const folder = storeFolder();
    const store = closing(await openEmbeddedStore({ folder }));
    await putApplied(store, recordNamed("before"));
    const holder = new Child("lock-holder.mjs", [folder]);
    await holder.line((line) => line === "holding");
    const order: string[] = [];
    const writing = put(store, recordNamed("during")).then(({ kind }) => order.push(kind));
    const standing = visitorOf(folder).then(() => order.push("stands still"));
    await someTurns(store);
    expect(order).toEqual([]);
    await holder.kill();
    await Promise.all([writing, standing]);
    expect(order).toEqual(["applied", "stands still"]);
  });

  it("others do not close it, and may afterwards", async () => {
    const folder = storeFolder();
    const store = await openEmbeddedStore({ folder });
    const other = closing(await openEmbeddedStore({ folder }));
    let end: Watched<void> | null = null;
    const beforeOpening = async (): Promise<void> => {
      end = watched(store.close());
      await someTurns(other);
      expect(end.isSettled).toBe(false);
    };
    closing(await openWithSeams({ folder }, { beforeOpening }));
    await end!.promise;
    expect(namesIn(folder)).toHaveLength(2);
  });

  it("no other opens it", async () => {
    const folder = storeFolder();
    let [inside, most] = [0, 0];
    const beforeOpening = async (): Promise<void> => {
      inside += 1;
      most = Math.max(most, inside);
      await new Promise<void>((resolve) => realEnv.timer(1, resolve, { keepAlive: "yes" }));
      inside -= 1;
    };
    const opening = Array.from({ length: 8 }, () => openWithSeams({ folder }, { beforeOpening }));
    const stores = await Promise.all(opening);
    for (const store of stores) await store.close();
    expect(most).toBe(1);
    expect(readdirSync(join(folder, DOOR_FOLDER))).toEqual([]);
  });

  it("its death lets the others go on", async () => {
    const folder = storeFolder();
    const store = closing(await openEmbeddedStore({ folder }));
    const [first, second] = [await visitorOf(folder), await visitorOf(folder)];
    const writing = watched(put(store, recordNamed("during")));
    first.destroy();
    await someTurns(store);
    expect(writing.isSettled).toBe(false);
    second.destroy();
    expect((await writing.promise).kind).toBe("applied");
  });

  it("a process that has nothing to do but to wait for it does not end", async () => {
    const folder = storeFolder();
    const child = new Child("one-write.mjs", [folder]);
    await child.line((line) => line === "open");
    const visitor = await visitorOf(folder);
    const ended = watched(child.ended);
    child.send("write");
    for (let turn = 0; turn < 200; turn += 1)
      await new Promise<void>((resolve) => realEnv.timer(1, resolve, { keepAlive: "yes" }));
    expect([ended.isSettled, child.lines]).toEqual([false, ["open"]]);
    visitor.destroy();
    expect([await child.ended, child.lines.at(-1)]).toEqual([{ code: 0, signal: null }, "applied"]);
  });

  it("it can be reached in a folder with a long path, too", async () => {
    const folder = join(temporaryFolder(), "long".repeat(30), "store");
    const store = closing(await openEmbeddedStore({ folder }));
    let writing: Watched<unknown> | null = null;
    const beforeOpening = async (): Promise<void> => {
      writing = watched(put(store, recordNamed("during")));
      await someTurns(store);
      expect(writing.isSettled).toBe(false);
    };
    closing(await openWithSeams({ folder }, { beforeOpening }));
    expect(writing).not.toBeNull();
  });
});

describe("a process that has the store open", () => {
  it("and was killed is not waited for, and its name is taken away", async () => {
    const folder = storeFolder();
    const child = new Child("clock.mjs", [folder]);
    await child.line((line) => line === "open");
    const [left] = namesIn(folder);
    await child.kill();
    expect(namesIn(folder)).toEqual([left]);
    closing(await openEmbeddedStore({ folder }));
    expect(namesIn(folder)).toEqual([expect.stringMatching(/^2-/)]);
    expect(readdirSync(join(folder, DOOR_FOLDER))).toHaveLength(2);
  });

  it("and is stopped for a while does not keep others from opening, and finds its way when it goes on", async () => {
    const folder = storeFolder();
    const child = new Child("clock.mjs", [folder]);
    await child.line((line) => line === "open");
    child.process.kill("SIGSTOP");
    const store = closing(await openEmbeddedStore({ folder }));
    await putApplied(store, recordNamed("meanwhile"));
    child.process.kill("SIGCONT");
    const other = closing(await openEmbeddedStore({ folder }));
    expect((await get(other, "meanwhile")).kind).toBe("found");
    child.send("time?");
    await child.lineCount(2);
  });

  it("and was stopped while it opened is waited for: it may undo what is written before it goes on", async () => {
    const folder = storeFolder();
    const child = new Child("clock.mjs", [folder]);
    await child.line((line) => line === "open");
    child.process.kill("SIGSTOP");
    const doorFolder = join(folder, DOOR_FOLDER);
    const marks = readdirSync(doorFolder).filter((name) => name.startsWith("open-"));
    expect(marks).toHaveLength(1);
    for (const mark of marks) rmSync(join(doorFolder, mark));
    const opening = openWithSeams({ folder }, { patienceMs: 4_000 });
    await expect(opening).rejects.toThrow(`process ${child.process.pid} has it open and did not answer`);
  });

  it("and does not answer, though it runs, keeps others from opening", async () => {
    const folder = storeFolder();
    await (await openEmbeddedStore({ folder })).close();
    await neighbourIn(folder, `1-${process.pid}-busy`, () => undefined);
    await expect(openWithSeams({ folder }, { patienceMs: 300 })).rejects.toMatchObject({
      kind: "timeout",
      outcome: "not-applied",
      message: expect.stringContaining(`process ${process.pid} has it open and did not answer`),
    });
    expect(namesIn(folder)).toEqual([`1-${process.pid}-busy`]);
  });

  it("does not stand still for one that waits for a frozen one", async () => {
    const folder = storeFolder();
    await (await openEmbeddedStore({ folder })).close();
    const heard: string[] = [];
    await neighbourIn(folder, "1-11-frozen", () => undefined);
    await neighbourIn(folder, "2-12-polite", (visitor) => {
      visitor.on("data", (text) => heard.push(String(text)));
      visitor.write("here\n");
    });
    await expect(openWithSeams({ folder }, { patienceMs: 100 })).rejects.toThrow("process 11 has it open");
    expect(heard).toEqual([]);
  });

  it("or is about to is waited for as long as there is news of it, and not asked before", async () => {
    const folder = storeFolder();
    await (await openEmbeddedStore({ folder })).close();
    const seen: string[] = [];
    await neighbourIn(folder, "1-11-opening", (visitor) => {
      visitor.on("data", () => {
        seen.push("asked");
        visitor.write("standing still\n");
      });
      const tell = (times: number): void => {
        seen.push(times > 0 ? "opening" : "here");
        visitor.write(times > 0 ? "opening:1-11-opening\n" : "here\n");
        if (times > 0) realEnv.timer(300, () => tell(times - 1), { keepAlive: "yes" });
      };
      tell(4);
    });
    closing(await openWithSeams({ folder }, { patienceMs: 1_000 }));
    expect(seen).toEqual(["opening", "opening", "opening", "opening", "here", "asked"]);
  });

  it("or is about to, and has taken a higher number since it was found, is not waited for", async () => {
    const folder = storeFolder();
    await (await openEmbeddedStore({ folder })).close();
    const heard: string[] = [];
    await neighbourIn(folder, "1-11-later", (visitor) => {
      visitor.on("data", (text) => heard.push(String(text)));
      visitor.write("opening:3-11-later\n");
    });
    closing(await openWithSeams({ folder }, { patienceMs: 1_000 }));
    expect(heard).toEqual([]);
  });

  it("and is too slow to stand still is named, and lets the others go on between the times it is asked", async () => {
    const folder = storeFolder();
    await (await openEmbeddedStore({ folder })).close();
    const seen: string[] = [];
    await neighbourIn(folder, "1-11-slow", (visitor) => visitor.write("here\n"));
    await neighbourIn(folder, "2-12-polite", (visitor) => {
      seen.push("came");
      visitor.on("data", () => {
        seen.push("asked");
        visitor.write("standing still\n");
      });
      visitor.on("close", () => seen.push("left"));
      visitor.write("here\n");
    });
    await expect(openWithSeams({ folder }, { patienceMs: 2_000 })).rejects.toThrow("process 11 has it open");
    expect(seen.slice(0, 5)).toEqual(["came", "asked", "left", "came", "asked"]);
  });

  it("and drops a connection is asked again", async () => {
    const folder = storeFolder();
    await (await openEmbeddedStore({ folder })).close();
    const said: string[] = [];
    await neighbourIn(folder, "1-11-another", (visitor) => {
      said.push("came");
      // As one does that has no descriptor left.
      if (said.length < 3) visitor.destroy();
      visitor.on("data", () => {
        said.push("asked");
        visitor.write("standing still\n");
      });
      visitor.write("here\n");
    });
    const opening = openWithSeams({ folder }, { beforeOpening: async () => void said.push("opening") });
    closing(await opening);
    expect(said).toEqual(["came", "came", "came", "asked", "opening"]);
  });
});

describe("a commit in the moment of opening", () => {
  it("is noticed, because it may have been undone", async () => {
    const folder = storeFolder();
    await (await openEmbeddedStore({ folder })).close();
    const lmdb = await loadLmdb();
    const open = (...args: Parameters<typeof lmdb.open>) => {
      const root = lmdb.open(...args);
      root.putSync("written", "meanwhile");
      return root;
    };
    const hasty = { ...lmdb, open } as unknown as typeof lmdb;
    expect(() => openDatabases(hasty, folder)).toThrow(
      /in the moment of opening it, and that write may be lost/,
    );
    closing(await openEmbeddedStore({ folder }));
  });
});

describe("a folder that can hold no sockets", () => {
  it("is refused with advice", async () => {
    const folder = storeFolder();
    await (await openEmbeddedStore({ folder })).close();
    const blocked = join(folder, DOOR_FOLDER);
    // Nothing can be made below what is no folder.
    rmSync(blocked, { recursive: true });
    writeFileSync(blocked, "");
    const error = await openEmbeddedStore({ folder }).catch((reason: unknown) => reason);
    expect(error).toBeInstanceOf(StoreError);
    expect((error as StoreError).kind).toBe("config");
    expect((error as StoreError).message).toMatch(
      /cannot reach each other \(.+\): use a folder on a local disk/,
    );
    rmSync(blocked);
    closing(await openEmbeddedStore({ folder }));
  });
});
