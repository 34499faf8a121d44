// How long a case measures. `--quick` is for a look (all cases in a few minutes), the default for figures to quote.
const QUICK = { rounds: 5, roundMs: 150, warmUpMs: 150 };
const THOROUGH = { rounds: 9, roundMs: 1_000, warmUpMs: 500 };

export function paceOf({ quick, rounds, roundMs }) {
  const usual = quick ? QUICK : THOROUGH;
  return {
    rounds: rounds ?? usual.rounds,
    roundMs: roundMs ?? usual.roundMs,
    warmUpMs: roundMs === undefined ? usual.warmUpMs : Math.min(roundMs, usual.warmUpMs),
  };
}
