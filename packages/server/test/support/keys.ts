/** A server with API keys, and one request for each route that such a key can allow or forbid. */
import { ACTIONS, type Action, KeyFile, type NewKey } from "@solehold/server";
import { realEnv } from "solehold/internal";
import { type Answer, type TestServer, tempFolder, testServer } from "./server.ts";

export const ALL: NewKey = { name: "all", tenants: ["*"], prefixes: [""], actions: ACTIONS };

export async function keyedServer(
  keys: readonly Partial<NewKey>[],
  flags: Record<string, string> = {},
): Promise<TestServer & { readonly keys: readonly string[]; readonly file: KeyFile }> {
  const dataDir = await tempFolder();
  const file = new KeyFile(dataDir, realEnv);
  const made: string[] = [];
  for (const key of keys) made.push((await file.add({ ...ALL, ...key })).key);
  return { ...(await testServer(flags, { dataDir })), keys: made, file };
}

export const bearer = (key: string | undefined): Record<string, string> => ({
  authorization: `Bearer ${key}`,
});

/** One request for each route that touches a lease, a tenant or the whole server. */
interface Attempt {
  readonly title: string;
  readonly action: Action;
  run(
    server: TestServer,
    where: { tenant: string; name: string },
    headers: Record<string, string>,
  ): Promise<Answer>;
}

export const owner = { holder: "me", token: "secret-token" };
/** Of a request that signers could approve, all but whose it is. */
export const approval = {
  holder: "h",
  purpose: "p",
  tier: "Risky",
  action: "revoke",
  ttlMs: 0,
  nonce: "n".repeat(16),
};

const command = (action: Action, more: object): Attempt => ({
  title: `POST /v1/leases/${action}`,
  action,
  run: (server, where, headers) => server.lease(action, { ...where, ...more }, headers),
});

export const ATTEMPTS: readonly Attempt[] = [
  command("acquire", owner),
  command("renew", owner),
  command("use", { ...owner, purpose: "Operation" }),
  command("resume", owner),
  command("break", { periodMs: 60_000 }),
  command("handoff", { ...owner, successor: "you", withinMs: 1 }),
  command("release", owner),
  command("revoke", {}),
  {
    title: "POST /v1/leases/renew with many",
    action: "renew",
    run: async (server, where, headers) => {
      const { body, headers: got } = await server.lease(
        "renew",
        { leases: [{ ...where, ...owner }] },
        headers,
      );
      const [only] = body.results;
      const problem = only?.body as Answer["body"];
      return { status: Number(only?.status), body: problem, headers: got, text: JSON.stringify(problem) };
    },
  },
  {
    title: "GET /v1/lease",
    action: "read",
    run: (server, { tenant, name }, headers) =>
      server.get(`/v1/lease?tenant=${tenant}&name=${name}`, headers),
  },
  {
    title: "GET /v1/leases",
    action: "read",
    run: (server, { tenant, name }, headers) =>
      server.get(`/v1/leases?tenant=${tenant}&prefix=${name}`, headers),
  },
  {
    title: "GET /v1/queue",
    action: "read",
    run: (server, { tenant, name }, headers) =>
      server.get(`/v1/queue?tenant=${tenant}&name=${name}`, headers),
  },
  {
    title: "GET /v1/audit",
    action: "audit",
    run: (server, { tenant, name }, headers) =>
      server.get(`/v1/audit?tenant=${tenant}&name=${name}`, headers),
  },
  {
    title: "POST /v1/maintenance/repair",
    action: "repair",
    run: (server, where, headers) => server.post("/v1/maintenance/repair", where, headers),
  },
  {
    title: "POST /v1/quorum/verify",
    action: "coordinate",
    run: (server, { tenant, name }, headers) => {
      const signers = [
        { signerId: "s", keys: [{ publicKey: "11qYAYKxCrfVS_7TyWQHOg7hcvPapiMlrwIaaPcHURo" }] },
      ];
      const quorum = { signers, thresholds: { standard: 1, risky: 1, dangerous: 1 } };
      const request = { ...approval, tenant, key: name };
      return server.post("/v1/quorum/verify", { leaseId: "l", request, approvals: [], quorum }, headers);
    },
  },
];
