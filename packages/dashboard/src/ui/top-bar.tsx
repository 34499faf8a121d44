/** The bar above every page: the name, the views, and what belongs to the page. */
import type { ComponentChildren } from "preact";

export interface TopLink {
  readonly href: string;
  readonly label: string;
  readonly isCurrent: boolean;
}

export function TopBar(props: { home: string; links: readonly TopLink[]; children?: ComponentChildren }) {
  return (
    <header class="top">
      <a class="brand" href={props.home}>
        <svg viewBox="0 0 20 20" width="20" height="20" aria-hidden="true">
          <circle cx="10" cy="10" r="8" class="brand-ring" />
          <circle cx="10" cy="10" r="3.4" class="brand-dot" />
        </svg>
        Solehold
      </a>
      <nav aria-label="Views">
        {props.links.map(({ href, label, isCurrent }) => (
          <a key={label} href={href} aria-current={isCurrent ? "page" : undefined}>
            {label}
          </a>
        ))}
      </nav>
      {props.children}
    </header>
  );
}
