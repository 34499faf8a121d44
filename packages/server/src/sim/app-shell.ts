/**
 * The real HTTP app, built once and lent to one simulated server life after another: building it takes turns
 * of the real event loop, which a simulated run never gives. Whatever a life brings (clocks, routes, limits)
 * is looked up at the moment of use; when a life has died nothing of it runs, so its successor takes over.
 */
import { type App, type AppOptions, buildApp } from "../http/app.ts";

export class AppShell {
  readonly app: App;
  #life: AppOptions;

  constructor(template: AppOptions) {
    this.#life = template;
    const life = (): AppOptions => this.#life;
    this.app = buildApp({
      ...template,
      env: forwarded(() => life().env),
      events: forwarded(() => life().events),
      pipelines: forwarded(() => life().pipelines),
      authenticator: forwarded(() => life().authenticator),
      accessAudit: forwarded(() => life().accessAudit),
      limiter: forwarded(() => life().limiter),
      limits: forwarded(() => life().limits),
      metrics: forwarded(() => life().metrics),
      log: forwarded(() => life().log),
      failures: forwarded(() => life().failures),
      eventRoutes: template.eventRoutes.map(({ spec }, index) => ({
        spec,
        open: (...request) => {
          const route = life().eventRoutes[index];
          if (route === undefined) throw new RangeError(`the server has no route ${spec.path}`);
          return route.open(...request);
        },
      })),
      isDraining: () => life().isDraining(),
      routes: template.routes.map(({ spec }, index) => ({
        spec,
        run: async (body, query, call) => {
          const route = life().routes[index];
          if (route === undefined) throw new RangeError(`the server has no route ${spec.path}`);
          return await route.run(body, query, call);
        },
      })),
    });
  }

  lend(life: AppOptions): App {
    this.#life = life;
    return this.app;
  }
}

function forwarded<Part extends object>(current: () => Part): Part {
  return new Proxy({} as Part, {
    get: (_nothing, field) => {
      const part = current();
      const value: unknown = Reflect.get(part, field, part);
      return typeof value === "function" ? value.bind(part) : value;
    },
  });
}
