/** One connection that is opened when it is needed, and again when it was lost. */
import { describe, expect, it } from "vitest";
import { realEnv } from "../../../src/env/index.ts";
import { Reconnecting } from "../../../src/stores/support/reconnecting.ts";

/** Connections are numbers. `open` does what the test says, and notes what was asked of it. */
function subject(open: (attempt: number) => Promise<number>) {
  const closed: number[] = [];
  const pausesMs: number[] = [];
  let attempts = 0;
  // Pauses are noted, and over at once.
  const env = {
    ...realEnv,
    monotonicMs: () => realEnv.monotonicMs(),
    random: () => 0.5,
    timer: (delayMs: number, callback: () => void, options?: { keepAlive?: boolean }) => {
      pausesMs.push(delayMs);
      return realEnv.timer(0, callback, options);
    },
  } as unknown as typeof realEnv;
  const connections = new Reconnecting<number>({
    env,
    name: "test",
    open: () => {
      attempts += 1;
      return open(attempts);
    },
    close: (connection) => void closed.push(connection),
  });
  return { connections, closed, pausesMs, attempts: () => attempts };
}

const failing = (): Promise<number> => Promise.reject(new Error("refused"));

describe("a connection", () => {
  it("is opened once, however many ask for it, and kept", async () => {
    const { connections, attempts } = subject(async (attempt) => attempt);
    expect(await Promise.all([connections.get(), connections.get()])).toEqual([1, 1]);
    expect(await connections.get()).toBe(1);
    expect(attempts()).toBe(1);
  });

  it("is opened anew once it was lost, and one that was lost before is not lost twice", async () => {
    const { connections, closed, pausesMs } = subject(async (attempt) => attempt);
    const first = await connections.get();
    await connections.lose(first);
    const second = connections.get();
    await connections.lose(first);
    expect(await second).toBe(2);
    expect(await connections.get()).toBe(2);
    expect(closed).toEqual([1, 1]);
    expect(pausesMs).toEqual([]);
  });

  it("that is lost is forgotten at once: whoever asks next gets another", async () => {
    const { connections } = subject(async (attempt) => attempt);
    const first = await connections.get();
    void connections.lose(first);
    expect(await connections.get()).toBe(2);
  });
});

describe("a connection that is lost before anybody got it", () => {
  it("is handed to nobody: the attempt fails, and the next one opens another", async () => {
    let lose: (connection: number) => Promise<void> = async () => undefined;
    const { connections, closed } = subject(async (attempt) => {
      // As a library does that reports the end of a connection by a promise that has settled already.
      if (attempt === 1) void lose(attempt);
      return attempt;
    });
    lose = (connection) => connections.lose(connection);
    await expect(connections.get()).rejects.toMatchObject({ kind: "unreachable", outcome: "not-applied" });
    expect(closed).toEqual([1]);
    expect(await connections.get()).toBe(2);
    expect(await connections.get()).toBe(2);
  });
});

describe("attempts that fail", () => {
  it("reject, and the next one waits longer each time, but never more than two seconds", async () => {
    const { connections, pausesMs } = subject(failing);
    for (let attempt = 0; attempt < 12; attempt += 1) {
      await expect(connections.get()).rejects.toThrow("refused");
    }
    expect(pausesMs).toEqual([20, 40, 80, 160, 320, 640, 1_280, 2_000, 2_000, 2_000, 2_000]);
  });

  it("are forgotten by one that succeeds", async () => {
    const { connections, pausesMs } = subject((attempt) => (attempt === 2 ? Promise.resolve(2) : failing()));
    await expect(connections.get()).rejects.toThrow();
    await connections.lose(await connections.get());
    await expect(connections.get()).rejects.toThrow();
    expect(pausesMs).toEqual([20]);
  });

  it("name their reason to a caller that could not wait for the next one", async () => {
    const { connections } = subject((attempt) => (attempt === 1 ? failing() : new Promise(() => undefined)));
    const noReason = new Error("too slow");
    await expect(connections.get()).rejects.toThrow("refused");
    await expect(connections.getWithin(10, () => noReason)).rejects.toThrow("refused");
    const silent = subject(() => new Promise(() => undefined));
    await expect(silent.connections.getWithin(10, () => noReason)).rejects.toThrow("too slow");
  });
});

describe("after close", () => {
  it("calls are rejected as closed, and the connection is closed", async () => {
    const { connections, closed } = subject(async (attempt) => attempt);
    await connections.get();
    await connections.close();
    expect(closed).toEqual([1]);
    await expect(connections.get()).rejects.toMatchObject({ kind: "closed", outcome: "not-applied" });
    await connections.close();
    expect(closed).toEqual([1]);
  });

  it("an attempt that was under way is not waited for, and what it opens is closed", async () => {
    let finish: (connection: number) => void = () => undefined;
    const { connections, closed } = subject(() => new Promise((resolve) => (finish = resolve)));
    const opening = connections.get();
    await connections.close();
    finish(1);
    await expect(opening).rejects.toMatchObject({ kind: "closed" });
    expect(closed).toEqual([1]);
  });
});
