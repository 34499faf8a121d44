/** Of many rows of one height, only those that are seen are in the page; an element that left at one end comes in at the other. */
import type { ComponentChildren } from "preact";
import { useEffect, useRef, useState } from "preact/hooks";

const MARGIN_ROWS = 8;

export interface VirtualListProps<Item> {
  readonly items: readonly Item[];
  readonly rowHeight: number;
  readonly label: string;
  readonly columns: number;
  readonly header: ComponentChildren;
  readonly keyOf: (item: Item) => string;
  /** The row's cells. */
  readonly row: (item: Item) => ComponentChildren;
  /** Enter on the row, or a click anywhere in it. */
  readonly onOpen: (item: Item) => void;
}

export function VirtualList<Item>(props: VirtualListProps<Item>) {
  const { items, rowHeight } = props;
  const box = useRef<HTMLDivElement>(null);
  const [first, setFirst] = useState(0);
  const [height, setHeight] = useState(800);
  const [active, setActive] = useState<string | null>(null);

  useEffect(() => {
    const element = box.current;
    if (element === null) return undefined;
    const onScroll = (): void => {
      // Steps of several rows: between them the browser scrolls what is already there.
      const seen = Math.max(0, Math.floor(element.scrollTop / rowHeight) - MARGIN_ROWS);
      setFirst(seen - (seen % (MARGIN_ROWS / 2)));
    };
    const observer = new ResizeObserver(() => setHeight(element.clientHeight));
    element.addEventListener("scroll", onScroll, { passive: true });
    observer.observe(element);
    onScroll();
    return () => {
      element.removeEventListener("scroll", onScroll);
      observer.disconnect();
    };
  }, [rowHeight]);

  const shown = Math.ceil(height / rowHeight) + MARGIN_ROWS * 2 + MARGIN_ROWS / 2;
  const start = Math.min(first, Math.max(0, items.length - shown));
  const visible = items.slice(start, start + shown);
  const activeIndex = active === null ? -1 : items.findIndex((item) => props.keyOf(item) === active);

  const onKeyDown = (event: KeyboardEvent): void => {
    const step = STEPS[event.key]?.(Math.floor(height / rowHeight));
    if (step !== undefined && items.length > 0) {
      event.preventDefault();
      const target = Math.min(
        items.length - 1,
        Math.max(0, (activeIndex < 0 && step > 0 ? -1 : activeIndex) + step),
      );
      const item = items[target];
      if (item !== undefined) setActive(props.keyOf(item));
      scrollTo(box.current, target * rowHeight, rowHeight);
    } else if (event.key === "Enter" && event.target === box.current) {
      const item = items[activeIndex];
      if (item !== undefined) props.onOpen(item);
    }
  };

  return (
    <div
      class="table"
      role="table"
      aria-label={props.label}
      aria-rowcount={items.length + 1}
      aria-colcount={props.columns}
    >
      {props.header}
      <div
        ref={box}
        class="table-body"
        role="rowgroup"
        tabIndex={0}
        onKeyDown={onKeyDown}
        aria-label={`${props.label}: arrow keys choose, Enter opens`}
      >
        <div
          class="table-space"
          role="presentation"
          ref={(element) => setPixels(element, "height", items.length * rowHeight)}
        >
          <div
            role="presentation"
            class="table-window"
            ref={(element) => setPixels(element, "top", start * rowHeight)}
          >
            {visible.map((item, index) => (
              <div
                key={(start + index) % shown}
                class="row"
                role="row"
                aria-rowindex={start + index + 2}
                data-active={props.keyOf(item) === active}
                onClick={() => {
                  setActive(props.keyOf(item));
                  props.onOpen(item);
                }}
              >
                {props.row(item)}
              </div>
            ))}
          </div>
        </div>
      </div>
    </div>
  );
}

const STEPS: Readonly<Record<string, (page: number) => number>> = {
  ArrowDown: () => 1,
  j: () => 1,
  ArrowUp: () => -1,
  k: () => -1,
  PageDown: (page) => page,
  PageUp: (page) => -page,
  Home: () => Number.NEGATIVE_INFINITY,
  End: () => Number.POSITIVE_INFINITY,
};

/** The policy of this page forbids style attributes; setting a property is allowed. */
function setPixels(element: HTMLElement | null, property: "height" | "top", pixels: number): void {
  if (element === null) return;
  if (property === "height") element.style.height = `${pixels}px`;
  else element.style.transform = `translateY(${pixels}px)`;
}

function scrollTo(element: HTMLElement | null, top: number, rowHeight: number): void {
  if (element === null) return;
  if (top < element.scrollTop) element.scrollTop = top;
  else if (top + rowHeight > element.scrollTop + element.clientHeight)
    element.scrollTop = top + rowHeight - element.clientHeight;
}
