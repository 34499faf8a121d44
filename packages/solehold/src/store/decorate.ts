import type { LeaseStore } from "./contract.ts";

/** Every member, none optional: a member that is added to the contract and forgotten here does not compile. */
type Members = { [Member in keyof Required<LeaseStore>]: LeaseStore[Member] | undefined };

/** The same store with some members replaced. Members that the store does not have stay absent. */
export function decorateStore(store: LeaseStore, overrides: Partial<LeaseStore>): LeaseStore {
  const members: Members = {
    name: store.name,
    capabilities: store.capabilities,
    now: store.now?.bind(store),
    read: (keys) => store.read(keys),
    apply: (writes) => store.apply(writes),
    list: store.list?.bind(store),
    watch: store.watch?.bind(store),
    close: () => store.close(),
    ...overrides,
  };
  const present = Object.entries(members).filter(([, member]) => member !== undefined);
  return Object.fromEntries(present) as unknown as LeaseStore;
}
