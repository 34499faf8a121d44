/** The frame of the live views: who is asking comes first, then the view that the address names. */
import { useCallback, useEffect, useState } from "preact/hooks";
import { TopBar } from "../ui/top-bar.tsx";
import { ActivityView } from "./activity/activity-view.tsx";
import { AuditView } from "./audit/audit-view.tsx";
import { get, messageOf, ProblemError, setApiKey, type Who } from "./data/api.ts";
import { learnStoreTime } from "./data/store-clock.ts";
import { KeyPrompt } from "./key-prompt.tsx";
import { LeaseView } from "./lease/lease-view.tsx";
import { LeasesView } from "./leases/leases-view.tsx";
import { hrefOf, type Route, useRoute, type View } from "./router.ts";
import { ServerView } from "./server/server-view.tsx";

type Session =
  | { readonly kind: "asking" }
  | { readonly kind: "unreachable"; readonly message: string }
  | { readonly kind: "locked"; readonly refused: boolean }
  | { readonly kind: "open"; readonly who: Who };

const RETRY_MS = 2_000;

export function App() {
  const route = useRoute();
  const [session, setSession] = useState<Session>({ kind: "asking" });
  const ask = useCallback(async (isNewKey: boolean) => {
    try {
      const who = await get<Who>("/v1/whoami");
      learnStoreTime(who.storeTimeMs);
      setSession({ kind: "open", who });
    } catch (error) {
      const isLocked = error instanceof ProblemError && error.problem.status === 401;
      if (isLocked) setSession({ kind: "locked", refused: isNewKey });
      else setSession({ kind: "unreachable", message: messageOf(error) });
    }
  }, []);
  useEffect(() => void ask(false), [ask]);
  useEffect(() => {
    if (session.kind !== "unreachable") return undefined;
    const timer = setTimeout(() => void ask(false), RETRY_MS);
    return () => clearTimeout(timer);
  }, [session, ask]);
  const leave = (): void => {
    setApiKey("");
    setSession({ kind: "locked", refused: false });
  };
  return (
    <div class="app">
      <Top route={route} who={session.kind === "open" ? session.who : null} onLeave={leave} />
      {session.kind === "asking" && <Waiting text="Connecting…" />}
      {session.kind === "unreachable" && (
        <Waiting text={`Not connected: ${session.message}. Trying again…`} />
      )}
      {session.kind === "locked" && (
        <KeyPrompt
          refused={session.refused}
          onKey={(key) => {
            setApiKey(key);
            void ask(true);
          }}
        />
      )}
      {session.kind === "open" && <Shown route={route} who={session.who} />}
    </div>
  );
}

function Waiting({ text }: { text: string }) {
  return (
    <main class="view">
      <p class="empty muted" role="status">
        {text}
      </p>
    </main>
  );
}

function Shown({ route: { view, params }, who }: { route: Route; who: Who }) {
  const tenant = params.tenant ?? who.tenants?.[0] ?? "default";
  useEffect(() => {
    const what = view === "lease" ? params.name : TITLES[view];
    document.title = `${what} · Solehold`;
  }, [view, params.name]);
  switch (view) {
    case "lease":
      return (
        <LeaseView key={`${tenant}/${params.name}`} name={params.name ?? ""} {...{ tenant, params, who }} />
      );
    case "activity":
      return <ActivityView key={tenant} tenant={tenant} />;
    case "audit":
      return <AuditView {...{ tenant, params, who }} />;
    case "server":
      return <ServerView who={who} />;
    default:
      return <LeasesView {...{ tenant, params, who }} />;
  }
}

const TITLES: { readonly [view in View]: string } = {
  leases: "Leases",
  lease: "Lease",
  activity: "Activity",
  audit: "Audit",
  server: "Server",
};

const TABS: readonly View[] = ["leases", "activity", "audit", "server"];

function Top({
  route: { view, params },
  who,
  onLeave,
}: {
  route: Route;
  who: Who | null;
  onLeave: () => void;
}) {
  const current = view === "lease" ? "leases" : view;
  const kept = params.tenant === undefined ? {} : { tenant: params.tenant };
  return (
    <TopBar
      home="#/leases"
      links={[
        ...TABS.map((tab) => ({
          href: hrefOf(tab, tab === "server" ? {} : kept),
          label: TITLES[tab],
          isCurrent: tab === current,
        })),
        { href: "./playground", label: "Playground", isCurrent: false },
      ]}
    >
      {who?.keysRequired === true && (
        <div class="top-end who">
          <span class="muted">key {who.id}</span>
          <button type="button" class="button quiet" onClick={onLeave}>
            Leave
          </button>
        </div>
      )}
    </TopBar>
  );
}
