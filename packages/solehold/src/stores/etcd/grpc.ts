/**
 * A member of the cluster, through the package @grpc/grpc-js. A request is sent once, and answered or lost: the retries
 * of the package are off.
 */
import type { ChannelCredentials, Client, Metadata, MethodDefinition } from "@grpc/grpc-js";
import { configError, loadPackage } from "../support/options.ts";
import { type Procedures, protocolDescriptor, type WatchRequest, type WatchResponse } from "./messages.ts";
import type { EtcdTls } from "./options.ts";

type GrpcPackage = typeof import("@grpc/grpc-js");
type Method = MethodDefinition<object, object>;
type Packages = Readonly<{ grpc: GrpcPackage; services: Readonly<Record<string, Record<string, Method>>> }>;

const CHANNEL_OPTIONS = {
  "grpc.enable_retries": 0,
  // A page of records may be larger than the 4 MiB of the default.
  "grpc.max_receive_message_length": 64 * 2 ** 20,
  // A server that is gone without a word is noticed. etcd refuses to be asked more often than every 5 s.
  "grpc.keepalive_time_ms": 10_000,
  "grpc.keepalive_timeout_ms": 5_000,
  // Each store has its own connections, to the addresses of its URL and nowhere else.
  "grpc.use_local_subchannel_pool": 1,
  "grpc.enable_http_proxy": 0,
  "grpc.service_config_disable_resolution": 1,
};

/** What connects to an address. Throws when the package is missing, or a file is not what it should be. */
export async function loadGrpc(tls: EtcdTls | null): Promise<(address: string) => Member> {
  const packages = await loadPackages();
  const credentials = credentialsFrom(packages.grpc, tls);
  return (address) => new Member(packages, address, credentials);
}

function loadPackages(): Promise<Packages> {
  // The second is a dependency of the first.
  return loadPackage("etcd", "@grpc/grpc-js @grpc/proto-loader", async () => {
    const grpc = await import("@grpc/grpc-js");
    const { fromJSON } = await import("@grpc/proto-loader");
    const services: unknown = fromJSON(protocolDescriptor(), { longs: String, defaults: true });
    return { grpc, services: services as Packages["services"] };
  });
}

function credentialsFrom({ credentials }: GrpcPackage, tls: EtcdTls | null): ChannelCredentials {
  if (tls === null) return credentials.createInsecure();
  try {
    return credentials.createSsl(tls.ca, tls.key, tls.cert);
  } catch (cause) {
    const rule = "ca, cert and key must be PEM files that belong together";
    throw configError(`etcd: ${rule} (${(cause as Error).message})`, cause);
  }
}

export class Member {
  readonly address: string;
  /** What later calls log in with. */
  token: string | null = null;
  readonly #packages: Packages;
  readonly #client: Client;
  readonly #calls = new Set<{ cancel(): void }>();

  constructor(packages: Packages, address: string, credentials: ChannelCredentials) {
    this.address = address;
    this.#packages = packages;
    this.#client = new packages.grpc.Client(`dns:${address}`, credentials, CHANNEL_OPTIONS);
  }

  /** Whether its connection stands, so that a request leaves at once. */
  get isReady(): boolean {
    const { READY } = this.#packages.grpc.connectivityState;
    return this.#client.getChannel().getConnectivityState(false) === READY;
  }

  call<N extends keyof Procedures>(name: N, request: Procedures[N][0]): Promise<Procedures[N][1]> {
    const { path, requestSerialize: encode, responseDeserialize: decode } = this.#method(name);
    return new Promise((resolve, reject) => {
      const done = (error: Error | null, reply?: object): void => {
        this.#calls.delete(call);
        if (error === null) resolve(reply as Procedures[N][1]);
        else reject(error);
      };
      const call = this.#client.makeUnaryRequest(path, encode, decode, request, this.#metadata(), done);
      this.#calls.add(call);
    });
  }

  /** Responses in order. To stop before an error comes, `cancel`. */
  watch(request: WatchRequest): { responses: AsyncIterator<WatchResponse>; cancel: () => void } {
    const { path, requestSerialize: encode, responseDeserialize: decode } = this.#method("Watch/Watch");
    const stream = this.#client.makeBidiStreamRequest(path, encode, decode, this.#metadata());
    this.#calls.add(stream);
    // Whoever reads the responses gets the error; here it must only have a listener, whenever it comes.
    stream.on("error", () => this.#calls.delete(stream));
    stream.write(request);
    return { responses: stream[Symbol.asyncIterator](), cancel: () => stream.cancel() };
  }

  /** Ends what is under way. */
  close(): void {
    for (const call of this.#calls) call.cancel();
    this.#client.close();
  }

  #method(name: keyof Procedures): Method {
    const [service, method = ""] = name.split("/");
    return this.#packages.services[`etcdserverpb.${service}`]?.[method] as Method;
  }

  /** A member without a leader is to refuse at once, not to wait for one: another may have one. */
  #metadata(): Metadata {
    const metadata = new this.#packages.grpc.Metadata();
    metadata.set("hasleader", "true");
    if (this.token !== null) metadata.set("token", this.token);
    return metadata;
  }
}
