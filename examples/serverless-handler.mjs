// A handler of a serverless function: it may be frozen after its answer, and another instance may run at the same time. So it
// takes the lease for one request, does not wait long, and answers 409 with Retry-After when somebody else is at work.
//   node examples/serverless-handler.mjs ./data
//
// Prints:
//   200 imported under a fence
//   409 retry after a number of seconds: true
import { connect, LeaseHeldError } from "solehold";

const [folder = "./data"] = process.argv.slice(2);
let connecting; // kept between invocations of one instance

export async function handler(request) {
  connecting ??= connect(`embedded:${folder}`);
  const leases = await connecting;
  try {
    return await leases.run("imports", { ttl: "30s", wait: 0, signal: request.signal }, async (lease) => {
      await request.work?.();
      return new Response(`imported under a ${typeof lease.fence === "bigint" ? "fence" : "nothing"}`);
    });
  } catch (error) {
    if (!(error instanceof LeaseHeldError)) throw error;
    const seconds = Math.ceil((error.retryAfterMs ?? 1_000) / 1_000);
    return new Response("somebody else imports", { status: 409, headers: { "retry-after": `${seconds}` } });
  }
}

const { signal } = new AbortController();
let second;
const first = await handler({ signal, work: async () => (second = await handler({ signal })) });
console.log(first.status, await first.text());
console.log(second.status, "retry after a number of seconds:", Number(second.headers.get("retry-after")) > 0);
process.exit(0);
