/** The kit on SimpleStore, over backends that can do much and over one that can do next to nothing. */
import { describe, it } from "vitest";
import { describeLeases, describeStore, type StoreSubject } from "../../../src/conformance/index.ts";
import type { LeaseKey } from "../../../src/core/index.ts";
import { keyId } from "../../../src/core/index.ts";
import { SimpleStore } from "../../../src/store/index.ts";
import { MapBackend, MapServer, PushingBackend } from "./map-backend.ts";

function subjectOf(open: (server: MapServer) => SimpleStore): StoreSubject {
  const server = new MapServer();
  return {
    open: async () => open(server),
    openSecond: async () => open(server),
    corrupt: async (key: LeaseKey) => {
      const item = server.items.get(keyId(key))!;
      server.items.set(keyId(key), { ...item, text: `${item.text}damage` });
    },
  };
}

const polling = subjectOf(
  (server) =>
    new SimpleStore({
      name: "polling",
      backend: new MapBackend(server),
      durable: false,
      clock: "reply",
      pollMs: 5,
    }),
);
const pushing = subjectOf(
  (server) =>
    new SimpleStore({ name: "pushing", backend: new PushingBackend(server), durable: false, clock: "exact" }),
);
/** It can read and write on condition, and that is all. */
const poor = subjectOf((server) => {
  const backend = new MapBackend(server);
  const { get, putIf } = { get: backend.get.bind(backend), putIf: backend.putIf.bind(backend) };
  return new SimpleStore({ name: "poor", backend: { get, putIf }, durable: false, clock: "none" });
});

for (const [name, subject] of Object.entries({ polling, pushing, poor })) {
  describeStore(`a simple ${name} store`, subject, { describe, it });
  describeLeases(`a simple ${name} store`, subject, { describe, it });
}
