/**
 * The scripts. They compare and swap, and know nothing of leases, so no rule exists twice. Every key they touch is in
 * KEYS, the first is $identity.
 *
 * ARGV[1] is the request's id, with which every reply begins and ends. ARGV[2] and ARGV[3] are the epoch of the data and
 * the number of writes that this client saw. If the data is another or older, the reply is "moved", and nothing was
 * done. After an error it is "error" and the text. Otherwise it goes on with the server's time and the number of writes.
 */
import { createHash } from "node:crypto";

export interface RedisScript {
  readonly source: string;
  readonly sha: string;
}

/** Keys and arguments without those that all scripts have. */
export type ScriptCall = readonly [
  script: RedisScript,
  keys: readonly string[],
  args: readonly (string | Buffer)[],
];

/** Errors are caught, so that they can be replied with the request's id. */
function script(body: string): RedisScript {
  const source = `local function run()
${body}end
local is_done, reply = pcall(run)
if is_done then return reply end
return { ARGV[1], 'error', type(reply) == 'table' and reply.err or tostring(reply), ARGV[1] }
`;
  return { source, sha: createHash("sha1").update(source).digest("hex") };
}

/** Compares the data with what this client saw. */
const SAME_DATA = `local identity = redis.call('HMGET', KEYS[1], 'epoch', 'writes')
if identity[1] ~= ARGV[2] or tonumber(identity[2] or -1) < tonumber(ARGV[3]) then return { ARGV[1], 'moved', ARGV[1] } end
local time = redis.call('TIME')
local writes = identity[2]
`;
const BEGIN_REPLY = `local reply = { ARGV[1], time[1] .. ' ' .. time[2] .. ' ' .. writes }
`;
const END_REPLY = `reply[#reply + 1] = ARGV[1]
return reply
`;

/**
 * A replica would answer a script that only reads, perhaps with what is long outdated. PERSIST is a write, which a replica
 * refuses, and which changes nothing here.
 */
const READS = `${SAME_DATA}redis.call('PERSIST', KEYS[1])
${BEGIN_REPLY}`;

/**
 * A value with a version in its first line; the version of anything else; empty for nothing. Never nil: ioredis throws an
 * error that nobody can catch when something in between repeats a nil and no request is left that waits for it.
 */
const SHOWN = `local function shown(key, value)
  if value then return string.find(value, '^[%w_%-]+%.%w+\\n') and value or '!' .. redis.sha1hex(value) end
  return redis.call('EXISTS', key) == 1 and '!not-a-string' or ''
end
`;

/** KEYS: identity, then the keys to read. Reply: what each shows. */
export const READ = script(`${READS}${SHOWN}
local values = #KEYS > 1 and redis.call('MGET', unpack(KEYS, 2))
for i = 2, #KEYS do reply[i + 1] = shown(KEYS[i], values[i - 1]) end
${END_REPLY}`);

/** KEYS: identity, index. ARGV[4]...: first and last member, limit. Reply: members. */
export const RANGE = script(`${READS}
for _, member in ipairs(redis.call('ZRANGEBYLEX', KEYS[2], ARGV[4], ARGV[5], 'LIMIT', 0, ARGV[6])) do
  reply[#reply + 1] = member
end
${END_REPLY}`);

/**
 * KEYS: identity, index, a key per write. ARGV[4]...: per write what its value must begin with (empty: no value), and the
 * new value (empty: delete). Reply: for each write that was not done its number, and what its key shows.
 *
 * Changes are announced only if somebody listens: to build the message costs more than to write the record. Where the
 * user may not publish, the write is done all the same.
 */
export const WRITE = script(`${SAME_DATA}writes = redis.call('HINCRBY', KEYS[1], 'writes', 1)
${BEGIN_REPLY}${SHOWN}
local sub, call = string.sub, redis.call
local base = sub(KEYS[1], 1, -10)
local channel = base .. 'changed'
local is_watched = (redis.pcall('PUBSUB', 'NUMSUB', channel)[2] or 1) > 0
local count, sets = #KEYS - 2, {}
local values = count > 0 and call('MGET', unpack(KEYS, 3, count + 2))
for i = 1, count do
  local key, want, next = KEYS[i + 2], ARGV[i * 2 + 2], ARGV[i * 2 + 3]
  local value, first = values[i], sub(want, 1, 1)
  local has_version = first ~= '' and first ~= '!'
  local fits = has_version and value and sub(value, 1, #want) == want
    or not has_version and shown(key, value) == want
  if fits then
    local member = sub(key, #base + 1)
    if next == '' then
      call('DEL', key)
      call('ZREM', KEYS[2], member)
    else
      sets[#sets + 1] = key
      sets[#sets + 1] = next
      if not has_version then call('ZADD', KEYS[2], 0, member) end
    end
    if is_watched then redis.pcall('PUBLISH', channel, member .. '\\n' .. next) end
  else
    reply[#reply + 1] = i
    reply[#reply + 1] = shown(key, value)
  end
end
if sets[1] then call('MSET', unpack(sets)) end
${END_REPLY}`);

/** KEYS: identity. ARGV: id. Reply: time, INFO of the server that answers, identity, epoch, number of writes. */
export const LOOK = script(`local time = redis.call('TIME')
local found = redis.call('HMGET', KEYS[1], 'identity', 'epoch', 'writes')
return { ARGV[1], time[1] .. ' ' .. time[2], redis.call('INFO'), found[1] or '', found[2] or '', found[3] or '0', ARGV[1] }
`);

/** KEYS: identity. ARGV: id, the identity that must stand (empty: none), the next one, its epoch. Reply: done or moved. */
export const ADOPT = script(`
if (redis.call('HGET', KEYS[1], 'identity') or '') ~= ARGV[2] then return { ARGV[1], 'moved', ARGV[1] } end
redis.call('HSET', KEYS[1], 'identity', ARGV[3], 'epoch', ARGV[4])
redis.call('HSETNX', KEYS[1], 'writes', '0')
return { ARGV[1], 'done', ARGV[1] }
`);
