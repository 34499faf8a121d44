import fc from "fast-check";
import { describe, expect, it } from "vitest";
import { escapePath, ObjectNames } from "../../../src/stores/object/names.ts";

const names = new ObjectNames("leases");
const anyName = fc
  .oneof(
    fc.string({ minLength: 1 }),
    fc.string({ unit: fc.constantFrom("a", ".", "/", "%", "é", "🦊", "@"), minLength: 1 }),
  )
  .filter((name) => !/\p{Cs}/u.test(name));
const anyTenant = fc.constantFrom("default", "a", "a.", "b-c");

describe("object names", () => {
  it("are the key itself for plain keys", () => {
    expect(names.nameOf({ tenant: "default", name: "db/main-1.x" })).toBe("leases/db/main-1.x.lease.json");
    expect(names.nameOf({ tenant: "t1", name: "db" })).toBe("leases/@t1/db.lease.json");
  });

  it("lead back to their key and tenant, and to no other", () => {
    fc.assert(
      fc.property(anyName, anyTenant, anyTenant, (name, tenant, other) => {
        const object = names.nameOf({ tenant, name });
        expect(names.keyNameOf(tenant, object)).toBe(name);
        if (other !== tenant) expect(names.keyNameOf(other, object)).toBeNull();
      }),
    );
  });

  it("survive a URL unchanged: nothing is folded, walked or decoded", () => {
    fc.assert(
      fc.property(anyName, anyTenant, (name, tenant) => {
        const path = `/bucket/${escapePath(names.nameOf({ tenant, name }))}`;
        expect(new URL(`http://host${path}`).pathname).toBe(path);
      }),
    );
  });

  it("begin with the prefix under which their key would be listed", () => {
    fc.assert(
      fc.property(anyName, fc.nat(), anyTenant, (name, cut, tenant) => {
        const prefix = names.listPrefix(tenant, name.slice(0, cut % (name.length + 1)));
        expect(names.nameOf({ tenant, name }).startsWith(prefix)).toBe(true);
      }),
    );
  });
});
