/**
 * Structured logs, one JSON object per line on stderr. Requests are logged by route, status, reason and
 * trace: never with their bodies, headers or query, where tokens and keys would be. The redaction below is
 * a second lock on that door, not the first.
 */
import { type DestinationStream, type Logger, pino } from "pino";

export type { Logger } from "pino";

const SECRET_FIELDS = ["token", "key", "secret", "authorization", "apiKey"] as const;
const STDERR = 2;

export function createLog(level: string, destination?: DestinationStream): Logger {
  const paths = SECRET_FIELDS.flatMap((field) => [field, `*.${field}`, `*.*.${field}`]);
  return pino({ level, base: null, redact: { paths, censor: "[secret]" } }, destination ?? standardError());
}

/** A log that cannot be written, say on a full disk, must not fail the request that it is about. */
function standardError(): DestinationStream {
  const stream = pino.destination({ dest: STDERR, sync: true });
  stream.on("error", () => undefined);
  return stream;
}
