/** The scripts of the wait queue, see queue.ts. Those that release a key wake the next by themselves, in scripts.ts. */
import { READS, REPLY, SHOWN, script, WAKES } from "./scripts.ts";

/** How long whoever was woken is given to try, before the key counts as free for newcomers. */
const GRACE_US = 100_000;
/** A queue that nobody enters again is forgotten. Whoever waits enters again every few seconds. */
const KEPT_MS = 60_000;

/**
 * Enters at the end, or at the position that this client had, and shows the record, and whether somebody was woken just
 * now. KEYS: identity, queue, record. ARGV[5]...: client, its position (empty for a new one).
 * Reply: position, what the record's key shows, 1 if somebody was woken.
 */
export const ENTER = script(`${READS}${SHOWN}
local now = time[1] * 1000000 + time[2]
local position = ARGV[6] ~= '' and ARGV[6] or string.format('%.0f', now)
if tonumber(redis.call('ZSCORE', KEYS[2], ARGV[5]) or -1) < 0 then redis.call('ZADD', KEYS[2], position, ARGV[5]) end
redis.call('PEXPIRE', KEYS[2], ${KEPT_MS})
local first = tonumber(redis.call('ZRANGE', KEYS[2], 0, 0, 'WITHSCORES')[2])
reply[3] = position
reply[4] = shown(KEYS[3], redis.call('MGET', KEYS[3])[1])
reply[5] = first < 0 and now + first < ${GRACE_US} and 1 or 0
${REPLY}`);

/**
 * Ends or changes a position. KEYS: identity, queue. ARGV[5]...: client, what to do, tenant/name.
 * "woken": it goes on as if it had been woken. "leave": it is out. "pass": it is out, and if it was woken, so is the
 * next.
 */
export const LEAVE = script(`${READS}${WAKES}
if ARGV[6] == 'woken' then
  redis.call('ZADD', KEYS[2], negative_now(), ARGV[5])
else
  local score = tonumber(redis.call('ZSCORE', KEYS[2], ARGV[5]) or -1)
  redis.call('ZREM', KEYS[2], ARGV[5])
  if ARGV[6] == 'pass' and score < 0 then wake_next(KEYS[2], ARGV[7]) end
end
${REPLY}`);
