/**
 * A `route.ts` as Next.js serves it: `AppRouteRouteModule` is what its build puts around the exports of every such file. It
 * finds the method's handler, gives it a `NextRequest` and the parameters, and takes only a `Response`. Left out: Next's
 * compiler and its HTTP server.
 */
import { createRequire } from "node:module";

/** The exports of a `route.ts`. */
interface RouteFile {
  readonly [method: string]: (request: Request, context: { params: Promise<never> }) => Promise<Response>;
}

/** As far as it is used: its own types need those of React. */
interface RouteModule {
  ensureUserland(): Promise<void>;
  handle(request: Request, context: object): Promise<Response>;
}

const require = createRequire(import.meta.url);
const next = (path: string) => require(`./packages/node_modules/next/${path}`);

const NOTHING = (): void => undefined;
/** What Next's server says to every route. */
const CONTEXT = {
  previewProps: { previewModeId: "id", previewModeEncryptionKey: "key", previewModeSigningKey: "key" },
  sharedContext: { buildId: "build", deploymentId: "" },
  renderOpts: {
    ...{ experimental: {}, incrementalCache: {}, cacheLifeProfiles: {} },
    ...{ cacheComponents: false, supportsDynamicResponse: true },
    ...{ onClose: NOTHING, onAfterTaskError: NOTHING, waitUntil: NOTHING },
  },
};

/** Answers requests for `app/{page}/route.ts`. */
export async function nextRoute(
  page: string,
  file: RouteFile,
): Promise<(request: Request, params?: object) => Promise<Response>> {
  next("dist/server/node-environment-baseline.js");
  const { AppRouteRouteModule } = next("dist/server/route-modules/app-route/module.compiled.js");
  const { RouteKind } = next("dist/server/route-kind.js");
  const { NextRequest } = next("server.js");
  const names = { page: `${page}/route`, pathname: page, filename: "route", bundlePath: `app${page}/route` };
  const module: RouteModule = new AppRouteRouteModule({
    definition: { kind: RouteKind.APP_ROUTE, ...names },
    distDir: ".next",
    relativeProjectDir: "",
    resolvedPagePath: `app${page}/route.ts`,
    userland: () => ({ dynamic: "force-dynamic", ...file }),
  });
  await module.ensureUserland();
  return async (request, params = {}) =>
    await module.handle(new NextRequest(request), { ...CONTEXT, params });
}
