/** A chart of some series over time. */
import { useEffect, useRef, useState } from "preact/hooks";
import uPlot from "uplot";
import "uplot/dist/uPlot.min.css";

export interface Series {
  readonly label: string;
  /** The name of a colour of the theme. */
  readonly colour: "accent" | "good" | "warn" | "bad" | "muted";
  readonly values: readonly (number | null)[];
}

export interface ChartProps {
  readonly title: string;
  readonly times: readonly number[];
  readonly series: readonly Series[];
  readonly unit?: string;
}

const HEIGHT = 170;

const TIME = new Intl.DateTimeFormat(undefined, { hour: "2-digit", minute: "2-digit", hour12: false });

export function Chart({ title, times, series, unit = "" }: ChartProps) {
  const box = useRef<HTMLDivElement>(null);
  const plot = useRef<uPlot | null>(null);
  /** The point under the pointer; null for the last one. */
  const [pointed, setPointed] = useState<number | null>(null);
  const labels = series.map(({ label, colour }) => `${label}:${colour}`).join();
  useEffect(() => {
    const element = box.current;
    if (element === null) return undefined;
    const axis = {
      stroke: () => colourOf("muted"),
      grid: { stroke: () => colourOf("line"), width: 1 },
      ticks: { show: false },
    };
    const made = new uPlot(
      {
        width: element.clientWidth,
        height: HEIGHT,
        // The last label of the time stands half beyond the end.
        padding: [8, 20, 0, 0],
        cursor: { y: false },
        legend: { show: false },
        hooks: { setCursor: [({ cursor }) => setPointed(cursor.idx ?? null)] },
        axes: [
          {
            ...axis,
            size: 30,
            values: (_plot, ticks) => ticks.map((seconds) => TIME.format(seconds * 1_000)),
          },
          { ...axis, size: 44 },
        ],
        scales: { y: { range: (_plot, _least, most) => [0, Math.max(1, most * 1.1)] } },
        series: [
          {},
          ...series.map(({ label, colour }) => ({
            label,
            stroke: () => colourOf(colour),
            ...(colour === "accent" ? { fill: () => colourOf("accent-soft") } : {}),
            width: 1.75,
            points: { show: false },
          })),
        ],
      },
      dataOf(times, series),
      element,
    );
    plot.current = made;
    const observer = new ResizeObserver(() => made.setSize({ width: element.clientWidth, height: HEIGHT }));
    observer.observe(element);
    const scheme = matchMedia("(prefers-color-scheme: dark)");
    const redraw = (): void => made.redraw();
    scheme.addEventListener("change", redraw);
    return () => {
      observer.disconnect();
      scheme.removeEventListener("change", redraw);
      made.destroy();
    };
  }, [labels]);
  useEffect(() => plot.current?.setData(dataOf(times, series)), [times, series]);
  const index = pointed ?? times.length - 1;
  const at = times[index];
  return (
    <figure class="panel chart">
      <figcaption>
        <h2>{title}</h2>
        <span class="muted numeric">{at === undefined ? "" : TIME.format(at)}</span>
      </figcaption>
      <ul class="legend">
        {series.map(({ label, colour, values }) => (
          <li key={label}>
            <i data-colour={colour} />
            <b class="numeric">
              {values[index] ?? "–"}
              {values[index] === null ? "" : unit}
            </b>{" "}
            {label}
          </li>
        ))}
        {series.length === 0 && <li>none in the last hour</li>}
      </ul>
      <div ref={box} />
    </figure>
  );
}

function dataOf(times: readonly number[], series: readonly Series[]): uPlot.AlignedData {
  return [times.map((ms) => ms / 1_000), ...series.map(({ values }) => [...values])];
}

/** A canvas knows no custom properties, and none of light-dark(): the browser resolves it. */
function colourOf(name: string): string {
  const probe = document.createElement("i");
  probe.style.color = `var(--${name})`;
  document.body.append(probe);
  const { color } = getComputedStyle(probe);
  probe.remove();
  return color;
}
