/**
 * The door of a store's folder: while a process opens the database, nobody else writes to it.
 *
 * LMDB, as lmdb 3 brings it, has a mistake that was mended elsewhere as ITS#9496. Who opens a database looks which
 * transaction is the latest, and a little later writes that number where all processes look for it. If another process
 * commits in between, its transaction is forgotten although it was acknowledged, and its pages are used again. On a
 * loaded machine a little later is late enough.
 *
 * So every process that has the store open listens on a socket in the folder `door`, whose name begins with a number. Who
 * comes takes one above all others there, and asks each of them to stand still. They stop writing, wait for what is
 * under way, say so, and go on when the connection ends, be it because its other end is done or because it is dead. Who is
 * itself about to open is asked after that: of several who come at once each waits for those with lower numbers, and
 * nobody in a circle. Closing counts as a write: LMDB takes its locks apart then.
 *
 * A process that is stopped cannot answer, and must not keep others from taking over from it. It stands still as long as it
 * is stopped, unless that happened while it opened: so a file beside its socket says when it has. That it goes on in
 * the very moment of opening cannot be ruled out, so who opens looks whether anybody has committed meanwhile: see
 * `openRoot` in database.ts.
 */
import { mkdirSync, readdirSync, renameSync, writeFileSync } from "node:fs";
import { createServer, type Server, type Socket } from "node:net";
import { join } from "node:path";
import { delay, type Env, jittered } from "../../env/index.ts";
import { StoreError } from "../../store/index.ts";
import { configProblem, oneLine } from "./failure.ts";
import {
  type AwaitedState,
  HERE,
  Neighbour,
  OPENING,
  openMarkOf,
  removeFromDoor,
  STANDS_STILL,
} from "./neighbour.ts";
import { SOCKETS_ARE_ELSEWHERE, withSocketPath } from "./socket-path.ts";
import type { WriteGate } from "./write-gate.ts";

export const DOOR_FOLDER = "door";
/** "number-process-random". The rest decides where two have the same number. */
const NAME = /^\d{1,15}-\d+-\w+$/;
const RANDOM_BYTES = 6;

/** For how long there may be no news of the others. Nobody stands still for that. */
export const PATIENCE_MS = 10_000;
/** Who waits longer for the slowest to stand still lets all go on, and tries again, with more patience. */
const STANDSTILL_MS = 500;
const TRY_AGAIN_MS = 200;
const JITTER_RATIO = 0.5;

export interface DoorOptions {
  readonly folder: string;
  readonly env: Env;
  readonly patienceMs: number;
}

export class Door {
  readonly #options: DoorOptions;
  readonly #folder: string;
  readonly #server: Server;
  readonly #visitors = new Set<Socket>();
  #name: string;
  /** Who stands still while this one opens. */
  #neighbours: Neighbour[] = [];
  #hasLeft = false;
  /** Null until this one has opened. */
  #gate: WriteGate | null = null;

  private constructor(options: DoorOptions) {
    this.#options = options;
    this.#folder = join(options.folder, DOOR_FOLDER);
    this.#name = `new-${Buffer.from(options.env.randomBytes(RANDOM_BYTES)).toString("hex")}`;
    this.#server = createServer((visitor) => this.#receive(visitor));
    // An idle store must not keep its process from ending.
    this.#server.unref();
  }

  /** When this has resolved nobody else writes, until `opened` or `leave`. */
  static async enter(options: DoorOptions): Promise<Door> {
    const door = new Door(options);
    await door.#listen();
    try {
      door.#takeNumber();
      await door.#waitForStandstill();
      return door;
    } catch (error) {
      door.leave();
      throw error;
    }
  }

