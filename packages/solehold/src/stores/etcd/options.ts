/** What can be set, checked when the store is opened: a wrong value is reported at once, with its name. */
import { readFileSync } from "node:fs";
import { isIPv6 } from "node:net";
import { assertWholeNumbers, type FullStore } from "../../store/index.ts";
import { type CallOptions, decodedPart, optionError, withoutPassword } from "../support/options.ts";
import type { User } from "./messages.ts";

export type EtcdStore = FullStore;

export interface EtcdStoreOptions extends CallOptions {
  /**
   * `etcd://user:password@host1:2379,host2:2379,host3:2379/prefix`, or `etcds:` for TLS. All members are named, so that
   * the store can go on with another when one is down. After a `?` may stand `timeoutMs`, `memberTimeoutMs`, and for TLS
   * the paths of files: `ca`, `cert`, `key`.
   */
  readonly url: string;
  /**
   * A member that leaves a request unanswered for this long is given up for another one. A write is then of unknown
   * outcome, a read is asked again elsewhere. Default: two fifths of timeoutMs.
   */
  readonly memberTimeoutMs?: number;
}

/** Members are `host:port` each; `tls` is null without TLS; all keys begin with `prefix`, which ends in a slash. */
export interface EtcdSettings {
  readonly members: readonly string[];
  readonly user: User | null;
  readonly tls: EtcdTls | null;
  readonly prefix: string;
  readonly timeoutMs: number;
  readonly memberTimeoutMs: number;
}

/** The contents of the files; null for those that are not given. */
export type EtcdTls = Readonly<Record<"ca" | "cert" | "key", Buffer | null>>;

const problem = optionError.bind(null, "etcd");
const DEFAULT_PORT = 2_379;
const DEFAULT_PREFIX = "solehold/";
const DEFAULT_TIMEOUT_MS = 5_000;
const MEMBER_SHARE = 0.4;
const EXAMPLE = "etcd://host1:2379,host2:2379/prefix";
const PREFIX = /^[\x21-\x7e]{1,128}$/;
const URL_PARTS = /^(etcds?):\/\/(?:([^@/?#]*)@)?([^/?#]*)(?:\/([^?#]*))?(?:\?([^#]*))?$/i;
const HOST_AND_PORT = /^(\[[0-9a-f:.]+\]|[a-z0-9_.-]+)(?::(\d{1,5}))?$/i;
const QUERY_NAMES = ["timeoutMs", "memberTimeoutMs", "ca", "cert", "key"];

export function settingsFrom(options: EtcdStoreOptions): EtcdSettings {
  const { url } = options;
  const parts = typeof url === "string" ? URL_PARTS.exec(url) : null;
  if (parts === null) throw problem("url", `must look like ${EXAMPLE}`, withoutPassword(url));
  const [, scheme = "", userInfo, hosts = "", path = "", search = ""] = parts;
  const query = new Map(new URLSearchParams(search));
  const unknown = [...query.keys()].find((name) => !QUERY_NAMES.includes(name));
  if (unknown !== undefined)
    throw problem("url", `may only have the options ${QUERY_NAMES.join(", ")}`, unknown);
  const number = (name: "timeoutMs" | "memberTimeoutMs", byDefault: number): number =>
    wholeNumber(name, options[name] ?? query.get(name) ?? byDefault);
  const timeoutMs = number("timeoutMs", DEFAULT_TIMEOUT_MS);
  const memberTimeoutMs = number("memberTimeoutMs", Math.ceil(timeoutMs * MEMBER_SHARE));
  return {
    members: hosts.split(",").map(memberFrom),
    user: userInfo === undefined ? null : userFrom(userInfo),
    tls: tlsFrom(scheme.toLowerCase(), query),
    prefix: prefixFrom(path),
    timeoutMs,
    memberTimeoutMs: Math.min(timeoutMs, memberTimeoutMs),
  };
}

function memberFrom(text: string): string {
  const [, host = "", port = String(DEFAULT_PORT)] = HOST_AND_PORT.exec(text) ?? [];
  const isHost = host !== "" && (!host.startsWith("[") || isIPv6(host.slice(1, -1)));
  if (isHost && Number(port) >= 1 && Number(port) <= 65_535) return `${host}:${Number(port)}`;
  const rule = `must name hosts, with ports from 1 to 65535, separated by commas, as in ${EXAMPLE}`;
  throw problem("url", rule, withoutPassword(text));
}

function userFrom(text: string): User {
  const [, name = "", password = ""] = /^([^:]*):?(.*)$/.exec(text) ?? [];
  return { name: decodedPart("etcd", "user", name), password: decodedPart("etcd", "password", password) };
}

function prefixFrom(path: string): string {
  if (path === "") return DEFAULT_PREFIX;
  const prefix = decodedPart("etcd", "prefix", path);
  if (!PREFIX.test(prefix))
    throw problem("prefix", "must have 1 to 128 printable ASCII characters without spaces", prefix);
  return prefix.endsWith("/") ? prefix : `${prefix}/`;
}

function tlsFrom(scheme: string, query: ReadonlyMap<string, string>): EtcdTls | null {
  const file = (name: string): Buffer | null => {
    const path = query.get(name);
    try {
      return path === undefined ? null : readFileSync(path);
    } catch (cause) {
      throw problem(name, "must be the path of a file that can be read", String(path), cause);
    }
  };
  const tls = { ca: file("ca"), cert: file("cert"), key: file("key") };
  if ((tls.cert === null) !== (tls.key === null))
    throw problem("url", "must have cert and key, or neither", tls.cert === null ? "key" : "cert");
  if (scheme === "etcds") return tls;
  if (tls.ca === null && tls.cert === null) return null;
  throw problem("url", "must begin with etcds: where certificates are given", `${scheme}:`);
}

function wholeNumber(name: string, value: number | string): number {
  const number = Number(value);
  assertWholeNumbers("etcd", { [name]: Number.isNaN(number) ? value : number }, 1);
  return number;
}
