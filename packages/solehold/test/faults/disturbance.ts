/**
 * Whatever becomes of its connections, a store answers each call or rejects it with a StoreError, and nothing escapes as
 * an uncaught exception or an unhandled rejection. Stores are opened, watched, used and closed in the middle of it, while
 * a saboteur breaks connections, for SOLEHOLD_FAULT_SECONDS (default 1.5) and until enough has happened.
 */
import { expect } from "vitest";
import type { LeaseKey } from "../../src/core/index.ts";
import { type LeaseStore, StoreError } from "../../src/store/index.ts";
import { recordOf, until } from "../stores/records.ts";
import type { Saboteur } from "./saboteur.ts";
import { Escapes } from "./witness.ts";

export const FAULT_MS = Number(process.env.SOLEHOLD_FAULT_SECONDS ?? 1.5) * 1_000;
const USERS = 3;
const FAULTS_AT_LEAST = 30;
const ANSWERS_AT_LEAST = 20;

export interface Disturbed {
  open(): Promise<LeaseStore>;
  readonly saboteur: Saboteur;
  /** Ends connections at the server itself, where it can do that. */
  terminate?(): Promise<unknown>;
}

const pause = (maxMs: number): Promise<void> =>
  new Promise((resolve) => setTimeout(resolve, Math.random() * maxMs));

export async function disturbStores({ open, saboteur, terminate }: Disturbed): Promise<void> {
  const escapes = new Escapes();
  escapes.listen();
  let [answers, faults, isOver] = [0, 0, false];
  let lastFailure = "none";
  const note = async (call: Promise<unknown>): Promise<void> => {
    try {
      await call;
      answers += 1;
    } catch (error) {
      if (!(error instanceof StoreError)) throw error;
      lastFailure = error.message;
    }
  };
  const use = async (): Promise<void> => {
    while (!isOver) {
      const store = await open().catch((error: unknown) => error);
      // A turn of the event loop each time: a client that has ended refuses without any, and so would starve the rest.
      await new Promise((resolve) => setImmediate(resolve));
      if (store instanceof Object && "apply" in store) await useOnce(store as LeaseStore, note);
      else await note(Promise.reject(store));
    }
  };
  const users = Array.from({ length: USERS }, use);
  const endMs = performance.now() + FAULT_MS;
  try {
    while (performance.now() < endMs || faults < FAULTS_AT_LEAST || answers < ANSWERS_AT_LEAST) {
      for (let burst = 0; burst < 5; burst += 1) {
        saboteur.fault();
        if (burst % 2 === 1) await terminate?.();
        faults += 1;
        await pause(10);
      }
      saboteur.calm();
      const before = answers;
      await until("a call is answered again", async () => (answers > before ? true : null)).catch((error) => {
        throw new Error(`${(error as Error).message}; the last failure was: ${lastFailure}`);
      });
    }
  } finally {
    saboteur.calm();
    isOver = true;
    await Promise.all(users);
  }
  const store = await until("a store can be opened again", open);
  await until("it reads", () => store.read([keyOf(0)]));
  await store.close();
  // Unhandled rejections are reported after a turn.
  await new Promise((resolve) => setImmediate(resolve));
  escapes.stop();
  expect(escapes.seen).toEqual([]);
}

const keyOf = (index: number): LeaseKey => ({ tenant: "default", name: `disturbed/${index}` });

/** Closes while calls are under way. */
async function useOnce(store: LeaseStore, note: (call: Promise<unknown>) => Promise<void>): Promise<void> {
  const calls: Promise<void>[] = [];
  const { maxBatch } = store.capabilities;
  if (store.watch !== undefined) calls.push(note(store.watch({ tenant: null, prefix: "" }, () => undefined)));
  for (let round = 0; round < 6; round += 1) {
    const keys = [round, round + 6, round + 12].slice(0, maxBatch).map(keyOf);
    calls.push(note(store.read(keys)));
    const writes = keys.map((key) => ({ key, expected: null, next: recordOf(key.name) }));
    calls.push(note(store.apply(writes)));
    if (store.list !== undefined)
      calls.push(note(store.list({ tenant: "default", prefix: "disturbed/", limit: 10 })));
    await pause(20);
  }
  await store.close();
  await Promise.all(calls);
}
