/** Logging in: the name and password of the URL become a token, which every call carries until it is refused. */
import type { CallFields, MemberConnection } from "./grpc.ts";
import { decodeAuthenticate, encodeAuthenticate } from "./messages.ts";
import type { EtcdSettings } from "./options.ts";

const AUTHENTICATE_PATH = "/etcdserverpb.Auth/Authenticate";
/** A member without a leader is to refuse at once, not to wait for one: another may have one. */
const WITHOUT_TOKEN: CallFields = Object.freeze({ hasleader: "true" });

export class Login {
  readonly #user: EtcdSettings["user"];
  #current: CallFields | null = null;
  #loggingIn: Promise<CallFields> | null = null;

  constructor(user: EtcdSettings["user"]) {
    this.#user = user;
  }

  /** What a call is to carry; null when it must log in first. */
  get current(): CallFields | null {
    return this.#current;
  }

  logIn(member: MemberConnection): Promise<CallFields> {
    this.#loggingIn ??= this.#logIn(member).finally(() => {
      this.#loggingIn = null;
    });
    return this.#loggingIn;
  }

  /** The server no longer accepts it. A newer one is kept. */
  forget(fields: CallFields): void {
    if (this.#current === fields) this.#current = null;
  }

  async #logIn(member: MemberConnection): Promise<CallFields> {
    const token = this.#user === null ? null : await this.#token(this.#user, member);
    this.#current = token === null ? { ...WITHOUT_TOKEN } : { ...WITHOUT_TOKEN, token };
    return this.#current;
  }

  async #token(
    { name, password }: NonNullable<EtcdSettings["user"]>,
    member: MemberConnection,
  ): Promise<string | null> {
    try {
      const request = encodeAuthenticate(name, password);
      return decodeAuthenticate(await member.request(AUTHENTICATE_PATH, request, WITHOUT_TOKEN));
    } catch (error) {
      // A cluster that asks nobody for a password needs no token.
      if (String(error).includes("authentication is not enabled")) return null;
      throw error;
    }
  }
}
