// Tries to connect to each URL that it is given, and prints how it was refused: one JSON line for each. The library is
// the one in the folder that comes first, so that what surrounds it can be chosen.
import { join } from "node:path";
import { pathToFileURL } from "node:url";

const [folder = "", ...urls] = process.argv.slice(2);
const { connect } = await import(pathToFileURL(join(folder, "dist/index.js")).href);

for (const url of urls) {
  const refusal = await connect(url).then(
    (leases) => leases.close().then(() => ({ name: "", kind: "opened", message: "" })),
    ({ name, kind = "", message }) => ({ name, kind, message }),
  );
  console.log(JSON.stringify({ url, ...refusal }));
}
process.exit(0);
