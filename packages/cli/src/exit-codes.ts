/** What a caller's script may rely on. Part of the public contract, like the output of `--json`. */
export const EXIT = Object.freeze({
  ok: 0,
  /** The store, the machine or the rules stand against it. */
  error: 1,
  /** The command line itself is wrong. */
  usage: 2,
  /** Somebody else has the lease. Nothing is broken. */
  held: 3,
  /** The lease is over for its holder. */
  lost: 4,
  /** The store lost data that it had acknowledged: leases of others may be missing. */
  dataLoss: 5,
  /** As shells say it: the command was found but cannot be run, or was not found. */
  cannotRun: 126,
  notFound: 127,
});

/** Shells report a process that died by a signal as 128 + its number. */
export const SIGNAL_EXIT_BASE = 128;
