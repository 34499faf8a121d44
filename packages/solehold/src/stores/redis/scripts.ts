/**
 * The scripts that read and write records and keep the identity of the data; those of the wait queue are in
 * queue-scripts.ts. They compare and swap, and know nothing of leases, so no rule exists twice. Every key they touch is
 * in KEYS, the first is $identity.
 *
 * ARGV[1] is the request's id, with which every reply begins and ends. ARGV[2] and ARGV[3] are the epoch of the data and the
 * number of the last write that this client saw. If the data is another or older, the reply is "moved", and nothing was
 * done. Otherwise it goes on with the server's time and the number of the last write, in one string.
 */
import { createHash } from "node:crypto";

export interface RedisScript {
  readonly source: string;
  readonly sha: string;
}

export function script(source: string): RedisScript {
  return { source, sha: createHash("sha1").update(source).digest("hex") };
}

/** Compares the data with what this client saw. */
const SAME_DATA = `local identity = redis.call('HMGET', KEYS[1], 'epoch', 'writes')
if identity[1] ~= ARGV[2] or tonumber(identity[2] or -1) < tonumber(ARGV[3]) then return { ARGV[1], 'moved', ARGV[1] } end
local time = redis.call('TIME')
local writes = identity[2]
`;

const COUNT_WRITE = `writes = redis.call('HINCRBY', KEYS[1], 'writes', 1)
`;

/**
 * ARGV[4] is "count" or "check". A replica would answer a script that only reads, perhaps with what is long outdated.
 * PERSIST is a write, which it refuses, and which changes nothing here. "count" makes it a real write, so that the
 * replicas can be waited for: then they have everything that the reply shows.
 */
export const READS = `${SAME_DATA}if ARGV[4] == 'count' then ${COUNT_WRITE}else redis.call('PERSIST', KEYS[1]) end
local reply = { ARGV[1], time[1] .. ' ' .. time[2] .. ' ' .. writes }
`;

export const REPLY = `reply[#reply + 1] = ARGV[1]
return reply
`;

/** A value with a version in its first line; the version of anything else; false for nothing. */
export const SHOWN = `local function shown(key, value)
  if value then return string.find(value, '^%d+%-[^\\n]*\\n') and value or '!' .. redis.sha1hex(value) end
  return redis.call('EXISTS', key) == 1 and '!not-a-string'
end
`;

/** KEYS: identity, then the keys to read. Reply: what each shows. */
export const READ = script(`${READS}${SHOWN}
local values = #KEYS > 1 and redis.call('MGET', unpack(KEYS, 2))
for i = 2, #KEYS do reply[i + 1] = shown(KEYS[i], values[i - 1]) end
${REPLY}`);

/** KEYS: identity, index. ARGV[5]...: first and last member, limit. Reply: members. */
export const RANGE = script(`${READS}
for _, member in ipairs(redis.call('ZRANGEBYLEX', KEYS[2], ARGV[5], ARGV[6], 'LIMIT', 0, ARGV[7])) do
  reply[#reply + 1] = member
end
${REPLY}`);

/** What the scripts have in common that wake waiting clients. Keys and channels begin as $identity does. */
export const WAKES = `local base = string.sub(KEYS[1], 1, -10)
local function negative_now() return string.format('%.0f', -(time[1] * 1000000 + time[2])) end
-- Wakes the first in the queue, and marks it with the time, made negative: it is out of the order, and newcomers see
-- that somebody was woken just now. Clients that nobody hears for are dropped: their connection is gone. Without the
-- right to use queues nobody is woken, and whoever waits has to look.
local function wake_next(queue, message)
  local first = redis.pcall('ZPOPMIN', queue)
  while first[1] and (tonumber(first[2]) < 0 or redis.pcall('PUBLISH', base .. 'turn:' .. first[1], 'turn\\n' .. message) == 0) do
    first = redis.call('ZPOPMIN', queue)
  end
  if first[1] then redis.call('ZADD', queue, negative_now(), first[1]) end
end
local function wake_all(queue, message)
  for _, client in ipairs(redis.pcall('ZRANGE', queue, 0, -1)) do
    redis.pcall('PUBLISH', base .. 'turn:' .. client, 'look\\n' .. message)
  end
end
`;

/** Whom a write wakes of those who wait for its key. */
export const WAKE = { nobody: "-", next: "n", all: "a" } as const;

/**
 * KEYS: identity, index, a key per write, and then the queue of each write that wakes somebody. ARGV[4]: one letter of
 * WAKE per write. Then per write what its value must begin with (empty: no value), and the new value without the number
 * of the write (empty: delete). Reply: for each write that was not done its number, and what its key shows.
 *
 * Announcements are hints: where the user may not publish, the write is done all the same.
 */
export const WRITE = script(`${SAME_DATA}${COUNT_WRITE}${SHOWN}${WAKES}
local reply = { ARGV[1], time[1] .. ' ' .. time[2] .. ' ' .. writes }
local count, sub = #ARGV[4], string.sub
local values = count > 0 and redis.call('MGET', unpack(KEYS, 3, count + 2))
local queue = count + 2
for i = 1, count do
  local key, value, want, next, wake = KEYS[i + 2], values[i], ARGV[i * 2 + 3], ARGV[i * 2 + 4], sub(ARGV[4], i, i)
  if wake ~= '${WAKE.nobody}' then queue = queue + 1 end
  local fits
  if value and sub(want, 1, 1) ~= '!' then
    fits = want ~= '' and sub(value, 1, #want) == want
  else
    fits = (shown(key, value) or '') == want
  end
  if fits then
    local member = sub(key, #base + 1)
    if next == '' then
      redis.call('DEL', key)
      redis.call('ZREM', KEYS[2], member)
    else
      next = writes .. next
      redis.call('SET', key, next)
      if not value or sub(want, 1, 1) == '!' then redis.call('ZADD', KEYS[2], 0, member) end
    end
    local message = member .. '\\n' .. next
    redis.pcall('PUBLISH', base .. 'changed', message)
    if wake == '${WAKE.next}' then wake_next(KEYS[queue], message) end
    if wake == '${WAKE.all}' then wake_all(KEYS[queue], message) end
  else
    reply[#reply + 1] = i
    reply[#reply + 1] = shown(key, value)
  end
end
${REPLY}`);

/** KEYS: identity. ARGV: id. Reply: time, INFO of the server that answers, identity, epoch, number of the last write. */
export const LOOK = script(`local time = redis.call('TIME')
local identity = redis.call('HMGET', KEYS[1], 'identity', 'epoch', 'writes')
return { ARGV[1], time[1] .. ' ' .. time[2], redis.call('INFO'), identity[1], identity[2], identity[3] or '0', ARGV[1] }
`);

/** KEYS: identity. ARGV: id, the identity that must stand (empty: none), the next one, its epoch. Reply: "done" or "moved". */
export const ADOPT = script(`
if (redis.call('HGET', KEYS[1], 'identity') or '') ~= ARGV[2] then return { ARGV[1], 'moved', ARGV[1] } end
redis.call('HSET', KEYS[1], 'identity', ARGV[3], 'epoch', ARGV[4])
redis.call('HSETNX', KEYS[1], 'writes', '0')
return { ARGV[1], 'done', ARGV[1] }
`);
