// A process of the kit, on the store of the URL that it is given. It runs the build.
import { openStore } from "solehold";
import { runKitProcess } from "solehold/testing";

const [url = ""] = process.argv.slice(2);
await runKitProcess(() => openStore(url));
