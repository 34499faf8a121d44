export function AuditView(_props: { params: unknown; who: unknown }) {
  return <main class="view" />;
}
