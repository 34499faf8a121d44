// The few statistics that the cases need. They take any order of values and leave it as it is.

/** The middle value; the mean of the two in the middle when there is none. NaN of nothing. */
export function median(values) {
  const sorted = [...values].sort((a, b) => a - b);
  const middle = sorted.length >> 1;
  if (sorted.length % 2 === 1) return sorted[middle];
  return sorted.length === 0 ? Number.NaN : (sorted[middle - 1] + sorted[middle]) / 2;
}

/** The smallest value that at least `part` (0 to 1) of the values do not exceed. NaN of nothing. */
export function percentile(values, part) {
  const sorted = [...values].sort((a, b) => a - b);
  return sorted[Math.max(0, Math.ceil(sorted.length * part) - 1)] ?? Number.NaN;
}

/** The middle of `one[i] / other[i]`: rounds that ran side by side met the same noise. */
export function medianRatio(one, other) {
  return median(one.map((value, index) => value / other[index]));
}
