/** A thread that runs ranges of seeds, one after another, and sends back what it saw. */
import { parentPort } from "node:worker_threads";
import { runRange, type SeedRange } from "./seed-range.ts";

parentPort?.on("message", (range: SeedRange) => {
  runRange(range).then(
    (summary) => parentPort?.postMessage({ summary }),
    (error: unknown) => parentPort?.postMessage({ failure: String(error) }),
  );
});
