/**
 * The scripts that read, and keep the identity of the data; the one that writes is in writing-script.ts. Every key they
 * touch is in KEYS. Every reply begins with the server's time and the sequence, except "lost": then the data is not
 * what this client saw before, and nothing was done. (A write that was done may tell the sequence alone.)
 */
import { createHash } from "node:crypto";

export interface RedisScript {
  readonly source: string;
  readonly sha: string;
}

export function script(source: string): RedisScript {
  return { source, sha: createHash("sha1").update(source).digest("hex") };
}

/** A string of Lua: whatever is not plain is written by its number. */
export function luaText(text: string): string {
  const plain = text.replace(/[^\w:/{}$-]/g, (char) => `\\${String(char.charCodeAt(0)).padStart(3, "0")}`);
  return `'${plain}'`;
}

/** With what replies begin. It expects `sequence`. */
export const HEADER = `local time = redis.call('TIME')
local header = time[1] .. ' ' .. time[2] .. ' ' .. sequence`;

/** How a script begins that writes no record. KEYS[1]: sequence. ARGV[1]: last sequence seen. */
export const SAME_DATA = `local sequence = tonumber(redis.call('GET', KEYS[1]) or '0')
if sequence < tonumber(ARGV[1]) then return 'lost' end
${HEADER}`;

/** Before the last sequence seen: a write that is done need not tell the time. */
export const NEEDS_NO_TIME = "+";

/** How a script begins that writes records. ARGV[1]: last sequence seen, or NEEDS_NO_TIME and that. */
export const WRITES_SAME_DATA = `local call = redis.call
local sequence = call('INCR', KEYS[1])
if sequence <= tonumber(ARGV[1]) then
  if sequence == 1 then call('DEL', KEYS[1]) end
  return 'lost'
end`;

/**
 * How it ends when all was done. The time is asked for at last, or not at all: of all commands of a lone write it is the
 * one whose answer costs most.
 */
export const ALL_DONE = `if string.byte(ARGV[1]) == ${NEEDS_NO_TIME.charCodeAt(0)} then return sequence end
${HEADER}
return header`;

/**
 * KEYS: sequence, then the keys to read. ARGV: last sequence seen.
 * Reply: { "time", per key its value, false for nothing, or 1 for something that is not a string }.
 */
export const READ = script(`${SAME_DATA}
local reply = { header }
if #KEYS == 1 then return reply end
local stored = redis.call('MGET', unpack(KEYS, 2))
for i = 1, #KEYS - 1 do
  local value = stored[i]
  if not value and redis.call('EXISTS', KEYS[i + 1]) == 1 then value = 1 end
  reply[i + 1] = value
end
return reply
`);

/** As READ, for values that could not be read: each is followed by its SHA-1, which serves as its version. */
export const INSPECT = script(`${SAME_DATA}
local reply = { header }
local stored = redis.call('MGET', unpack(KEYS, 2))
for i = 1, #KEYS - 1 do
  local value = stored[i]
  local sha = value and redis.sha1hex(value) or ''
  if not value and redis.call('EXISTS', KEYS[i + 1]) == 1 then value = 1 end
  reply[#reply + 1] = value
  reply[#reply + 1] = sha
end
return reply
`);

/** KEYS: sequence, index. ARGV: last sequence seen, first and last member, limit. Reply: { "time", members }. */
export const RANGE = script(`${SAME_DATA}
local reply = redis.call('ZRANGEBYLEX', KEYS[2], ARGV[2], ARGV[3], 'LIMIT', 0, ARGV[4])
table.insert(reply, 1, header)
return reply
`);

/** KEYS: state. Reply: { INFO of the server that answers, the id of the data or false }. */
export const LOOK = script(`
return { redis.call('INFO'), redis.call('HGET', KEYS[1], 'id') }
`);

/**
 * KEYS: state, the sequence of the id to have, the sequence of the id that stands (if it is another).
 * ARGV: the id that must stand now (empty: none), the id to have, the server's run id, "new" or "lossy"
 * for data that begins now, and how far a raise reaches at least.
 * Reply: "moved", or { floor, raised, sequence }.
 */
export const JOIN = script(`
local id = redis.call('HGET', KEYS[1], 'id') or ''
if id ~= ARGV[1] then return 'moved' end
local time = redis.call('TIME')
local micros = time[1] * 1000000 + time[2]
local raised = tonumber(redis.call('HGET', KEYS[1], 'raised') or '0')
local higher = string.format('%.0f', math.max(micros, raised + tonumber(ARGV[5])))
if id ~= ARGV[2] then
  local from = ARGV[4] == 'lossy' and higher or '0'
  redis.call('HSET', KEYS[1], 'id', ARGV[2], 'run', ARGV[3], 'floor', higher, 'raised', from)
  redis.call('SET', KEYS[2], 1)
  if KEYS[3] then redis.call('DEL', KEYS[3]) end
elseif redis.call('HGET', KEYS[1], 'run') ~= ARGV[3] then
  redis.call('HSET', KEYS[1], 'run', ARGV[3], 'raised', higher)
end
local state = redis.call('HMGET', KEYS[1], 'floor', 'raised')
return { state[1], state[2], redis.call('GET', KEYS[2]) or '0' }
`);
