// `renewIn: "worker"` through a server: the thread has a connection of its own to it.
import { connect } from "solehold";
import { it, onTestFinished } from "vitest";
import { outlivesItsBlock } from "../../../solehold/test/processes/blocked-holder.ts";
import { ServerProcess } from "../support/process.ts";
import { tempFolder } from "../support/server.ts";

it("a lease that a thread renews outlives a main thread that is busy for longer than its ttl", async () => {
  const { url } = await ServerProcess.start(await tempFolder());
  const leases = await connect(url);
  onTestFinished(() => leases.close());
  await outlivesItsBlock(leases, url);
}, 60_000);
