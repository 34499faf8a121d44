// A store whose entry may not be in this build yet: measured when it is there, named when it is not.
import { Leases, StoreExecutor } from "solehold";

/** The `Leases` of a store, or null when the library has no such entry. `open(module)` opens the store. */
export async function leasesOf(entry, open) {
  let module;
  try {
    module = await import(entry);
  } catch (error) {
    if (error.code === "ERR_PACKAGE_PATH_NOT_EXPORTED" || error.code === "ERR_MODULE_NOT_FOUND") return null;
    throw error;
  }
  return new Leases({ executor: new StoreExecutor({ store: await open(module) }) });
}
