export function ServerView() {
  return <main class="view" />;
}
