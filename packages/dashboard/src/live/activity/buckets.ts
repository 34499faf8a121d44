/** What the server counted, as points of charts: rates, so that points of any length can be compared. Pure. */

export interface Bucket {
  readonly atMs: number;
  readonly grants: number;
  readonly takeovers: number;
  readonly expiries: number;
  readonly renewals: number;
  readonly renewalAge: number | null;
  readonly renewalAgeMost: number | null;
  readonly denials: Readonly<Record<string, number>>;
  readonly waiters: number;
  readonly liveLeases: number;
}

const MINUTE_MS = 60_000;

/** As many neighbours are joined as it takes to have at most `most` points; the newest are never split up differently. */
export function pointsOf(buckets: readonly Bucket[], bucketMs: number, most: number): readonly Bucket[] {
  const size = Math.max(1, Math.ceil(buckets.length / most));
  // Counted from a fixed instant, so that a point stays the same while new buckets come.
  const groups = [...groupedBy(buckets, ({ atMs }) => Math.floor(atMs / (bucketMs * size))).values()];
  // Few buckets make a rate that jumps: the newest point is shown once it is whole.
  const isWhole = (group: readonly Bucket[], index: number): boolean =>
    index < groups.length - 1 || group.length === size;
  return groups.filter(isWhole).map((group) => pointOf(group, bucketMs));
}

function pointOf(group: readonly Bucket[], bucketMs: number): Bucket {
  const minutes = (group.length * bucketMs) / MINUTE_MS;
  const sum = (pick: (bucket: Bucket) => number): number =>
    group.reduce((total, each) => total + pick(each), 0);
  const rate = (pick: (bucket: Bucket) => number): number => Math.round((sum(pick) / minutes) * 10) / 10;
  const renewals = sum((bucket) => bucket.renewals);
  const reasons = new Set(group.flatMap(({ denials }) => Object.keys(denials)));
  const last = group.at(-1) as Bucket;
  return {
    atMs: last.atMs,
    grants: rate(({ grants }) => grants),
    takeovers: rate(({ takeovers }) => takeovers),
    expiries: rate(({ expiries }) => expiries),
    renewals: rate((bucket) => bucket.renewals),
    renewalAge:
      renewals === 0 ? null : sum((bucket) => (bucket.renewalAge ?? 0) * bucket.renewals) / renewals,
    renewalAgeMost: renewals === 0 ? null : Math.max(...group.map((bucket) => bucket.renewalAgeMost ?? 0)),
    denials: Object.fromEntries(
      [...reasons].map((reason) => [reason, rate(({ denials }) => denials[reason] ?? 0)]),
    ),
    waiters: Math.max(...group.map(({ waiters }) => waiters)),
    liveLeases: last.liveLeases,
  };
}

function groupedBy(
  buckets: readonly Bucket[],
  groupOf: (bucket: Bucket) => number,
): ReadonlyMap<number, Bucket[]> {
  const groups = new Map<number, Bucket[]>();
  for (const bucket of buckets) {
    const known = groups.get(groupOf(bucket));
    if (known === undefined) groups.set(groupOf(bucket), [bucket]);
    else known.push(bucket);
  }
  return groups;
}
