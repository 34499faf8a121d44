/** One source of events for many watches, opened again whenever it is lost. */
import { describe, expect, it } from "vitest";
import { realEnv } from "../../../src/env/index.ts";
import type { StoreEvent } from "../../../src/store/index.ts";
import { WatchFeed } from "../../../src/stores/support/watch-feed.ts";
import { until } from "../records.ts";

interface Source {
  readonly number: number;
  readonly onLost: () => void;
}

const EVERYTHING = { tenant: null, prefix: "" };
const CHANGE: StoreEvent = { kind: "changed", key: { tenant: "default", name: "db" }, stored: null };

/** Sources are numbered. `opening` may fail one, or lose it, before anybody gets it. */
function subject(opening: (source: Source) => void = () => undefined) {
  const opened: Source[] = [];
  const closed: number[] = [];
  const feed = new WatchFeed<Source>({
    env: realEnv,
    name: "test",
    open: async (onLost) => {
      const source = { number: opened.length + 1, onLost };
      opened.push(source);
      opening(source);
      return source;
    },
    close: ({ number }) => void closed.push(number),
  });
  return { feed, opened, closed };
}

async function watching(feed: WatchFeed<Source>) {
  const events: StoreEvent[] = [];
  const watch = await feed.watch(EVERYTHING, (event) => void events.push(event));
  return { events, watch };
}

describe("a feed", () => {
  it("opens one source for all watches, and announces to each what is in its scope", async () => {
    const { feed, opened } = subject();
    const [one, two] = await Promise.all([watching(feed), watching(feed)]);
    const elsewhere: StoreEvent[] = [];
    await feed.watch({ tenant: "other", prefix: "" }, (event) => void elsewhere.push(event));
    feed.announce(CHANGE);
    await until("both have it", async () => (two.events.length === 1 ? true : null));
    expect([one.events, two.events, elsewhere, opened.length]).toEqual([[CHANGE], [CHANGE], [], 1]);
    await feed.close();
  });

  it("opens another when the source is lost, and everybody gets one reset", async () => {
    const { feed, opened, closed } = subject();
    const { events } = await watching(feed);
    opened[0]!.onLost();
    opened[0]!.onLost();
    await until("it is reset", async () => (events.length > 0 ? true : null));
    expect([opened.length, closed, events]).toEqual([2, [1], [{ kind: "reset" }]]);
    await feed.close();
    expect(closed).toEqual([1, 2]);
  });

  it("does not hand out a source that was lost as it was opened, nor spin on it", async () => {
    const { feed, opened } = subject((source) => {
      if (source.number === 1) source.onLost();
    });
    await expect(watching(feed)).rejects.toMatchObject({ kind: "unreachable" });
    const { events } = await watching(feed);
    expect([opened.length, events]).toEqual([2, []]);
    await feed.close();
  });

  it("goes on trying while somebody watches, and stops when nobody does", async () => {
    let isBroken = false;
    const { feed, opened } = subject(() => {
      if (isBroken) throw new Error("refused");
    });
    const { events, watch } = await watching(feed);
    isBroken = true;
    opened[0]!.onLost();
    await until("it tried again", async () => (opened.length > 2 ? true : null));
    isBroken = false;
    await until("it is reset", async () => (events.length > 0 ? true : null));
    await watch.close();
    const { length } = opened;
    opened.at(-1)!.onLost();
    await new Promise((resolve) => setImmediate(resolve));
    expect(opened).toHaveLength(length);
    await feed.close();
  });

  it("rejects watches after it was closed", async () => {
    const { feed } = subject();
    await watching(feed);
    await feed.close();
    await expect(watching(feed)).rejects.toMatchObject({ kind: "closed" });
  });
});
