/** Whose data this is: what a client that comes back can tell from the identity, and what it cannot. */
import { describe, expect, it } from "vitest";
import {
  type DataIdentity,
  type DataSighting,
  decodeIdentity,
  encodeIdentity,
  identityAfterLoss,
  lossSince,
  nextIdentity,
  serverChangedAtMs,
} from "../../../src/stores/support/data-identity.ts";

const server = (serverId: string, sequence: number, nowMs = 1_000) => ({
  serverId,
  nowMs,
  sequence: BigInt(sequence),
});

/** Servers that took over one after the other, at these counts of writes. */
function identityOf(...servers: readonly (readonly [serverId: string, sequence: number])[]): DataIdentity {
  let identity: DataIdentity | null = null;
  for (const [serverId, sequence] of servers) {
    identity = nextIdentity(identity, server(serverId, sequence), "data");
  }
  if (identity === null) throw new Error("no servers");
  return identity;
}

const seen = (serverId: string, sequence: number, dataId = "data"): DataSighting => ({
  dataId,
  serverId,
  sequence: BigInt(sequence),
});

describe("the identity", () => {
  it("begins with a new id and the server that answers", () => {
    expect(nextIdentity(null, server("a", 7, 5), "new")).toEqual({
      dataId: "new",
      servers: [{ serverId: "a", atMs: 5, sequence: "7" }],
    });
  });

  it("stays while the last server answers, and gets another one otherwise", () => {
    const first = identityOf(["a", 0]);
    expect(nextIdentity(first, server("a", 9), "x")).toBe(first);
    const second = nextIdentity(first, server("b", 9, 50), "x");
    expect(second).toMatchObject({ dataId: "data", servers: [{ serverId: "a" }, { serverId: "b" }] });
    // One that comes back is another one: its clock and its data may have changed meanwhile.
    expect(nextIdentity(second, server("a", 12), "x").servers).toHaveLength(3);
  });

  it("keeps the last eight servers", () => {
    const all = identityOf(...Array.from({ length: 20 }, (_, index) => [`s${index}`, index] as const));
    expect(all.servers.map(({ serverId }) => serverId)).toEqual(
      Array.from({ length: 8 }, (_, index) => `s${index + 12}`),
    );
  });

  it("tells when the server last changed, and nothing while the first one answers", () => {
    expect(serverChangedAtMs(identityOf(["a", 0]))).toBeNull();
    const changed = nextIdentity(identityOf(["a", 0]), server("b", 3, 77), "x");
    expect(changed && serverChangedAtMs(changed)).toBe(77);
  });

  it("is text and back again; anything else is none", () => {
    const identity = identityOf(["a", 0], ["b", 12]);
    expect(decodeIdentity(encodeIdentity(identity))).toEqual(identity);
    for (const text of [
      "",
      "nonsense",
      "null",
      "[]",
      "{}",
      '{"dataId":"x","servers":[]}',
      '{"dataId":1,"servers":[{"serverId":"a","atMs":1,"sequence":"1"}]}',
      '{"dataId":"x","servers":[null]}',
      '{"dataId":"x","servers":[{"serverId":"a","atMs":"1","sequence":"1"}]}',
      '{"dataId":"x","servers":[{"serverId":"a","atMs":1,"sequence":"-1"}]}',
    ]) {
      expect(decodeIdentity(text), text).toBeNull();
    }
  });
});

describe("a loss", () => {
  it("is none while the counter only grows, on one server or over a failover that lost nothing", () => {
    expect(lossSince(seen("a", 10), identityOf(["a", 0]), 10n)).toBeNull();
    expect(lossSince(seen("a", 10), identityOf(["a", 0], ["b", 10]), 99n)).toBeNull();
    expect(lossSince(seen("b", 50), identityOf(["a", 0], ["b", 10]), 50n)).toBeNull();
  });

  it("is other data, and fewer writes than were seen", () => {
    expect(lossSince(seen("a", 10, "other"), identityOf(["a", 0]), 99n)).toContain("deleted or replaced");
    expect(lossSince(seen("a", 10), identityOf(["a", 0]), 9n)).toContain("gone");
  });

  it("is a server that took over with less than was seen, however much was written since", () => {
    const identity = identityOf(["a", 0], ["b", 9]);
    expect(lossSince(seen("a", 10), identity, 1_000n)).toContain("gone");
    expect(lossSince(seen("a", 9), identity, 1_000n)).toBeNull();
    // One of several later ones is enough.
    expect(lossSince(seen("a", 10), identityOf(["a", 0], ["b", 12], ["c", 4], ["d", 50]), 60n)).toContain(
      "gone",
    );
  });

  it("is a server that the identity does not know: what it took is on no branch that is left", () => {
    expect(lossSince(seen("x", 10), identityOf(["a", 0], ["b", 9]), 1_000n)).toContain("gone");
  });

  it("without a change of server gives the data a new id, so that others notice who saw less than is there now", () => {
    const identity = identityOf(["a", 0]);
    const witness = seen("a", 10);
    const next = identityAfterLoss(witness, identity, server("a", 4, 60), "new");
    expect(next.dataId).toBe("new");
    expect(serverChangedAtMs(next)).toBe(60);
    expect(lossSince(seen("a", 8), next, 1_000n)).toContain("deleted or replaced");
    // Who has joined since notices nothing.
    expect(lossSince(seen("a", 900, "new"), next, 1_000n)).toBeNull();
  });

  it("that the identity shows by itself leaves it as it is", () => {
    const identity = identityOf(["a", 0], ["b", 4]);
    expect(identityAfterLoss(seen("a", 10), identity, server("b", 5), "new")).toBe(identity);
  });
});
