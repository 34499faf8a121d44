// Plots without a library: horizontal bars in groups, and lines over a logarithmic axis. Text is black on white and
// every bar carries its value, so nothing depends on telling colours apart.
import { format } from "./table.mjs";

const COLOURS = { ours: "#1f6f8b", floor: "#8a8a8a", peer: "#d9a441", other: "#9cc5d3", limit: "#5b8c5a" };
const LEGEND = {
  ours: "Solehold",
  floor: "floor",
  peer: "peers",
  other: "parts of Solehold",
  limit: "the least above our store",
};
const FONT = 'font-family="system-ui, sans-serif" font-size="13"';
const WIDTH = 860;
const LABEL_WIDTH = 250;
const VALUE_MARGIN = 24;
const CHARACTER_WIDTH = 7.5;
const BAR_HEIGHT = 18;
const BAR_STEP = 24;
const GROUP_GAP = 42;
const TOP = 74;
const LEGEND_HEIGHT = 26;

export function escapeXml(text) {
  const names = { "&": "&amp;", "<": "&lt;", ">": "&gt;", '"': "&quot;", "'": "&apos;" };
  return String(text).replace(/[&<>"']/g, (sign) => names[sign]);
}

/**
 * `groups` are `{ title, unit, bars: [{ label, value, role, note }] }`; each group has a scale of its own, because
 * one in flight and 256 in flight have nothing to say on one axis.
 */
export function barChart({ title, subtitle, groups }) {
  const parts = [];
  let y = TOP + LEGEND_HEIGHT;
  for (const { title: groupTitle, unit, bars } of groups) {
    const largest = Math.max(...bars.map(({ value }) => value));
    const longest = Math.max(...bars.map((bar) => valueText(bar).length));
    const scale = (WIDTH - LABEL_WIDTH - VALUE_MARGIN - longest * CHARACTER_WIDTH) / largest;
    parts.push(
      text(
        16,
        y + 4,
        `${groupTitle}, ${unit}: ${unit.startsWith("ms") ? "less" : "more"} is better`,
        'font-weight="600"',
      ),
    );
    y += 16;
    for (const bar of bars) {
      const { label, value, role } = bar;
      const width = Math.max(1, value * scale);
      parts.push(text(LABEL_WIDTH - 8, y + BAR_HEIGHT - 5, label, 'text-anchor="end"'));
      parts.push(rect(LABEL_WIDTH, y, width, BAR_HEIGHT, COLOURS[role]));
      parts.push(text(LABEL_WIDTH + width + 6, y + BAR_HEIGHT - 5, valueText(bar)));
      y += BAR_STEP;
    }
    y += GROUP_GAP - 16;
  }
  const roles = [...new Set(groups.flatMap(({ bars }) => bars.map(({ role }) => role)))];
  return document({ title, subtitle, height: y, parts: [...parts, ...legend(roles)] });
}

function valueText({ value, note }) {
  return note === undefined ? format(value) : `${format(value)} (${note})`;
}

/** `lines` are `{ label, role, points: [[x, y], ...] }`; x is logarithmic, y starts at zero. */
export function lineChart({ title, subtitle, xLabel, yLabel, lines }) {
  const [left, right, top, bottom] = [80, WIDTH - 190, TOP + 10, 380];
  const points = lines.flatMap((line) => line.points);
  const xs = points.map(([x]) => Math.log10(x));
  const [least, most] = [Math.min(...xs), Math.max(...xs)];
  const highest = roundedUp(Math.max(...points.map(([, y]) => y)));
  const xOf = (x) => left + ((Math.log10(x) - least) / (most - least || 1)) * (right - left);
  const yOf = (y) => bottom - (y / highest) * (bottom - top);
  const grid = [0, 0.25, 0.5, 0.75, 1].flatMap((part) => [
    line([left, yOf(highest * part)], [right, yOf(highest * part)], "#e3e3e3"),
    text(left - 8, yOf(highest * part) + 4, format(highest * part), 'text-anchor="end"'),
  ]);
  const ticks = [...new Set(points.map(([x]) => x))].map((x) =>
    text(xOf(x), bottom + 20, x.toLocaleString("en-US"), 'text-anchor="middle"'),
  );
  const drawn = lines.flatMap(({ label, role, dash, points: own }) => {
    const path = own.map(([x, y]) => `${round(xOf(x))},${round(yOf(y))}`).join(" ");
    const [lastX, lastY] = own[own.length - 1];
    const style = dash === undefined ? "" : ` stroke-dasharray="${dash}"`;
    return [
      `<polyline points="${path}" fill="none" stroke="${COLOURS[role]}" stroke-width="2.5"${style}/>`,
      ...own.map(
        ([x, y]) => `<circle cx="${round(xOf(x))}" cy="${round(yOf(y))}" r="3.5" fill="${COLOURS[role]}"/>`,
      ),
      text(xOf(lastX) + 10, yOf(lastY) + 4, label),
    ];
  });
  const axes = [
    text((left + right) / 2, bottom + 44, xLabel, 'text-anchor="middle"'),
    text(16, top - 14, yLabel),
    line([left, bottom], [right, bottom], "#666"),
  ];
  return document({ title, subtitle, height: bottom + 62, parts: [...grid, ...ticks, ...drawn, ...axes] });
}

/** The next 1, 2 or 4 times a power of ten, so that quarters of it are short numbers. */
export function roundedUp(value) {
  const power = 10 ** Math.floor(Math.log10(value));
  return [1, 2, 4, 10].map((factor) => factor * power).find((candidate) => candidate >= value);
}

function document({ title, subtitle, height, parts }) {
  return [
    `<svg xmlns="http://www.w3.org/2000/svg" width="${WIDTH}" height="${height}" viewBox="0 0 ${WIDTH} ${height}" ${FONT}>`,
    `<title>${escapeXml(title)}</title>`,
    `<rect width="${WIDTH}" height="${height}" fill="#fff"/>`,
    text(16, 26, title, 'font-size="17" font-weight="600"'),
    text(16, 46, subtitle, 'fill="#555" font-size="12"'),
    ...parts,
    "</svg>\n",
  ].join("\n");
}

/** On a line of its own under the subtitle. */
function legend(roles) {
  return roles.flatMap((role, index) => {
    const x = 16 + 140 * index;
    return [rect(x, 58, 12, 12, COLOURS[role]), text(x + 18, 69, LEGEND[role], 'font-size="12"')];
  });
}

function text(x, y, content, attributes = "") {
  return `<text x="${round(x)}" y="${round(y)}" ${attributes}>${escapeXml(content)}</text>`;
}

function rect(x, y, width, height, fill) {
  return `<rect x="${round(x)}" y="${round(y)}" width="${round(width)}" height="${round(height)}" fill="${fill}"/>`;
}

function line([x1, y1], [x2, y2], stroke) {
  return `<line x1="${round(x1)}" y1="${round(y1)}" x2="${round(x2)}" y2="${round(y2)}" stroke="${stroke}"/>`;
}

function round(value) {
  return Math.round(value * 10) / 10;
}
