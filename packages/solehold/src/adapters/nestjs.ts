/**
 * NestJS: a module that provides `Leases`, and decorators that run a method under a lease. Nest's own packages are not
 * imported: a dynamic module is a plain object, and the decorators leave the metadata that Nest's `@Inject()` leaves.
 */
import { type ConnectOptions, connect, Leases } from "../client/index.ts";
import { LeaseRuns } from "./nestjs-runs.ts";

export type { Held } from "./held.ts";
export { currentLease, Lease, type LeaseName, OncePer } from "./nestjs-decorators.ts";
export { LeaseRuns } from "./nestjs-runs.ts";

/** As Nest declares its dynamic modules. */
export interface LeasesDynamicModule {
  readonly module: new () => object;
  readonly global: boolean;
  readonly providers: Provider[];
  readonly exports: (typeof Leases | typeof LeaseRuns)[];
}
interface Provider {
  readonly provide: typeof Leases | typeof LeaseRuns;
  readonly useFactory: (...injected: never[]) => unknown;
  readonly inject: InjectionToken[];
}
type InjectionToken = string | symbol | (abstract new (...args: never[]) => unknown);

/** Where the leases come from when other providers know it. */
export interface LeasesSource<Injected extends unknown[]> {
  readonly useFactory: (...injected: Injected) => Leases | Promise<Leases>;
  readonly inject?: InjectionToken[];
}

/** Nest shows the name of the class. */
const Module = class LeasesModule {};

/** In the root module, once: `imports: [LeasesModule.forRoot("redis://localhost:6379")]`. */
export const LeasesModule = {
  forRoot(url: string, options: ConnectOptions = {}): LeasesDynamicModule {
    if (typeof url !== "string" || url === "")
      throw new TypeError(`LeasesModule.forRoot: url must be that of a store, such as "memory:", got ${url}`);
    return LeasesModule.forRootAsync({ useFactory: () => connect(url, options) });
  },

  /** `forRootAsync({ inject: [Config], useFactory: (config) => connect(config.url) })`. */
  forRootAsync<Injected extends unknown[]>(source: LeasesSource<Injected>): LeasesDynamicModule {
    if (typeof source?.useFactory !== "function")
      throw new TypeError("LeasesModule.forRootAsync: useFactory must be a function that returns Leases");
    const { useFactory, inject = [] } = source;
    return {
      ...{ module: Module, global: true, exports: [Leases, LeaseRuns] },
      providers: [
        { provide: Leases, useFactory, inject },
        { provide: LeaseRuns, useFactory: (leases: Leases) => new LeaseRuns(leases), inject: [Leases] },
      ],
    };
  },
};
