// A row is one figure with its bar: `{ case, unit, ours, floor, ratio, peers, bar, met }`. `met` is null when there is
// no bar, or when it could not be measured; then `note` says why. `limit` is what ours could reach at best over its
// store as it is.

const FIELDS = {
  perSecond: { unit: ({ unit }) => `${unit}/s`, better: (ours, other) => ours > other },
  p50Ms: { unit: () => "ms", better: (ours, other) => ours < other },
  cpuUs: { unit: () => "us of client CPU", better: (ours, other) => ours < other },
};

/** Bars on the ratio to the floor. */
export const atLeast = (times) => ({ text: `>= ${times} x floor`, isMet: ({ ratio }) => ratio >= times });
export const atMost = (times) => ({ text: `<= ${times} x floor`, isMet: ({ ratio }) => ratio <= times });
export const aheadOfPeers = { text: "ahead of every peer", isMet: ({ isAhead }) => isAhead };
/** A bar against one peer. */
export const atLeastOf = (peer, times) => ({
  text: `>= ${times} x ${peer}`,
  isMet: ({ ours, peers }) => ours >= times * peers[peer],
});

/**
 * The row of one contender of a group of `compete`. `field` is "perSecond", "p50Ms" or "cpuUs"; `name` chooses among
 * several of ours.
 */
export function rowOf(group, { title, name, field, bars = [], ...rest }) {
  const ours = group.contenders.find((each) =>
    name === undefined ? each.role === "ours" : each.name === name,
  );
  const rivals = group.contenders.filter(({ role }) => role === "peer");
  const peers = Object.fromEntries(rivals.map((peer) => [peer.name, peer[field]]));
  const value = ours[field];
  const ratio = ours.ratio[field];
  const { better, unit } = FIELDS[field];
  // A peer that promises less (a lock that is not on disk) is shown, but is no rival.
  const isAhead = rivals.every((peer) => peer.promises === "less" || better(value, peer[field]));
  return {
    case: title,
    unit: unit(group),
    ours: value,
    floor: ratio === null ? null : floorValue(group, ours, field),
    ratio,
    peers,
    ...verdict(bars, { ours: value, ratio, peers, isAhead }),
    ...limitOf(group, ours, field),
    ...rest,
  };
}

/** What ours could be at best over its store as it is, as a ratio to the same floor, where the case knows. */
function limitOf({ contenders }, { against }, field) {
  const limit = contenders.find((each) => each.role === "limit" && each.against === against);
  return limit === undefined ? {} : { limit: limit.ratio[field] };
}

/** A figure by itself, judged by `isMet` when there is a bar. */
export function figure(
  title,
  ours,
  unit,
  { floor = null, ratio = null, peers = {}, bar = null, met = null, ...rest } = {},
) {
  return {
    case: title,
    unit,
    ours,
    floor,
    ratio: ratio ?? (floor === null ? null : ours / floor),
    peers,
    bar,
    met,
    ...rest,
  };
}

/** What could not be measured here, and what to do about it. */
export function notMeasured(title, note, bar = null) {
  return { case: title, unit: "", ours: null, floor: null, ratio: null, peers: {}, bar, met: null, note };
}

function verdict(bars, measured) {
  if (bars.length === 0) return { bar: null, met: null };
  return {
    bar: bars.map(({ text }) => text).join(", "),
    met: bars.every(({ isMet }) => isMet(measured)),
  };
}

/** The floor in the unit of the row. The ratio is the median of rounds and need not be the quotient of both. */
function floorValue(group, ours, field) {
  const floor = group.contenders.find(({ name, role }) =>
    ours.against === undefined ? role === "floor" : name === ours.against,
  );
  return floor?.[field] ?? null;
}
