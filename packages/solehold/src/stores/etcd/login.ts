/** Logging in: the name and password of the URL become a token, which every call carries until it is refused. */

import type { GrpcMetadata, GrpcPackage, MemberConnection } from "./grpc.ts";
import { decodeAuthenticate, encodeAuthenticate } from "./messages.ts";
import type { EtcdSettings } from "./options.ts";

const AUTHENTICATE_PATH = "/etcdserverpb.Auth/Authenticate";

export class Login {
  readonly #grpc: GrpcPackage;
  readonly #user: EtcdSettings["user"];
  #current: GrpcMetadata | null = null;
  #loggingIn: Promise<GrpcMetadata> | null = null;

  constructor(grpc: GrpcPackage, user: EtcdSettings["user"]) {
    this.#grpc = grpc;
    this.#user = user;
  }

  /** What a call is to carry; null when it must log in first. */
  get current(): GrpcMetadata | null {
    return this.#current;
  }

  logIn(member: MemberConnection): Promise<GrpcMetadata> {
    this.#loggingIn ??= this.#logIn(member).finally(() => {
      this.#loggingIn = null;
    });
    return this.#loggingIn;
  }

  /** The server no longer accepts it. A newer one is kept. */
  forget(metadata: GrpcMetadata): void {
    if (this.#current === metadata) this.#current = null;
  }

  async #logIn(member: MemberConnection): Promise<GrpcMetadata> {
    const metadata = new this.#grpc.Metadata();
    // A member without a leader is to refuse at once, not to wait for one: another may have one.
    metadata.set("hasleader", "true");
    const token = this.#user === null ? null : await this.#token(this.#user, member, metadata);
    if (token !== null) metadata.set("token", token);
    this.#current = metadata;
    return metadata;
  }

  async #token(
    { name, password }: NonNullable<EtcdSettings["user"]>,
    member: MemberConnection,
    metadata: GrpcMetadata,
  ): Promise<string | null> {
    try {
      const request = encodeAuthenticate(name, password);
      return decodeAuthenticate(await member.request(AUTHENTICATE_PATH, request, metadata));
    } catch (error) {
      // A cluster that asks nobody for a password needs no token.
      if (String(error).includes("authentication is not enabled")) return null;
      throw error;
    }
  }
}
