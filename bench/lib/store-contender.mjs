// A store whose entry may not be in this build yet: measured when it is there, named when it is not.
import { Leases, StoreLeaseManager } from "solehold";

/** The `Leases` of a store, or null when the library has no such entry. `open(module)` opens the store. */
export async function leasesOf(entry, open) {
  let module;
  try {
    module = await import(entry);
  } catch (error) {
    if (error.code === "ERR_PACKAGE_PATH_NOT_EXPORTED" || error.code === "ERR_MODULE_NOT_FOUND") return null;
    throw error;
  }
  return new Leases({ manager: new StoreLeaseManager({ store: await open(module) }) });
}
