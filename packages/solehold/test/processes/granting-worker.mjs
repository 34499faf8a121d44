// Acquires one key after the other and says so only when the grant was acknowledged.
import { openExecutor } from "solehold/internal";

const [folder, round] = process.argv.slice(2);
const executor = await openExecutor(`embedded:${folder}`);

async function grantOne(index) {
  const key = { tenant: "default", name: index % 3 === 0 ? "shared" : `round-${round}-${index}` };
  const outcome = await executor.execute({ op: "acquire", key, holder: `worker-${round}`, ttlMs: 600_000 });
  if (outcome.kind !== "applied") return;
  const { generation } = outcome.decision.lease;
  process.stdout.write(
    `${JSON.stringify({ name: key.name, generation: String(generation), token: outcome.token })}\n`,
  );
  if (key.name === "shared")
    await executor.execute({ op: "release", key, holder: `worker-${round}`, token: outcome.token });
}

for (let index = 0; ; index += 8) {
  await Promise.all(Array.from({ length: 8 }, (_, offset) => grantOne(index + offset)));
}
