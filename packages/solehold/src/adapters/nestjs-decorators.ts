/**
 * `@Lease()` and `@OncePer()` for methods of what Nest creates: providers and controllers. Decorators of the kind that Nest
 * uses (`experimentalDecorators`), in any order with Nest's own.
 */
import { AsyncLocalStorage } from "node:async_hooks";
import type { AcquireOptions, OncePerOptions } from "../client/index.ts";
import { type Held, runHeld } from "./held.ts";
import { LeaseRuns } from "./nestjs-runs.ts";

/** The name of the lease, or how it follows from the arguments of the method. */
export type LeaseName<Args extends unknown[]> = string | ((...args: Args) => string);

type Method = (...args: never[]) => Promise<unknown>;
type LeaseDecorator<Args extends unknown[]> = <Decorated extends (...args: Args) => Promise<unknown>>(
  target: object,
  property: string | symbol,
  descriptor: TypedPropertyDescriptor<Decorated>,
) => void;

/** Runs the method under the lease, and waits for it as `leases.run` does. `currentLease()` is the lease. */
export function Lease<Args extends unknown[]>(
  name: LeaseName<Args>,
  options: AcquireOptions = {},
): LeaseDecorator<Args> {
  const nameOf = naming("Lease", name);
  return decorator("Lease", (runs, args, method) =>
    runs.run((leases, stop) =>
      runHeld(leases, { ...options, name: nameOf }, args as Args, stop, (held) => scope.run(held, method)),
    ),
  );
}

/** Runs the method once per period, whichever replica calls it first; for the others it resolves to undefined. */
export function OncePer<Args extends unknown[]>(
  name: LeaseName<Args>,
  options: OncePerOptions,
): LeaseDecorator<Args> {
  const nameOf = naming("OncePer", name);
  return decorator("OncePer", (runs, args, method) =>
    runs.run(async (leases, stop) => {
      const outcome = await leases.runOncePer(nameOf(args as Args), options, (lease) =>
        scope.run({ lease, signal: AbortSignal.any([lease.signal, stop]) }, method),
      );
      return outcome.ran ? outcome.result : undefined;
    }),
  );
}

const scope = new AsyncLocalStorage<Held>();

/** In a method with `@Lease()` or `@OncePer()`, and in what it calls: the lease, and the signal to stop. */
export function currentLease(): Held {
  const held = scope.getStore();
  if (held === undefined)
    throw new Error("currentLease() was called outside of a method with @Lease() or @OncePer()");
  return held;
}

const RUNS = Symbol("solehold: the runs of this application");

function decorator(
  title: string,
  run: (runs: LeaseRuns, args: unknown[], method: () => Promise<unknown>) => Promise<unknown>,
): LeaseDecorator<never[]> {
  return (target, property, descriptor) => {
    const original = descriptor.value as Method | undefined;
    if (typeof original !== "function")
      throw new TypeError(`@${title}() is for methods; '${String(property)}' is none`);
    async function leased(this: { readonly [RUNS]?: LeaseRuns }, ...args: unknown[]): Promise<unknown> {
      const runs = this?.[RUNS];
      if (runs === undefined)
        throw new Error(
          `@${title}() on '${String(property)}' has no leases: import LeasesModule.forRoot(url) in the root module, and let Nest create the class`,
        );
      return await run(runs, args, async () => await Reflect.apply(original as Method, this, args));
    }
    Object.defineProperty(leased, "name", { value: original.name });
    keepMetadata(original, leased);
    injectRuns(target.constructor);
    Object.assign(descriptor, { value: leased });
  };
}

/** `reflect-metadata`, which every Nest application loads. */
interface Metadata {
  getMetadata(key: unknown, target: object): unknown;
  getMetadataKeys(target: object): unknown[];
  defineMetadata(key: unknown, value: unknown, target: object): void;
}

function metadata(): Metadata {
  const found = Reflect as typeof Reflect & Partial<Metadata>;
  if (found.defineMetadata === undefined)
    throw new Error('reflect-metadata is not loaded: import "reflect-metadata" first, as Nest asks for');
  return found as Metadata;
}

/** What decorators below this one said about the method (a route, a schedule) stays true. */
function keepMetadata(from: object, to: object): void {
  const { getMetadataKeys, getMetadata, defineMetadata } = metadata();
  for (const key of getMetadataKeys(from)) defineMetadata(key, getMetadata(key, from), to);
}

/** As `@Inject(LeaseRuns)` on a property: Nest sets it when it has created the object. */
const PROPERTIES = "self:properties_metadata";

function injectRuns(type: object): void {
  const { getMetadata, defineMetadata } = metadata();
  const properties = (getMetadata(PROPERTIES, type) ?? []) as { key: string | symbol; type: unknown }[];
  if (properties.some(({ key }) => key === RUNS)) return;
  defineMetadata(PROPERTIES, [...properties, { key: RUNS, type: LeaseRuns }], type);
}

function naming<Args extends unknown[]>(title: string, name: LeaseName<Args>): (args: Args) => string {
  if (typeof name === "function") return (args) => name(...args);
  if (typeof name === "string" && name !== "") return () => name;
  throw new TypeError(
    `@${title}(): name must be the name of a lease, or a function that makes it, got ${name}`,
  );
}
