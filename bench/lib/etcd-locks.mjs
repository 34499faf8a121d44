// Locks on etcd: bare transactions as the floor, etcd's own lock service, and the Lock of etcd3. The first two encode
// their messages by hand and send them with the usual gRPC client, so that no more than that stands between them and
// the server; bare transactions also without it.
import { randomInt } from "node:crypto";
import { once } from "node:events";
import { connect } from "node:http2";
import { Client, credentials } from "@grpc/grpc-js";
import { Etcd3 } from "etcd3";
import { decodeMessage, encodeMessage } from "./protobuf.mjs";

const TTL_SECONDS = 60;
/** Enough for a thorough run. */
const SESSION_SECONDS = 3_600;
const CREATE_REVISION = 1;
const MOD_REVISION = 2;

export class EtcdClient {
  /** The id of the lease that all keys of this client hang on; small, so that it fits a number. */
  session = randomInt(1, 2 ** 47);
  #client;

  constructor(url) {
    this.#client = new Client(new URL(url).host, credentials.createInsecure());
  }

  call(path, request) {
    return new Promise((resolve, reject) => {
      this.#client.makeUnaryRequest(path, pass, decodeMessage, request, (error, reply) =>
        error ? reject(error) : resolve(reply),
      );
    });
  }

  /** One lease of etcd for all keys of a process: what its documentation calls a session. */
  async openSession() {
    await this.call("/etcdserverpb.Lease/LeaseGrant", encodeMessage([1, SESSION_SECONDS], [2, this.session]));
  }

  close() {
    this.#client.close();
  }
}

/** The same calls with nothing but HTTP/2, which is the least that Node can do. */
export class BareEtcdClient {
  session;
  #http2;

  /** `session` is that of another client. */
  constructor(url, session) {
    this.session = session;
    this.#http2 = connect(url, { settings: { enablePush: false } });
  }

  async call(path, request) {
    const fields = { "content-type": "application/grpc", te: "trailers" };
    const stream = this.#http2.request({ ":method": "POST", ":path": path, ...fields });
    const prefix = Buffer.alloc(5);
    prefix.writeUInt32BE(request.length, 1);
    const pieces = [];
    stream.on("data", (piece) => pieces.push(piece));
    stream.end(Buffer.concat([prefix, request]));
    const [trailers] = await once(stream, "trailers");
    if (trailers["grpc-status"] !== "0") throw new Error(`etcd: ${trailers["grpc-message"]}`);
    return decodeMessage(Buffer.concat(pieces).subarray(prefix.length));
  }

  close() {
    this.#http2.close();
  }
}

/** Create if absent, then delete if unchanged: one transaction each. */
export function rawPairs(client, names) {
  return async (worker, index) => {
    const key = `raw/${names(worker, index)}`;
    const put = encodeMessage([2, encodeMessage([1, key], [2, "holder"], [3, client.session])]);
    const created = await client.call("/etcdserverpb.KV/Txn", transaction(key, CREATE_REVISION, 0n, put));
    if (created.get(2)?.[0] !== 1n) throw new Error("etcd: not locked");
    const revision = decodeMessage(created.get(1)[0]).get(3)[0];
    const remove = encodeMessage([3, encodeMessage([1, key])]);
    const removed = await client.call(
      "/etcdserverpb.KV/Txn",
      transaction(key, MOD_REVISION, revision, remove),
    );
    if (removed.get(2)?.[0] !== 1n) throw new Error("etcd: not unlocked");
  };
}

/** etcd's lock service: Lock waits for its turn, Unlock deletes the key that Lock returned. */
export function lockServicePairs(client, names) {
  const lock = lockServiceLocks(client);
  return async (worker, index) => {
    const unlock = await lock(names(worker, index));
    await unlock();
  };
}

export function lockServiceLocks(client) {
  return async (name) => {
    const reply = await client.call(
      "/v3lockpb.Lock/Lock",
      encodeMessage([1, `lock/${name}`], [2, client.session]),
    );
    const [key] = reply.get(2);
    return () => client.call("/v3lockpb.Lock/Unlock", encodeMessage([1, key]));
  };
}

/** With its defaults, but for the ttl. */
export function etcd3Locks(client) {
  return async (name) => {
    const lock = client.lock(`etcd3/${name}`).ttl(TTL_SECONDS);
    await lock.acquire();
    return () => lock.release();
  };
}

export function etcd3Client(url) {
  return new Etcd3({ hosts: url });
}

function transaction(key, target, revision, operation) {
  const field = target === CREATE_REVISION ? 5 : 6;
  return encodeMessage([1, encodeMessage([2, target], [3, key], [field, revision])], [2, operation]);
}

function pass(bytes) {
  return bytes;
}
