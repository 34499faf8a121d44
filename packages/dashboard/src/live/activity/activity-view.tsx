export function ActivityView(_props: { who: unknown }) {
  return <main class="view" />;
}
