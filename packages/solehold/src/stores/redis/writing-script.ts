/**
 * The script that writes. It compares and swaps; it knows nothing of leases, so no rule exists twice. As all scripts
 * do, it replies with the server's time and the sequence, or with "lost" when nothing was done; where all was done and
 * the client needs no time, with the sequence alone.
 *
 * What counts is the server's own time, and for a lone write the number of arguments and of commands: one MGET and
 * one MSET for a whole batch, no pattern match, no table for a lone item, and the channel in the source instead of an
 * argument. Most writes replace a record that this client knows: then no index is named, and none is looked after.
 *
 * It announces what it wrote: a letter a key (the client knows what its records say), then the keys. If some of them are
 * not held any more, all who stand in line hear of it. (A lone lease that ends is written by another script, which tells
 * the next in line: see line-scripts.ts.)
 */
import { ENDED, HELD } from "./announcement.ts";
import { ABSENT_HEADER, type RedisLayout, WRONG_TYPE_HEADER } from "./layout.ts";
import { ALL_DONE, HEADER, luaText, type RedisScript, script, WRITES_SAME_DATA } from "./scripts.ts";
import { HEADER_LENGTH, LONGEST_PART } from "./value.ts";

const EXPECTED = `sub(wants, i * ${HEADER_LENGTH} - ${HEADER_LENGTH - 1}, i * ${HEADER_LENGTH})`;
const FOUND = `sub(value, 1, ${HEADER_LENGTH})`;

/**
 * What was sent of `next`, and behind it as much of `value` as is longer: nothing is where the value is too short for
 * that, and so is damaged. It expects `sub`.
 */
export const WITH_ITS_REST = `if #next <= ${LONGEST_PART} then
  next = #value > ${LONGEST_PART} and next .. sub(value, #next + 1)
end`;

/**
 * KEYS: sequence, a key per write, and the index unless every write replaces a record whose header is known.
 * ARGV: last sequence seen, as WRITES_SAME_DATA wants it; the expected headers and then the letters, joined; a value or
 * its first lines per write (empty: delete).
 * Reply: "time", or the sequence, when all were applied; otherwise { "time", number of a write that was not, what is
 * there instead (false: nothing, 1: not a string), ... }.
 */
export function writingScript(layout: RedisLayout): RedisScript {
  const member = `sub(key, ${layout.base.length + 1})`;
  const publish = `call('PUBLISH', ${luaText(layout.channel)}, `;
  const freed = `if find(letters, '${ENDED}', 1, true) then redis.pcall('PUBLISH', ${luaText(layout.freedChannel)}, `;
  return script(`${WRITES_SAME_DATA}
local count = #ARGV - 2
if count == 0 then
  ${HEADER}
  return header
end
local sub = string.sub
local wants = ARGV[2]
local index = KEYS[count + 2]
local stored = call('MGET', unpack(KEYS, 2, count + 1))
if count == 1 and not index and sub(wants, ${HEADER_LENGTH + 1}) == '${HELD}' then
  local value, next = stored[1], ARGV[3]
  if value and ${FOUND} == sub(wants, 1, ${HEADER_LENGTH}) then
    ${WITH_ITS_REST}
    if next then
      call('SET', KEYS[2], next)
      ${publish}'${HELD}' .. KEYS[2])
      ${ALL_DONE}
    end
  end
end
local puts, put = {}, 0
local rest
for i = 1, count do
  local value, next = stored[i], ARGV[i + 2]
  if value and next ~= '' and ${FOUND} == ${EXPECTED} then
    ${WITH_ITS_REST}
  else
    next = false
  end
  if next then
    puts[put + 1] = KEYS[i + 1]
    puts[put + 2] = next
    put = put + 2
  elseif rest then
    rest[#rest + 1] = i
  else
    rest = { i }
  end
end
local lost
if rest and index then
  local names, members, new, others = {}, {}, {}, {}
  for _, i in ipairs(rest) do
    local key = KEYS[i + 1]
    if not stored[i] and ARGV[i + 2] ~= '' and ${EXPECTED} == '${ABSENT_HEADER}' then
      new[#new + 1] = i
      names[#names + 1] = key
      members[#members + 1] = 0
      members[#members + 1] = ${member}
    else
      others[#others + 1] = i
    end
  end
  if #new > 0 then
    if call('EXISTS', unpack(names)) == 0 then
      for n, i in ipairs(new) do
        puts[put + 1] = names[n]
        puts[put + 2] = ARGV[i + 2]
        put = put + 2
      end
      call('ZADD', index, unpack(members))
    else
      others = rest
    end
  end
  for _, i in ipairs(others) do
    local key, value, next, want = KEYS[i + 1], stored[i], ARGV[i + 2], ${EXPECTED}
    local fits
    if next ~= '' and #next <= ${LONGEST_PART} then
      fits = false
    elseif value then
      fits = ${FOUND} == want or '!' .. sub(redis.sha1hex(value), 1, ${HEADER_LENGTH - 1}) == want
    elseif call('EXISTS', key) == 1 then
      fits = want == '${WRONG_TYPE_HEADER}'
    else
      fits = want == '${ABSENT_HEADER}'
    end
    if not fits then
      lost = lost or {}
      lost[i] = true
    elseif next == '' then
      call('DEL', key)
      call('ZREM', index, ${member})
    else
      call('SET', key, next)
      call('ZADD', index, 0, ${member})
    end
  end
elseif rest then
  lost = {}
  for _, i in ipairs(rest) do lost[i] = true end
end
if put > 0 then call('MSET', unpack(puts)) end
local letters = sub(wants, count * ${HEADER_LENGTH} + 1)
local find = string.find
if not lost then
  local names = letters .. table.concat(KEYS, '\\n', 2, count + 1)
  ${publish}names)
  ${freed}names) end
  ${ALL_DONE}
end
${HEADER}
local reply, said, names = { header }, '', {}
for i = 1, count do
  local key, value = KEYS[i + 1], stored[i]
  if lost[i] then
    reply[#reply + 1] = i
    if not value and call('EXISTS', key) == 1 then value = 1 end
    reply[#reply + 1] = value
  else
    said = said .. sub(letters, i, i)
    names[#names + 1] = key
  end
end
if said ~= '' then
  letters, names = said, said .. table.concat(names, '\\n')
  ${publish}names)
  ${freed}names) end
end
return reply
`);
}