  /** The database is open: the others go on, and this one stands still by the gate from now on. */
  opened(gate: WriteGate): void {
    this.#gate = gate;
    try {
      writeFileSync(join(this.#folder, openMarkOf(this.#name)), "", { mode: 0o600 });
    } catch {
      // On a full disk: then who comes while this one is stopped has to wait for it.
    }
    this.#dismissNeighbours();
    for (const visitor of this.#visitors) visitor.write(`${HERE}\n`);
  }

  /** The database is closed, or was not opened. */
  leave(): void {
    this.#hasLeft = true;
    this.#dismissNeighbours();
    removeFromDoor(this.#folder, this.#name);
    this.#server.close();
    for (const visitor of this.#visitors) visitor.destroy();
  }

  async #listen(): Promise<void> {
    const server = this.#server;
    try {
      mkdirSync(this.#folder, { recursive: true, mode: 0o700 });
      if (SOCKETS_ARE_ELSEWHERE) writeFileSync(join(this.#folder, this.#name), "");
      await new Promise<void>((resolve, reject) => {
        server.once("error", reject);
        withSocketPath(this.#folder, this.#name, (path) => server.listen({ path, exclusive: true }, resolve));
      });
    } catch (error) {
      const problem = `processes that share '${this.#options.folder}' cannot reach each other (${oneLine(error)})`;
      throw configProblem(`${problem}: use a folder on a local disk that can hold sockets`, error);
    }
    // What else may happen to it concerns visitors, who come again.
    server.on("error", () => undefined);
  }

  /**
   * Only now others can find it: a socket that does not listen yet looks like that of a dead process. Who sees a higher
   * number afterwards takes another. So whom it has not seen comes later, and sees it.
   */
  #takeNumber(): void {
    const random = this.#name.split("-").at(-1);
    do {
      const highest = Math.max(0, ...this.#names().map(numberOf));
      const name = `${highest + 1}-${process.pid}-${random}`;
      renameSync(join(this.#folder, this.#name), join(this.#folder, name));
      this.#name = name;
    } while (this.#names().some((name) => isAbove(name, this.#name)));
  }

  async #waitForStandstill(): Promise<void> {
    const { env, patienceMs } = this.#options;
    await this.#meetNeighbours();
    const untilMs = env.monotonicMs() + patienceMs;
    for (let standstillMs = STANDSTILL_MS; ; standstillMs *= 2) {
      for (const neighbour of this.#neighbours) neighbour.ask();
      if (await this.#allWithin(standstillMs, "still")) return;
      const failure = this.#unanswered("still");
      this.#dismissNeighbours();
      await delay(env, jittered(env, TRY_AGAIN_MS, JITTER_RATIO));
      if (env.monotonicMs() >= untilMs) throw failure;
      await this.#meetNeighbours();
    }
  }

  /** Resolves when all of them have the store open. As long as there is news of them, they are waited for. */
  async #meetNeighbours(): Promise<void> {
    const { env, patienceMs } = this.#options;
    let newsAtMs = env.monotonicMs();
    const onNews = (): void => {
      newsAtMs = env.monotonicMs();
    };
    const names = this.#names().filter((name) => isAbove(this.#name, name));
    const isForLater = (name: string): boolean => isAbove(name, this.#name);
    const folder = this.#folder;
    this.#neighbours = names.map((name) => new Neighbour({ folder, name, env, isForLater, onNews }));
    for (let leftMs = patienceMs; leftMs > 0; leftMs = newsAtMs + patienceMs - env.monotonicMs()) {
      if (await this.#allWithin(leftMs, "here")) return;
    }
    throw this.#unanswered("here");
  }

  async #allWithin(patienceMs: number, state: AwaitedState): Promise<boolean> {
    const enough = new AbortController();
    const late = delay(this.#options.env, patienceMs, enough.signal).then(() => false);
    const all = Promise.all(this.#neighbours.map((neighbour) => neighbour.becomes(state))).then(() => true);
    try {
      // Who was stopped may have gone on while others were waited for.
      return (await Promise.race([all, late])) && this.#neighbours.every((neighbour) => neighbour.is(state));
    } finally {
      enough.abort();
    }
  }

  #unanswered(state: AwaitedState): StoreError {
    const silent = this.#neighbours.filter((neighbour) => !neighbour.is(state));
    const pids = silent.map(({ pid }) => pid);
    const who = pids.length === 1 ? `process ${pids[0]} has` : `processes ${pids.join(", ")} have`;
    const message = `the store in '${this.#options.folder}' cannot be opened now: ${who} it open and did not answer`;
    const advice = "a process that is stopped or busy must go on first, or end";
    return new StoreError("timeout", `${message}; ${advice}`, { outcome: "not-applied" });
  }

  #dismissNeighbours(): void {
    for (const neighbour of this.#neighbours.splice(0)) neighbour.dismiss();
  }

  #receive(visitor: Socket): void {
    visitor.on("error", () => visitor.destroy());
    // It had come before, and finds nobody when it comes again.
    if (this.#hasLeft) {
      visitor.destroy();
      return;
    }
    this.#visitors.add(visitor);
    visitor.unref();
    visitor.once("close", () => this.#visitors.delete(visitor));
    visitor.once("data", () => {
      // Otherwise a process with nothing to do but to wait for this would end.
      visitor.ref();
      // Nobody asks who is not there yet.
      if (this.#gate === null) visitor.destroy();
      else void standStillFor(visitor, this.#gate);
    });
    visitor.write(this.#gate === null ? `${OPENING}:${this.#name}\n` : `${HERE}\n`);
  }

  #names(): readonly string[] {
    return readdirSync(this.#folder).filter((name) => NAME.test(name));
  }
}

async function standStillFor(visitor: Socket, gate: WriteGate): Promise<void> {
  if (visitor.destroyed) return;
  const still = gate.shut();
  visitor.once("close", () => gate.open());
  await still;
  if (!visitor.destroyed) visitor.write(`${STANDS_STILL}\n`);
}

function numberOf(name: string): number {
  return Number.parseInt(name, 10);
}

function isAbove(name: string, other: string): boolean {
  return numberOf(name) === numberOf(other) ? name > other : numberOf(name) > numberOf(other);
}
