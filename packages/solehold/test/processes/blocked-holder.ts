/** A process that holds a lease which a thread renews, and whose main thread can be blocked: see blocked-holder.mjs. */
import { type ChildProcess, fork } from "node:child_process";
import { join } from "node:path";
import { expect, onTestFinished } from "vitest";
import type { Leases } from "../../src/index.ts";

export interface BlockedHolderOptions {
  readonly url: string;
  readonly name: string;
  readonly ttl: number;
  /** `mainThreadBound` */
  readonly bound: number;
}

export class BlockedHolder {
  readonly #child: ChildProcess;
  readonly messages: unknown[] = [];

  constructor(child: ChildProcess) {
    this.#child = child;
    child.on("message", (message) => this.messages.push(message));
    child.on("exit", (code) => this.messages.push({ ended: code }));
  }

  static async start({ url, name, ttl, bound }: BlockedHolderOptions): Promise<BlockedHolder> {
    const script = join(import.meta.dirname, "blocked-holder.mjs");
    const child = fork(script, [url, name, String(ttl), String(bound)], {
      // The build, as users do; the test runner's own flags would lead to the sources.
      execArgv: [],
      stdio: ["pipe", "inherit", "inherit", "ipc"],
    });
    onTestFinished(() => void child.kill("SIGKILL"));
    const holder = new BlockedHolder(child);
    await holder.says("ready");
    return holder;
  }

  async says(expected: unknown): Promise<void> {
    await expect.poll(() => this.messages).toContainEqual(expected);
  }

  async block(): Promise<void> {
    this.#child.send("block");
    await this.says("blocked");
  }

  unblock(): void {
    this.#child.stdin?.write("x");
  }

  abandon(): void {
    this.#child.send("abandon");
  }
}

/** Blocks a holder for longer than its ttl: its lease is renewed meanwhile, and held in the very turn after. */
export async function outlivesItsBlock(leases: Leases, url: string): Promise<void> {
  const name = `blocked-${leases.holder}`;
  const expiresAtMs = async (): Promise<number> => (await leases.inspect(name))?.expiresAtMs ?? 0;
  const holder = await BlockedHolder.start({ url, name, ttl: 2_000, bound: 60_000 });
  const fence = String((await leases.inspect(name))?.fence);
  await holder.block();
  const firstMs = await expiresAtMs();
  await expect.poll(expiresAtMs).toBeGreaterThan(firstMs + 2_000);
  expect((await leases.tryAcquire(name)).ok).toBe(false);
  holder.unblock();
  await holder.says(expect.objectContaining({ held: true, state: "held", fence }));
}
