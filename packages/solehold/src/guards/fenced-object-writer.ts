/**
 * Uploads that carry the fence of their writer, and an object store that refuses older ones.
 *
 * An object is a small manifest under its name: the fence, a nonce, and the name of the content, which is
 * written first, under a name of its own, and never changed. Replacing the manifest on condition of its
 * ETag is the write; the fence is compared in the same step. The content cannot be the object itself: on
 * many servers the ETag is a hash of the content, so a zombie that read it long ago could still match when
 * the same content is there again. The nonce makes every manifest, and so its ETag, unique.
 */
import { formatFence, parseFence } from "../core/index.ts";
import { type Env, randomId, realEnv } from "../env/index.ts";
import { StoreError } from "../store/index.ts";
import type { ConditionalObjects } from "../stores/object/index.ts";
import type { Fenced } from "./fenced-resource.ts";
import { StaleFenceError } from "./stale-fence-error.ts";

export interface FencedObject {
  readonly bytes: Buffer;
  /** The newest fence that the object has seen: of its last put or raise. */
  readonly fence: bigint;
}

interface Manifest {
  readonly fence: bigint;
  readonly nonce: string;
  /** Null when the fence was raised before anything was put. */
  readonly content: string | null;
}

interface Published {
  readonly manifest: Manifest;
  readonly etag: string;
}

/** Each round follows one write of somebody else, so an honest writer needs few. */
const MAX_ROUNDS = 20;

export class FencedObjectWriter {
  readonly #objects: ConditionalObjects;
  readonly #env: Env;

  constructor(options: { readonly objects: ConditionalObjects; readonly env?: Env }) {
    this.#objects = options.objects;
    this.#env = options.env ?? realEnv;
  }

  /** Equal and newer fences than the newest seen replace the object; older ones throw StaleFenceError. */
  async put(name: string, bytes: Uint8Array, by: Fenced): Promise<void> {
    const first = await this.#look(name);
    assertNotOlder(by, first);
    const nonce = randomId(this.#env);
    const content = `${name}.content/${formatFence(by.fence)}-${nonce}`;
    await this.#upload(content, bytes);
    try {
      const replaced = await this.#publish(name, by, first, () => ({ fence: by.fence, nonce, content }));
      await this.#discard(replaced?.content ?? null);
    } catch (error) {
      if (error instanceof StaleFenceError) await this.#discard(content);
      throw error;
    }
  }

  /** From here on no older fence passes; the content stays. For a new holder, before it reads. */
  async raise(name: string, by: Fenced): Promise<void> {
    const first = await this.#look(name);
    assertNotOlder(by, first);
    if (first?.manifest.fence === by.fence) return;
    const nonce = randomId(this.#env);
    await this.#publish(name, by, first, (current) => ({
      fence: by.fence,
      nonce,
      content: current?.content ?? null,
    }));
  }

  /** The content that was published last, with its fence; null when there is none. */
  async get(name: string): Promise<FencedObject | null> {
    for (let round = 0; round < MAX_ROUNDS; round += 1) {
      const published = await this.#look(name);
      if (published === null || published.manifest.content === null) return null;
      const { object } = await this.#objects.get(published.manifest.content);
      // It may have been replaced, and its content removed, since the manifest was read.
      if (object !== null) return { bytes: object.bytes, fence: published.manifest.fence };
    }
    throw failure(`'${name}' points to content that is missing: restore it from a backup`, "not-applied");
  }

  async #discard(content: string | null): Promise<void> {
    if (content !== null) await this.#objects.remove(content).catch(() => undefined);
  }

  async #upload(content: string, bytes: Uint8Array): Promise<void> {
    const outcome = await this.#objects.putIfAbsent(content, bytes);
    if (outcome.kind !== "applied")
      throw failure(`the content '${content}' could not be uploaded: try again`, "not-applied");
  }

  /** What was replaced. An answer that leaves it open is settled by the nonce, or by writing again. */
  async #publish(
    name: string,
    by: Fenced,
    first: Published | null,
    manifestAfter: (current: Manifest | null) => Manifest,
  ): Promise<Manifest | null> {
    let current = first;
    let isOpen = false;
    for (let round = 0; round < MAX_ROUNDS; round += 1) {
      const manifest = manifestAfter(current?.manifest ?? null);
      const bytes = Buffer.from(printManifest(manifest));
      const outcome =
        current === null
          ? await this.#objects.putIfAbsent(name, bytes)
          : await this.#objects.putIfMatch(name, current.etag, bytes);
      if (outcome.kind === "applied") return current?.manifest ?? null;
      const replaced = current?.manifest ?? null;
      current = await this.#look(name);
      if (current?.manifest.nonce === manifest.nonce) return replaced;
      isOpen ||= outcome.kind === "unknown";
      if (isOpen && isOlder(by, current))
        throw failure(
          `'${name}' has a newer fence now, and perhaps had this content before: stop`,
          "unknown",
        );
      assertNotOlder(by, current);
    }
    throw failure(`'${name}' changed ${MAX_ROUNDS} times while it was written: try again`, "unknown");
  }

  async #look(name: string): Promise<Published | null> {
    const { object } = await this.#objects.get(name);
    if (object === null) return null;
    const manifest = parseManifest(object.bytes.toString("utf8"));
    if (manifest !== null) return { manifest, etag: object.etag };
    throw failure(`'${name}' was not written by a FencedObjectWriter: use another name`, "not-applied");
  }
}

function isOlder(by: Fenced, published: Published | null): published is Published {
  return published !== null && by.fence < published.manifest.fence;
}

function assertNotOlder(by: Fenced, published: Published | null): void {
  if (isOlder(by, published)) throw new StaleFenceError(by.key, by.fence, published.manifest.fence);
}

function printManifest({ fence, nonce, content }: Manifest): string {
  return `${JSON.stringify({ solehold_fence: formatFence(fence), nonce, content })}\n`;
}

function parseManifest(text: string): Manifest | null {
  try {
    const fields = JSON.parse(text) as { solehold_fence?: unknown; nonce?: unknown; content?: unknown };
    const fence = parseFence(String(fields.solehold_fence));
    const { nonce, content } = fields;
    if (fence === null || typeof nonce !== "string") return null;
    if (content !== null && typeof content !== "string") return null;
    return { fence, nonce, content };
  } catch {
    return null;
  }
}

function failure(message: string, outcome: StoreError["outcome"]): StoreError {
  return new StoreError(outcome === "unknown" ? "timeout" : "internal", message, { outcome });
}
