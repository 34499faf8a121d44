/** A page's program on the stores of the tests: the addresses that a page names lead to engines that are running. */
import { type EngineName, engine } from "../../packages/solehold/test/engines/index.ts";

/** From the address in the pages to the engine behind it. */
const ADDRESSES: { readonly [address: string]: EngineName } = {
  "redis://localhost:6379": "redis",
  "postgres://localhost/app": "postgres",
  "mysql://localhost/app": "mariadb",
  "etcd://localhost:2379": "etcd",
  "nats://localhost:4222": "nats",
};

export function storesFor(code: string, folder: string): string {
  let adapted = code.replaceAll("embedded:./data", `embedded:${folder}/data`);
  for (const [address, name] of Object.entries(ADDRESSES))
    if (adapted.includes(address))
      adapted = adapted.replaceAll(address, engine(name).replace("http:", "etcd:"));
  return adapted;
}
