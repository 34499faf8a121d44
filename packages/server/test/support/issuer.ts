/** An OpenID Connect issuer on loopback: its description, its keys over HTTP, and tokens signed with them. */
import { createServer } from "node:http";
import type { AddressInfo } from "node:net";
import { type CryptoKey, exportJWK, generateKeyPair, SignJWT } from "jose";
import { onTestFinished } from "vitest";

export interface Issuer {
  readonly url: string;
  /** How often its keys were asked for. */
  asked(): number;
  token(
    claims?: Record<string, unknown>,
    how?: { readonly expiresIn?: string; readonly by?: CryptoKey },
  ): Promise<string>;
}

export const AUDIENCE = "solehold";

export async function startIssuer(): Promise<Issuer> {
  const pair = await generateKeyPair("ES256");
  let asked = 0;
  const server = createServer((request, response) => {
    response.setHeader("content-type", "application/json");
    if (request.url === "/.well-known/openid-configuration") {
      response.end(JSON.stringify({ issuer: url, jwks_uri: `${url}/keys` }));
      return;
    }
    asked += 1;
    exportJWK(pair.publicKey).then((key) =>
      response.end(JSON.stringify({ keys: [{ ...key, kid: "1", alg: "ES256", use: "sig" }] })),
    );
  });
  await new Promise<void>((resolve) => void server.listen(0, "127.0.0.1", resolve));
  onTestFinished(async () => {
    server.closeAllConnections();
    await new Promise<void>((resolve) => void server.close(() => resolve()));
  });
  const url = `http://127.0.0.1:${(server.address() as AddressInfo).port}`;
  return {
    url,
    asked: () => asked,
    token: async (claims = {}, { expiresIn = "5m", by } = {}) =>
      await new SignJWT({ iss: url, aud: AUDIENCE, sub: "ann", groups: ["ops"], ...claims })
        .setProtectedHeader({ alg: "ES256", kid: "1" })
        .setIssuedAt()
        .setExpirationTime(expiresIn)
        .sign(by ?? pair.privateKey),
  };
}
