/** When requests begin: a few in each turn of the event loop, over all connections. */
import { EventEmitter } from "node:events";
import type { IncomingMessage, ServerResponse } from "node:http";
import { realEnv } from "solehold/internal";
import { expect, it } from "vitest";
import { Pipelines } from "../src/http/pipeline.ts";

it("requests of many connections that arrive together begin in portions, in their order", async () => {
  const pipelines = new Pipelines(realEnv);
  const begun: number[] = [];
  const sockets = Array.from({ length: 100 }, () => ({ destroyed: false }));
  for (const [index, socket] of sockets.entries()) {
    const response = new EventEmitter() as ServerResponse;
    pipelines.enter({ socket } as IncomingMessage, response, () => void begun.push(index));
  }
  expect(begun).toHaveLength(8);
  // Those whose client goes before its turn never begin.
  for (const socket of sockets.slice(90)) socket.destroyed = true;
  const counts: number[] = [];
  while (begun.length < 90) {
    await new Promise((resolve) => setImmediate(resolve));
    counts.push(begun.length);
  }
  expect(counts).toContain(16);
  expect(begun).toEqual(Array.from({ length: 90 }, (_, index) => index));
});
