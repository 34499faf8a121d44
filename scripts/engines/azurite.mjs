// azurite, the Azure Blob emulator from npm: blobs only, kept in the engine's folder.
// The account and its key are the emulator's published ones; they open nothing else.
import { join } from "node:path";
import { startEngine } from "./engine.mjs";
import { withPlace } from "./place.mjs";
import { http } from "./probes.mjs";
import { requireAzurite } from "./programs.mjs";

const ACCOUNT = "devstoreaccount1";
const ACCOUNT_KEY =
  "Eby8vdM02xNOcqFlqUwJPLlmEtlCDXJ1OUzFT50uSRZ6IFsuFq2UVErCz4I6tq/K1SZFPTOtr/KBHBeksoGMGw==";

/** @type {typeof import("./index.mjs").startAzurite} */
export const startAzurite = async ({ dataDir: wanted } = {}) => {
  const startedAt = performance.now();
  const { script, version } = await requireAzurite();

  return withPlace({ name: "azurite", dataDir: wanted, portCount: 1 }, async (place) => {
    const { dataDir, ports } = place;
    const [port = 0] = ports;
    const url = `http://127.0.0.1:${port}/${ACCOUNT}`;
    const server = place.define({
      name: "azurite",
      command: process.execPath,
      args: [
        ...[script, "--blobHost", "127.0.0.1", "--blobPort", `${port}`, "--location", join(dataDir, "data")],
        // A client newer than the emulator names an API version that it does not know yet, and need not.
        ...["--silent", "--disableTelemetry", "--skipApiVersionCheck"],
      ],
      logFile: join(dataDir, "azurite.log"),
      // Unsigned, so it refuses; but in the words of the blob service.
      ready: async () => (await http(`${url}?comp=list`)).headers["x-ms-error-code"] !== undefined,
      env: { NODE_OPTIONS: "" },
    });
    const credentials = {
      account: ACCOUNT,
      accountKey: ACCOUNT_KEY,
      connectionString: `DefaultEndpointsProtocol=http;AccountName=${ACCOUNT};AccountKey=${ACCOUNT_KEY};BlobEndpoint=${url};`,
    };
    const processes = [server];
    return startEngine({ name: "azurite", version, urls: [url], credentials, place, processes }, startedAt);
  });
};
