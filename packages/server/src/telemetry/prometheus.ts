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

/** One line of a counter. Whoever counts often keeps it: finding it by its labels costs more than counting. */
export interface Count {
  value: number;
}

export class Counter implements Metric {
  readonly #name: string;
  readonly #help: string;
  readonly #counts = new Map<string, Count>();

  constructor(name: string, help: string) {
    this.#name = name;
    this.#help = help;
  }

  add(labels: Labels = {}, by = 1): void {
    this.with(labels).value += by;
  }

  with(labels: Labels): Count {
    const series = seriesOf(this.#counts, labels);
    const count = this.#counts.get(series) ?? { value: 0 };
    this.#counts.set(series, count);
    return count;
  }

  lines(): readonly string[] {
    const values = [...this.#counts].map(([series, { value }]) => `${this.#name}${series} ${number(value)}`);
    return [...heading(this.#name, this.#help, "counter"), ...values];
  }
}

/** The observations of one combination of labels. */
export class Distribution {
  readonly #bounds: readonly number[];
  /** One per bound, not cumulative. */
  readonly counts: number[];
  total = 0;
  sum = 0;

  constructor(bounds: readonly number[]) {
    this.#bounds = bounds;
    this.counts = bounds.map(() => 0);
  }

  observe(value: number): void {
    const bounds = this.#bounds;
    for (let index = 0; index < bounds.length; index += 1) {
      if (value <= (bounds[index] ?? Number.NaN)) {
        this.counts[index] = (this.counts[index] ?? 0) + 1;
        break;
      }
    }
    this.total += 1;
    this.sum += value;
  }
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
    this.with(labels).observe(value);
  }

  with(labels: Labels): Distribution {
    const series = seriesOf(this.#values, labels);
    const distribution = this.#values.get(series) ?? new Distribution(this.#bounds);
    this.#values.set(series, distribution);
    return distribution;
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
