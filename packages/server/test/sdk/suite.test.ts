// The suite of Leases over a server in this process, which lives on the same manual clock: by the stream, as
// connect() chooses by itself, and by plain HTTP, as it does where no stream gets through.
import { HttpTransport, ManualEnv, openExecutor, RemoteExecutor } from "solehold/internal";
import { describe } from "vitest";
import { describeLeases, World } from "../../../solehold/test/client/suite/index.ts";
import { testServer, until } from "../support/server.ts";

/** A server accepts terms only where its operator says so: a client could raise one for ever. */
const FLAGS = { terms: "accept" };

describe("Leases over a server, by the stream", () => {
  describeLeases(async () => {
    const env = new ManualEnv();
    const { url, server, get } = await testServer(FLAGS, { env });
    let opened = 0;
    return new World({
      env,
      openExecutor: async () => {
        const executor = await openExecutor(url, { env });
        opened += 1;
        const streams = new RegExp(`^solehold_streams ${opened}$`, "m");
        await until("the stream is open", async () => streams.test((await get("/metrics")).text));
        return executor;
      },
      inLine: () => server.queue.size,
    });
  });
});

describe("Leases over a server, by plain HTTP", () => {
  describeLeases(async () => {
    const env = new ManualEnv();
    const { url, server } = await testServer(FLAGS, { env });
    return new World({
      env,
      openExecutor: async () =>
        new RemoteExecutor({ transport: new HttpTransport({ url: new URL(url), env }), env }),
      inLine: () => server.queue.size,
    });
  });
});
