/** The planted bugs that show in a small world of the explorer. A test compares them with the explorer's own. */
export const EXPLORABLE: ReadonlySet<string> = new Set([
  "margin-zero",
  "stamp-from-reply",
  "takeover-by-latest",
  "stamp-from-earliest",
  "no-compare-and-swap",
  "delete-on-release",
  "same-fence-on-regrant",
  "renew-expired",
  "renew-revives-released",
  "release-by-key",
  "revoke-frees-at-once",
  "constant-nonce",
  "handoff-for-anybody",
  "break-ignored",
  "guard-off",
]);
