/** A quorum that comes with the request costs the server, not the caller: it is small, and others get their turn. */
import { generateSigningKey, signApproval } from "solehold/internal";
import { describe, expect, it } from "vitest";
import { approval, bearer, keyedServer } from "../support/keys.ts";
import { type Answer, type TestServer, testServer } from "../support/server.ts";

const REQUEST = { ...approval, tenant: "default", key: "db/main" };
const THRESHOLDS = { standard: 1, risky: 1, dangerous: 1 };
const WINDOW = { notBeforeMs: 0, notAfterMs: 1_000_000 };

/** As many signers, keys and approvals as one asks for; every approval is checked against every key of its signer. */
function verification(signers: number, keys: number, approvals: number) {
  const made = Array.from({ length: signers }, (_, index) => ({
    signerId: `s${index}`,
    keys: Array.from({ length: keys }, () => generateSigningKey()),
  }));
  return {
    leaseId: "default/db/main",
    request: REQUEST,
    nowMs: 500_000,
    quorum: {
      signers: made.map(({ signerId, keys }) => ({
        signerId,
        keys: keys.map(({ publicKey }) => ({ publicKey })),
      })),
      thresholds: THRESHOLDS,
    },
    approvals: Array.from({ length: approvals }, (_, index) => {
      const signer = made[index % signers];
      const last = signer?.keys.at(-1);
      if (signer === undefined || last === undefined) throw new Error("no signer");
      return signApproval(last.privateKey, { ...REQUEST, ...WINDOW, notBeforeMs: index }, signer.signerId);
    }),
  };
}

const verify = (server: TestServer, body: object, key?: string): Promise<Answer> =>
  server.post("/v1/quorum/verify", body, key === undefined ? {} : bearer(key));

describe("a quorum in a request", () => {
  it("has at most 16 signers with two keys each, in 16 kB", async () => {
    const server = await testServer();
    expect((await verify(server, verification(16, 2, 16))).body).toMatchObject({
      passed: true,
      received: 16,
    });
    const signers = await verify(server, verification(17, 1, 1));
    expect([signers.status, signers.body.field]).toEqual([400, "quorum.signers"]);
    const keys = await verify(server, verification(1, 3, 1));
    expect([keys.status, keys.body.field]).toEqual([400, "quorum.signers[0].keys"]);
    const bytes = await verify(server, { ...verification(1, 1, 1), leaseId: "x".repeat(20_000) });
    expect([bytes.status, bytes.body.reason]).toEqual([413, "BODY_TOO_LARGE"]);
  });

  it("is verified one at a time for each API key, with other requests between", async () => {
    const server = await keyedServer([{}, {}]);
    const [one, other] = server.keys;
    const body = verification(16, 2, 48);
    const ended: string[] = [];
    const named = async (name: string, answer: Promise<Answer>): Promise<number> => {
      const { status } = await answer;
      ended.push(name);
      return status;
    };
    const first = named("first", verify(server, body, one));
    let second = 200;
    while (second !== 429 && ended.length === 0)
      second = (await verify(server, verification(1, 1, 0), one)).status;
    expect([second, ended]).toEqual([429, []]);
    expect(await named("other key", verify(server, verification(1, 1, 1), other))).toBe(200);
    expect(await first).toBe(200);
    expect(ended).toEqual(["other key", "first"]);
    expect((await verify(server, verification(1, 1, 1), one)).status).toBe(200);
  });
});
