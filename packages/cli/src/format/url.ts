/** A URL for people: it may carry a password or an API key, in front of its host or in its query. */
export function withoutSecrets(url: string): string {
  return url.replace(/\/\/[^/?#]*@/g, "//***@").replace(/\?.*$/, "?***");
}
