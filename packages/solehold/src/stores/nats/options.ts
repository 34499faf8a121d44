/** What can be set, checked when the store is opened. A wrong value is an error that names the option. */
import { assertWholeNumbers, type FullStore } from "../../store/index.ts";
import {
  assertOneOf,
  type CallOptions,
  decodedPart,
  optionError,
  withoutPassword,
} from "../support/options.ts";

export type NatsStore = FullStore;

export interface NatsStoreOptions extends CallOptions {
  /**
   * `nats://user:password@host:4222/bucket`, with several hosts separated by commas; a token instead of user
   * and password; `tls:` or `nats+tls:` for TLS. The bucket may be left out.
   */
  readonly url: string;
  /** The key-value bucket, created when it is missing. Default: what the URL names, or `solehold`. */
  readonly bucket?: string;
  /** Of a bucket that is created here. Default 1. More needs nats-server 2.10.23 or later. */
  readonly replicas?: number;
  /**
   * State "always" if all servers of the bucket run with `sync_interval: always`. A client cannot see that setting,
   * and without it a power failure loses acknowledged writes. Default: not stated, so `durable` is false.
   */
  readonly syncInterval?: "always";
  /** More options for `connect` of @nats-io/transport-node: `authenticator`, `tls`, `inboxPrefix`, `name`. */
  readonly connection?: Readonly<Record<string, unknown>>;
}

export interface NatsSettings {
  readonly bucket: string;
  readonly replicas: number;
  readonly timeoutMs: number;
  readonly syncInterval: "always" | null;
  /** Hosts and ports, for messages. Never a password. */
  readonly address: string;
  /** For `connect` of the NATS client. */
  readonly connection: Readonly<Record<string, unknown>>;
}

const problem = optionError.bind(null, "nats");
const URL_SHAPE = /^([a-z+]+):\/\/(?:([^/@]*)@)?([^/@?#]+)(?:\/([^/?#]*))?$/i;
const SCHEMES: readonly string[] = ["nats", "tls", "nats+tls"];
const SERVER = /^(?:[A-Za-z0-9._-]+|\[[0-9A-Fa-f:.]+\])(?::(\d{1,5}))?$/;
const BUCKET = /^[A-Za-z0-9_-]{1,64}$/;

export function settingsFrom(options: NatsStoreOptions): NatsSettings {
  const { timeoutMs = 5_000, replicas = 1, syncInterval = null, connection = {} } = options;
  const address = parseNatsUrl(String(options.url));
  const bucket = options.bucket ?? address.bucket ?? "solehold";
  if (!BUCKET.test(bucket)) throw problem("bucket", "must have 1 to 64 letters, digits, '_' or '-'", bucket);
  assertWholeNumbers("nats", { replicas }, 1, 5);
  assertWholeNumbers("nats", { timeoutMs }, 1);
  if (syncInterval !== null) assertOneOf("nats", "syncInterval", syncInterval, ["always"]);
  return {
    bucket,
    replicas,
    timeoutMs,
    syncInterval,
    address: address.servers.join(","),
    connection: { ...address.options, ...connection },
  };
}

function parseNatsUrl(text: string) {
  const [, scheme = "", user, hosts = "", path = ""] = URL_SHAPE.exec(text) ?? [];
  if (!SCHEMES.includes(scheme.toLowerCase())) {
    throw problem("url", "must look like nats://host:4222/bucket, without a query", withoutPassword(text));
  }
  const servers = hosts.split(",");
  if (!servers.every(isServer)) {
    const rule = "must name hosts, with ports up to 65535, as in nats://host:4222";
    throw problem("url", rule, withoutPassword(text));
  }
  const tls = scheme.toLowerCase() === "nats" ? {} : { tls: {} };
  const options = { servers, ...(user === undefined ? {} : userFrom(user)), ...tls };
  return { servers, bucket: path === "" ? null : path, options };
}

function isServer(text: string): boolean {
  const [whole, port = "4222"] = SERVER.exec(text) ?? [];
  return whole !== undefined && Number(port) <= 65_535;
}

function userFrom(text: string): Readonly<Record<string, string>> {
  const [name = "", ...rest] = text.split(":");
  if (rest.length === 0) return { token: decodedPart("nats", "token", name) };
  return {
    user: decodedPart("nats", "user", name),
    pass: decodedPart("nats", "password", rest.join(":")),
  };
}
