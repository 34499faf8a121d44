/**
 * Opens the SDK's executor for a Solehold server, or for several replicas: `https://a,https://b` names
 * some of them, the others are found through those.
 */
import { type Env, realEnv } from "../env/index.ts";
import { HttpTransport } from "../remote/http-transport.ts";
import { RemoteExecutor } from "../remote/remote-executor.ts";
import { ReplicaTransport } from "../remote/replica-router.ts";
import type { RemoteTransport } from "../remote/transport.ts";
import { type StreamSocket, StreamTransport } from "../remote/websocket-transport.ts";
import { given } from "../support/given.ts";
import { type ConnectOptions, timeoutsOf } from "./connect.ts";

interface SocketOptions {
  readonly headers: Record<string, string>;
  /** False: messages that arrived together are delivered in turns of their own, so that many answers block nothing. */
  readonly allowSynchronousEvents: boolean;
}

/** What a header can carry. */
const API_KEY = /^[\x21-\x7e]+$/;

type SocketConstructor = new (url: string, options: SocketOptions) => StreamSocket;

export async function openRemoteExecutor(address: string, options: ConnectOptions): Promise<RemoteExecutor> {
  const { env = realEnv, policy, drift } = options;
  const limits = timeoutsOf(options);
  const urls = address.split(",").map((part) => addressOf(part.trim()));
  const fromUrl = urls.map(({ password }) => password).find((password) => password !== "");
  const apiKey = options.apiKey ?? fromUrl ?? process.env.SOLEHOLD_API_KEY;
  if (apiKey !== undefined && !(typeof apiKey === "string" && API_KEY.test(apiKey)))
    throw new RangeError("the API key must be a text without spaces and line breaks (look at its end)");
  const WebSocket = await streamClient();
  const open = (url: string): RemoteTransport => openTransport(new URL(url), env, apiKey, WebSocket);
  const seeds = urls.map(withoutSecret);
  const transport = new ReplicaTransport({
    env,
    seeds,
    open,
    ...given({ callTimeoutMs: limits?.callTimeoutMs }),
  });
  return new RemoteExecutor({
    transport,
    env,
    ...given({ policy, drift, commandTimeoutMs: limits?.commandTimeoutMs }),
  });
}

function addressOf(text: string): URL {
  const url = URL.canParse(text) ? new URL(text) : null;
  if (url !== null && (url.protocol === "http:" || url.protocol === "https:")) return url;
  throw new RangeError(
    "a server's address must be http://host:port or https://host:port, several separated by commas",
  );
}

/** A key in the URL is taken out, so that it appears in no message. */
function withoutSecret(url: URL): string {
  return `${url.origin}${url.pathname.replace(/\/$/, "")}`;
}

function openTransport(
  url: URL,
  env: Env,
  apiKey: string | undefined,
  WebSocket: SocketConstructor | null,
): RemoteTransport {
  const http = new HttpTransport({ url, env, ...given({ apiKey }) });
  if (WebSocket === null) return http;
  const headers: Record<string, string> = apiKey === undefined ? {} : { authorization: `Bearer ${apiKey}` };
  const stream = `${withoutSecret(url).replace(/^http/, "ws")}/v1/stream`;
  return new StreamTransport({
    env,
    http,
    where: url.origin,
    connect: () => new WebSocket(stream, { headers, allowSynchronousEvents: false }),
  });
}

/** The stream needs the optional package `ws`; without it everything goes over plain HTTP. */
async function streamClient(): Promise<SocketConstructor | null> {
  try {
    const { WebSocket } = (await import("ws")) as unknown as { readonly WebSocket: SocketConstructor };
    return WebSocket;
  } catch {
    return null;
  }
}
