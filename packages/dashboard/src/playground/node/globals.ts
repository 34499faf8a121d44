/** What Node's code expects to be there. Imported first by the worker. */
import { Bytes, bytesFrom } from "./buffer.ts";

Object.defineProperty(Bytes, "from", { value: bytesFrom });
Object.defineProperty(globalThis, "Buffer", { value: Bytes, configurable: true });
