/** A chart of some series over time. */
import { useEffect, useRef } from "preact/hooks";
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
}

const HEIGHT = 170;

export function Chart({ title, times, series }: ChartProps) {
  const box = useRef<HTMLDivElement>(null);
  const plot = useRef<uPlot | null>(null);
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
        cursor: { y: false },
        axes: [{ ...axis }, { ...axis, size: 44 }],
        scales: { y: { range: (_plot, _least, most) => [0, Math.max(1, most * 1.1)] } },
        series: [
          {},
          ...series.map(({ label, colour }) => ({
            label,
            stroke: () => colourOf(colour),
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
  const last = series.map(({ label, values }) => `${label} ${values.at(-1) ?? 0}`).join(", ");
  return (
    <figure class="panel chart">
      <figcaption>
        <h2>{title}</h2>
        <span class="visually-hidden">now: {last}</span>
      </figcaption>
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
