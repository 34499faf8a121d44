/** The playground: a list of worlds, and the one that is open. */
import { useEffect } from "preact/hooks";
import { Banner } from "../ui/components.tsx";
import { TopBar, type TopLink } from "../ui/top-bar.tsx";
import { useAction } from "../ui/use-answer.ts";
import { caseById, SCENARIOS } from "./data/cases.ts";
import { readFile } from "./load/read-file.ts";
import { type ChangeView, useView } from "./state/use-view.ts";
import { AT_START, formatView, type Place } from "./state/view.ts";
import { CaseView } from "./views/case-view.tsx";
import { FileView } from "./views/file-view.tsx";
import { Rules } from "./views/rules.tsx";
import { SeedView } from "./views/seed-view.tsx";

export function App() {
  const [view, change] = useView();
  const { answer: trace, error, run } = useAction(readFile);
  const open = (dropped: File): void => {
    change({ ...AT_START, place: { kind: "file" } });
    run(dropped);
  };
  useDrop(open);
  const { place } = view;
  const shown = place.kind === "case" ? caseById(place.id) : null;
  const title = shown?.title ?? TITLES[place.kind];
  useEffect(() => {
    document.title = `${title} · Solehold playground`;
  }, [title]);
  return (
    <>
      <button type="button" class="button skip" onClick={() => document.getElementById("main")?.focus()}>
        Skip to the picture
      </button>
      <TopBar home={isServed ? "./" : "#/"} links={isServed ? SERVED_LINKS : LINKS}>
        <p class="top-end muted">The shipped code in a simulated world, in your browser.</p>
      </TopBar>
      <div class="layout">
        <Menu place={place} />
        <main id="main" tabIndex={-1}>
          <h1 class="visually-hidden">Playground</h1>
          {place.kind === "rules" && <Rules />}
          {place.kind === "seed" && <SeedView seed={place.seed} view={view} change={change} />}
          {place.kind === "file" && (
            <FileView {...{ error, view, change }} trace={error === null ? trace : null} onFile={open} />
          )}
          {place.kind === "case" && shown !== null && (
            <CaseView key={shown.id} shown={shown} view={view} change={change} />
          )}
          {place.kind === "case" && shown === null && <Unknown id={place.id} change={change} />}
        </main>
      </div>
    </>
  );
}

const TITLES: { readonly [kind in Place["kind"]]: string } = {
  case: "No such world",
  rules: "Why each rule exists",
  seed: "Any seed",
  file: "A trace or audit",
};

const LINKS: readonly TopLink[] = [{ href: "#/", label: "Playground", isCurrent: true }];
/** A server has the live views beside it; a folder of static files has not. */
const SERVED_LINKS: readonly TopLink[] = [
  ...["Leases", "Activity", "Audit", "Server"].map((label) => ({
    href: `./#/${label.toLowerCase()}`,
    label,
    isCurrent: false,
  })),
  ...LINKS,
];
const isServed = location.pathname.endsWith("/playground");

function linkTo(place: Place): string {
  return formatView({ ...AT_START, place });
}

function Menu({ place }: { readonly place: Place }) {
  const item = (to: Place, title: string) => {
    const current = linkTo(to).split("?")[0] === linkTo(place).split("?")[0];
    return (
      <li key={title}>
        <a href={linkTo(to)} aria-current={current ? "page" : undefined}>
          {title}
        </a>
      </li>
    );
  };
  const isRule = place.kind === "case" && !SCENARIOS.some(({ id }) => id === place.id);
  return (
    <nav class="menu" aria-label="Worlds">
      <h2>What can go wrong</h2>
      <ul>{SCENARIOS.map(({ id, title }) => item({ kind: "case", id }, title))}</ul>
      <h2>More</h2>
      <ul>
        {item({ kind: "rules" }, TITLES.rules)}
        {isRule && item(place, `· ${caseById(place.id)?.title ?? place.id}`)}
        {item({ kind: "seed", seed: place.kind === "seed" ? place.seed : 40 }, TITLES.seed)}
        {item({ kind: "file" }, "Open a trace or audit")}
      </ul>
    </nav>
  );
}

function Unknown({ id, change }: { readonly id: string; readonly change: ChangeView }) {
  return (
    <Banner tone="bad" role="alert">
      There is no world called “{id}”.
      <button type="button" class="button" onClick={() => change({ ...AT_START, place: { kind: "rules" } })}>
        See all of them
      </button>
    </Banner>
  );
}

/** A file may be dropped anywhere. */
function useDrop(onFile: (file: File) => void): void {
  useEffect(() => {
    const over = (event: DragEvent): void => event.preventDefault();
    const drop = (event: DragEvent): void => {
      event.preventDefault();
      const file = event.dataTransfer?.files[0];
      if (file !== undefined) onFile(file);
    };
    addEventListener("dragover", over);
    addEventListener("drop", drop);
    return () => {
      removeEventListener("dragover", over);
      removeEventListener("drop", drop);
    };
  }, [onFile]);
}
