/**
 * Lines, where a store keeps them: those who wait for a key are told one after the other, first come, first served, and
 * nobody is told in vain while another has the turn. A turn decides nothing, and may get lost; the cases disturb nobody,
 * so here none is.
 *
 * That somebody was NOT told is only looked at once the same client was told of something later, over the same way.
 */
import { ok } from "node:assert/strict";
import type { LeaseKey, LeaseRecord } from "../core/index.ts";
import type { LeaseStore, StoredRecord } from "../store/index.ts";
import { claimApplied, claimCreated, claimFound } from "./assertions.ts";
import { applyOne, type BenchCase, readOne, type StoreBench } from "./store-fixture.ts";
import { Waiter } from "./waiter.ts";

const ENDED_AT_MS = 1_750_000_000_000;

/** A key that one client holds and two others wait for. */
class Line {
  readonly key: LeaseKey;
  readonly first: Waiter;
  readonly second: Waiter;
  readonly #bench: StoreBench;
  readonly #holder: LeaseStore;
  readonly #last: LeaseStore;
  #version: string;

  private constructor(parts: {
    readonly key: LeaseKey;
    readonly first: Waiter;
    readonly second: Waiter;
    readonly bench: StoreBench;
    readonly holder: LeaseStore;
    readonly last: LeaseStore;
    readonly version: string;
  }) {
    this.key = parts.key;
    this.first = parts.first;
    this.second = parts.second;
    this.#bench = parts.bench;
    this.#holder = parts.holder;
    this.#last = parts.last;
    this.#version = parts.version;
  }

  /** Null where the store keeps no lines, or can have only one client. */
  static async open(bench: StoreBench): Promise<Line | null> {
    const holder = await bench.open();
    if (bench.subject.openSecond === undefined || holder.joinQueue === undefined) return null;
    const key = bench.key("line");
    const [one, last] = [await bench.openSecond(holder), await bench.openSecond(holder)];
    const version = await claimCreated(holder, bench.record(key));
    const first = await Waiter.stand(bench, "the first", one, key);
    const second = await Waiter.stand(bench, "the second", last, key);
    await first.enter();
    await second.enter();
    return new Line({ key, first, second, bench, holder, last, version });
  }

  async release(): Promise<LeaseRecord> {
    const next = this.#bench.record(this.key, { state: "released", endedAtMs: ENDED_AT_MS });
    await this.#write(next, "the release");
    return next;
  }

  stored(): Promise<StoredRecord> {
    return readOne(this.#holder, this.key);
  }

  /** Somebody has it, who may never have stood in line. */
  async grant(): Promise<void> {
    await this.#write(this.#bench.record(this.key), "the grant");
  }

  /** Whatever was told to the second client by now has arrived there. */
  async settleSecond(name: string): Promise<void> {
    const key = this.#bench.key(`settle/${name}`);
    const version = await claimCreated(this.#holder, this.#bench.record(key));
    const waiter = await Waiter.stand(this.#bench, "the second client", this.#last, key);
    await waiter.enter();
    const ended = this.#bench.record(key, { state: "released", endedAtMs: ENDED_AT_MS });
    claimApplied(await applyOne(this.#holder, key, version, ended), "the release of another key");
    await waiter.turn(1);
    await waiter.close();
  }

  async close(): Promise<void> {
    await this.first.close();
    await this.second.close();
  }

  async #write(next: LeaseRecord, what: string): Promise<void> {
    this.#version = claimApplied(await applyOne(this.#holder, this.key, this.#version, next), what);
  }
}

function lineCase(title: string, run: (line: Line) => Promise<void>): BenchCase {
  return {
    title,
    run: async (bench) => {
      const line = await Line.open(bench);
      if (line === null) return;
      await run(line);
      await line.close();
    },
  };
}

export const lineCases: readonly BenchCase[] = [
  {
    title: "who enters the line for a key that nobody holds is told at once",
    run: async (bench) => {
      const store = await bench.open();
      if (store.joinQueue === undefined) return;
      const [absent, ended] = [bench.key("absent"), bench.key("ended")];
      await claimCreated(store, bench.record(ended, { state: "released", endedAtMs: ENDED_AT_MS }));
      for (const key of [absent, ended]) {
        const waiter = await Waiter.stand(bench, "who entered", store, key);
        ok(waiter.turns === 0, "a place that was not entered was told of a turn");
        await waiter.enter();
        const { stored } = await waiter.turn(1);
        ok(stored?.kind !== "found" || stored.record.state !== "held", "a turn must not show a held key");
        waiter.leave("gone");
        await waiter.close();
      }
    },
  },
  lineCase(
    "a release is told to the first in line, with what stands there now, and to nobody else",
    async (line) => {
      await line.settleSecond("held");
      ok(line.first.turns + line.second.turns === 0, "a turn was told while somebody held the key");
      const released = await line.release();
      const { stored } = await line.first.turn(1);
      ok(
        stored === null || (stored.kind === "found" && stored.record.nonce === released.nonce),
        "what comes with a turn must be what was written",
      );
      await line.settleSecond("released");
      ok(line.second.turns === 0, "two were told of one release");
    },
  ),
  lineCase("the next in line is told when the first was served and gives the key back", async (line) => {
    await line.release();
    await line.first.turn(1);
    await line.grant();
    line.first.leave("served");
    await line.settleSecond("served");
    ok(line.second.turns === 0, "the second was told of a key that the first has");
    await line.release();
    await line.second.turn(1);
    ok(line.first.turns === 1, "who was served and left was told of another turn");
  }),
  lineCase("who was told and leaves without it passes the turn on", async (line) => {
    await line.release();
    await line.first.turn(1);
    line.first.leave("gone");
    await line.second.turn(1);
  }),
  lineCase("who closes its place when it was told passes the turn on", async (line) => {
    await line.release();
    await line.first.turn(1);
    await line.first.close();
    await line.second.turn(1);
  }),
  lineCase("who leaves before its turn is passed over", async (line) => {
    line.first.leave("gone");
    await line.release();
    await line.second.turn(1);
    ok(line.first.turns === 0, "who had left was told of a turn");
  }),
  lineCase("who lost its turn to a newcomer comes before those who stood behind it", async (line) => {
    await line.release();
    await line.first.turn(1);
    await line.grant();
    await line.first.enter();
    await line.release();
    await line.first.turn(2);
    await line.settleSecond("again");
    ok(line.second.turns === 0, "who was told and lost went to the end of the line");
  }),
  lineCase("to enter again keeps the place, and is no turn", async (line) => {
    await line.second.enter();
    await line.first.enter();
    await line.settleSecond("entered");
    ok(line.first.turns + line.second.turns === 0, "to enter again was taken for a turn");
    await line.release();
    await line.first.turn(1);
    await line.settleSecond("told");
    ok(line.second.turns === 0, "who entered again was told twice, or before its turn");
  }),
  lineCase("a line writes nothing to its key", async (line) => {
    const released = await line.release();
    await line.first.turn(1);
    line.first.leave("gone");
    await line.second.turn(1);
    claimFound(await line.stored(), released, "after two turns");
  }),
];
