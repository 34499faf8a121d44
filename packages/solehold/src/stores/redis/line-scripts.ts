/**
 * The scripts of the lines in which clients wait for a key, see lines.ts; and the one that ends a lone lease, because it
 * tells the next in line. Like the others they know nothing of leases: they compare, swap, and keep an order.
 */
import { ENDED, TURN, VALUE_FOLLOWS } from "./announcement.ts";
import type { RedisDriver } from "./driver.ts";
import type { RedisLayout } from "./layout.ts";
import {
  ALL_DONE,
  HEADER,
  luaText,
  type RedisScript,
  SAME_DATA,
  script,
  WRITES_SAME_DATA,
} from "./scripts.ts";
import { HEADER_LENGTH } from "./value.ts";
import { WITH_ITS_REST } from "./writing-script.ts";

type Topology = RedisDriver["topology"];

/** Of microseconds since 1970 a double holds every one. It expects `time`. */
const NOW_US = "(time[1] * 1000000 + time[2])";

/** How long whoever was told is given to try, before the key counts as free for newcomers. */
const GRACE_US = 100_000;

/**
 * Tells the next in line, and marks it: its score is the time, made negative. So it is the first that the next one who
 * tells takes out, and newcomers can see that somebody was told just now. Who listens no more is passed over: its
 * connection is gone. The nodes of a cluster count those who listen at them alone, so that there nobody can be passed
 * over: a turn of who is gone is lost, and the others find out by looking. What the user may not do is left out: a
 * lease that has ended must not look as if it had not. It expects `line` and `said`.
 */
function tellNext(layout: RedisLayout, topology: Topology): string {
  const channel = `${luaText(layout.turnChannel(""))} .. heir[1]`;
  const unheard = topology === "single" ? "0" : "false";
  return `local heir = redis.pcall('ZPOPMIN', line)
while heir[1] and (tonumber(heir[2]) < 0 or redis.pcall('PUBLISH', ${channel}, said) == ${unheard}) do
  heir = redis.call('ZPOPMIN', line)
end
if heir[1] then
  local time = redis.call('TIME')
  redis.call('ZADD', line, string.format('%.0f', -${NOW_US}), heir[1])
end
`;
}

/**
 * Replaces a record by one that nobody holds.
 * KEYS: sequence, record, line. ARGV: as in the writing script, with one header and no letter.
 * Reply: as that of the writing script.
 */
export function endingScript(layout: RedisLayout, topology: Topology): RedisScript {
  return script(`${WRITES_SAME_DATA}
local sub = string.sub
local value, next = call('MGET', KEYS[2])[1], ARGV[3]
if value and sub(value, 1, ${HEADER_LENGTH}) == ARGV[2] then
  ${WITH_ITS_REST}
else
  next = false
end
if not next then
  if not value and call('EXISTS', KEYS[2]) == 1 then value = 1 end
  ${HEADER}
  return { header, 1, value }
end
call('SET', KEYS[2], next)
local said = KEYS[2] .. ${luaText(VALUE_FOLLOWS)} .. next
call('PUBLISH', ${luaText(layout.channel)}, '${ENDED}' .. said)
local line = KEYS[3]
said = '${TURN}' .. said
${tellNext(layout, topology)}${ALL_DONE}
`);
}

/**
 * Takes a place at the end of the line, or at the one that this client had, and shows what stands there now, and
 * whether somebody was told just now that it is free.
 * KEYS: sequence, line, record. ARGV: last sequence seen, client, its place (empty for a new one), how long lines are kept.
 * Reply: { "time", place, value or false, 1 if somebody was told }.
 */
export const ENTER = script(`${SAME_DATA}
local place = ARGV[3]
if place == '' then place = string.format('%.0f', ${NOW_US}) end
if tonumber(redis.call('ZSCORE', KEYS[2], ARGV[2]) or -1) < 0 then redis.call('ZADD', KEYS[2], place, ARGV[2]) end
redis.call('PEXPIRE', KEYS[2], ARGV[4])
local told = tonumber(redis.call('ZRANGE', KEYS[2], 0, 0, 'WITHSCORES')[2])
local isPending = told < 0 and ${NOW_US} + told < ${GRACE_US}
return { header, place, redis.call('MGET', KEYS[3])[1], isPending and 1 or 0 }
`);

/**
 * Gives up a place. "pass": if it was this client's turn, the next one is told. "claim": it goes on as if it had been told.
 * KEYS: sequence, line, record. ARGV: last sequence seen, client, "pass", "claim" or "keep". Reply: { "time" }.
 */
export function leavingScript(layout: RedisLayout, topology: Topology): RedisScript {
  return script(`${SAME_DATA}
local line = KEYS[2]
if ARGV[3] == 'claim' then
  redis.call('ZADD', line, string.format('%.0f', -${NOW_US}), ARGV[2])
  return { header }
end
local score = tonumber(redis.call('ZSCORE', line, ARGV[2]) or -1)
redis.call('ZREM', line, ARGV[2])
if ARGV[3] == 'pass' and score < 0 then
  local said = '${TURN}' .. KEYS[3]
  ${tellNext(layout, topology)}end
return { header }
`);
}
