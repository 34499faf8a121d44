/**
 * The guard of data in Redis: one script compares the fence and runs the commands, so nothing can come
 * between. Fences are compared as text of equal length, because Lua's numbers are doubles.
 *
 * It is as durable as Redis is: data that is lost with its fence can be written by anybody again.
 */
import { formatFence, keyId, type LeaseKey, parseFence } from "../core/index.ts";
import type { Fenced } from "./fenced-resource.ts";
import { StaleFenceError } from "./stale-fence-error.ts";

/** The part of ioredis that is used. */
export interface ScriptClient {
  eval(script: string, keyCount: number, ...keysAndArguments: string[]): Promise<unknown>;
}

export interface RedisGuardOptions {
  /** Where the newest fence of a lease is kept; in a Redis Cluster in the slot of the keys that are written. Default `fence:` and the lease's key. */
  readonly fenceKeyOf?: (key: LeaseKey) => string;
}

export interface FencedCommands {
  /** `[["SET", "report", "…"], ["INCR", "reports"]]` */
  readonly commands: readonly (readonly string[])[];
  /** Every key that the commands use. */
  readonly keys: readonly string[];
}

/** KEYS[1] is the fence's key. ARGV: the fence, then each command as its length and its words. */
export const FENCED_COMMANDS_SCRIPT = `local newest = redis.call('GET', KEYS[1])
if newest and newest > ARGV[1] then return {'stale', newest} end
redis.call('SET', KEYS[1], ARGV[1])
local replies = {'done'}
local at = 2
while at <= #ARGV do
  local count = tonumber(ARGV[at])
  replies[#replies + 1] = redis.call(unpack(ARGV, at + 1, at + count))
  at = at + count + 1
end
return replies`;

export class RedisGuard {
  readonly #client: ScriptClient;
  readonly #fenceKeyOf: (key: LeaseKey) => string;

  constructor(client: ScriptClient, options: RedisGuardOptions = {}) {
    this.#client = client;
    this.#fenceKeyOf = options.fenceKeyOf ?? ((key) => `fence:${keyId(key)}`);
  }

  /** From here on no older fence passes. For a new holder, before it reads. */
  async raise(by: Fenced): Promise<void> {
    await this.run(by, { commands: [], keys: [] });
  }

  /**
   * Runs the commands, all or none of them seen by others, unless a newer fence was seen: StaleFenceError.
   * A command that fails stops the ones after it; those before it stay, as always in Redis.
   */
  async run(by: Fenced, { commands, keys }: FencedCommands): Promise<readonly unknown[]> {
    const names = [this.#fenceKeyOf(by.key), ...keys];
    const words = commands.flatMap((command) => [String(command.length), ...command]);
    const values = [formatFence(by.fence), ...words];
    const reply = await this.#client.eval(FENCED_COMMANDS_SCRIPT, names.length, ...names, ...values);
    if (!Array.isArray(reply)) throw new TypeError(`the fence script replied ${String(reply)}, not a list`);
    const [verdict, ...replies] = reply as unknown[];
    if (verdict === "stale")
      throw new StaleFenceError(by.key, by.fence, parseFence(String(replies[0])) ?? 0n);
    return replies;
  }
}
