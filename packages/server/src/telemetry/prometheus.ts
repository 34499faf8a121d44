/**
 * Counters, histograms and gauges in Prometheus' text format (version 0.0.4): as much of it as a server with
 * a fixed set of metrics needs. Label values are few and known; a metric refuses to grow beyond a bound.
 */

export type Labels = Readonly<Record<string, string>>;

interface Metric {
  lines(): readonly string[];
}

/** More label combinations than this are a mistake: they are counted together. */
const MAX_SERIES = 1_000;
const OVERFLOW = '{overflow="true"}';

export const TEXT_FORMAT = "text/plain; version=0.0.4; charset=utf-8";

export class Registry {
  readonly #metrics: Metric[] = [];

  counter(name: string, help: string): Counter {
    return this.#add(new Counter(name, help));
  }

  histogram(name: string, help: string, bounds: readonly number[]): Histogram {
    return this.#add(new Histogram(name, help, bounds));
  }

  /** `read` is asked when somebody looks. */
  gauge(name: string, help: string, read: () => number): void {
    this.#add({ lines: () => [...heading(name, help, "gauge"), `${name} ${number(read())}`] });
  }

  /** A counter that something else keeps. */
  observedCounter(name: string, help: string, read: () => number): void {
    this.#add({ lines: () => [...heading(name, help, "counter"), `${name} ${number(read())}`] });
  }

  text(): string {
    return `${this.#metrics.flatMap((metric) => metric.lines()).join("\n")}\n`;
  }

  #add<Kind extends Metric>(metric: Kind): Kind {
    this.#metrics.push(metric);
    return metric;
  }
}

export class Counter implements Metric {
  readonly #name: string;
  readonly #help: string;
  readonly #values = new Map<string, number>();

  constructor(name: string, help: string) {
    this.#name = name;
    this.#help = help;
  }

  add(labels: Labels = {}, by = 1): void {
    const series = seriesOf(this.#values, labels);
    this.#values.set(series, (this.#values.get(series) ?? 0) + by);
  }

  lines(): readonly string[] {
    const values = [...this.#values].map(([series, value]) => `${this.#name}${series} ${number(value)}`);
    return [...heading(this.#name, this.#help, "counter"), ...values];
  }
}

interface Distribution {
  /** One per bound, not cumulative. */
  readonly counts: number[];
  total: number;
  sum: number;
}

export class Histogram implements Metric {
  readonly #name: string;
  readonly #help: string;
  readonly #bounds: readonly number[];
  readonly #values = new Map<string, Distribution>();

  constructor(name: string, help: string, bounds: readonly number[]) {
    this.#name = name;
    this.#help = help;
    this.#bounds = bounds;
  }

  observe(value: number, labels: Labels = {}): void {
    const series = seriesOf(this.#values, labels);
    const distribution = this.#values.get(series) ?? { counts: this.#bounds.map(() => 0), total: 0, sum: 0 };
    this.#values.set(series, distribution);
    const index = this.#bounds.findIndex((bound) => value <= bound);
    if (index >= 0) distribution.counts[index] = (distribution.counts[index] ?? 0) + 1;
    distribution.total += 1;
    distribution.sum += value;
  }

  lines(): readonly string[] {
    const lines = [...heading(this.#name, this.#help, "histogram")];
    for (const [series, { counts, total, sum }] of this.#values) {
      let below = 0;
      for (const [index, bound] of this.#bounds.entries()) {
        below += counts[index] ?? 0;
        lines.push(`${this.#name}_bucket${withLabel(series, "le", number(bound))} ${below}`);
      }
      lines.push(`${this.#name}_bucket${withLabel(series, "le", "+Inf")} ${total}`);
      lines.push(`${this.#name}_sum${series} ${number(sum)}`, `${this.#name}_count${series} ${total}`);
    }
    return lines;
  }
}

function seriesOf(known: ReadonlyMap<string, unknown>, labels: Labels): string {
  let text = "";
  for (const name in labels) text += `${text === "" ? "{" : ","}${name}="${escapeLabel(labels[name] ?? "")}"`;
  const series = text === "" ? "" : `${text}}`;
  return known.size < MAX_SERIES || known.has(series) ? series : OVERFLOW;
}

function withLabel(series: string, name: string, value: string): string {
  const label = `${name}="${value}"`;
  return series === "" ? `{${label}}` : `${series.slice(0, -1)},${label}}`;
}

const NEEDS_ESCAPE = /[\\"\n]/;

function escapeLabel(value: string): string {
  if (!NEEDS_ESCAPE.test(value)) return value;
  return value.replaceAll("\\", "\\\\").replaceAll('"', '\\"').replaceAll("\n", "\\n");
}

function heading(name: string, help: string, type: string): readonly string[] {
  return [`# HELP ${name} ${help}`, `# TYPE ${name} ${type}`];
}

function number(value: number): string {
  return Number.isNaN(value) ? "NaN" : String(value);
}
