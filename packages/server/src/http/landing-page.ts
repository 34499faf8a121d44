/** `/`: what runs here and what to try, for people who open the address in a browser. */

export interface LandingFacts {
  readonly url: string;
  readonly version: string;
  readonly store: string;
  readonly keysRequired: boolean;
}

interface Step {
  readonly what: string;
  readonly command: string;
}

function stepsFor({ url, keysRequired }: LandingFacts): readonly Step[] {
  const key = keysRequired ? ` -H "authorization: Bearer $SOLEHOLD_KEY"` : "";
  const post = (command: string, body: string): string =>
    `curl -s${key} -H 'content-type: application/json' ${url}/v1/leases/${command} -d '${body}'`;
  return [
    {
      what: "Take a lease for two minutes",
      command: post("acquire", '{"name":"reports/nightly","holder":"me","token":"my-secret","ttlMs":120000}'),
    },
    {
      what: "Another holder learns who has it, and until when",
      command: post("acquire", '{"name":"reports/nightly","holder":"you","ttlMs":30000}'),
    },
    {
      what: "Or waits for it in a queue",
      command: post("acquire", '{"name":"reports/nightly","holder":"you","ttlMs":30000,"waitMs":60000}'),
    },
    { what: "Watch, in another terminal", command: `curl -sN${key} '${url}/v1/watch?prefix=reports/'` },
    {
      what: "Release it: the waiter has it, with a higher fence",
      command: post("release", '{"name":"reports/nightly","holder":"me","token":"my-secret"}'),
    },
    {
      what: "Look at what was decided, and why",
      command: `curl -s${key} '${url}/v1/audit?limit=10&order=newest-first'`,
    },
  ];
}

const STYLE = `
:root { color-scheme: light dark; font: 16px/1.55 system-ui, sans-serif; }
body { max-width: 46rem; margin: 3rem auto; padding: 0 1.25rem; }
h1 { font-size: 1.6rem; margin-bottom: 0; }
p.lead { margin-top: .25rem; opacity: .75; }
ol { padding-left: 1.25rem; } li { margin: 1rem 0; }
pre { overflow-x: auto; padding: .75rem 1rem; border-radius: .5rem; background: rgb(127 127 127 / .14); font-size: .85rem; }
a { color: inherit; } nav a { margin-right: 1.25rem; }
`;

export const LANDING_POLICY =
  "default-src 'none'; style-src 'unsafe-inline'; base-uri 'none'; form-action 'none'; frame-ancestors 'none'";

export function landingPage(facts: LandingFacts): string {
  const steps = stepsFor(facts)
    .map(({ what, command }) => `<li>${escapeHtml(what)}<pre><code>${escapeHtml(command)}</code></pre></li>`)
    .join("\n");
  const keys = facts.keysRequired
    ? "<p>This server needs an API key: <code>export SOLEHOLD_KEY=shk_...</code></p>"
    : "<p>No API keys: it only answers on this machine. <code>solehold keys add</code> makes the first one.</p>";
  return `<!doctype html>
<html lang="en">
<meta charset="utf-8">
<meta name="viewport" content="width=device-width">
<title>Solehold</title>
<style>${STYLE}</style>
<h1>Solehold ${escapeHtml(facts.version)}</h1>
<p class="lead">Exclusive, expiring, fenced leases, over the ${escapeHtml(facts.store)} store. It is running.</p>
<nav><a href="/openapi.json">API</a><a href="/healthz">Health</a><a href="/readyz">Readiness</a><a href="/metrics">Metrics</a></nav>
<h2>Try it</h2>
${keys}
<ol>
${steps}
</ol>
<p>From a shell: <code>solehold run reports/nightly --server ${escapeHtml(facts.url)} -- ./nightly.sh</code></p>
</html>
`;
}

function escapeHtml(text: string): string {
  const entities: Readonly<Record<string, string>> = {
    "&": "&amp;",
    "<": "&lt;",
    ">": "&gt;",
    '"': "&quot;",
  };
  return text.replace(/[&<>"]/g, (character) => entities[character] ?? character);
}
