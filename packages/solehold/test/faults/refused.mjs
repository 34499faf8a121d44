// Tries to connect to each URL that it is given, and prints how it was refused: one JSON line for each. It is copied
// beside a copy of the build, to where no package is installed.
import { connect } from "solehold";

const urls = process.argv.slice(2);

for (const url of urls) {
  const refusal = await connect(url).then(
    (leases) => leases.close().then(() => ({ name: "", kind: "opened", message: "" })),
    ({ name, kind = "", message }) => ({ name, kind, message }),
  );
  console.log(JSON.stringify({ url, ...refusal }));
}
process.exit(0);
