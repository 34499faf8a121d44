/**
 * A way to a server that breaks connections in every state: while they are made, between a request and its answer, in
 * one piece with an answer, while nobody speaks.
 */
import { type AddressInfo, connect, createServer, type Socket } from "node:net";

/** What happens to the next pieces that the server sends, and to new connections. */
type Mood = "passes" | "ends with an answer" | "resets with an answer" | "swallows answers" | "refuses";

export interface Saboteur {
  /** The same URL, by this way. */
  through(url: string): string;
  /** One fault, drawn at random. */
  fault(): void;
  /** Everything passes again. What lost an answer is reset, as soon as more would arrive: TCP has no streams with a hole. */
  calm(): void;
  close(): Promise<void>;
}

export async function startSaboteur(targetPort: number): Promise<Saboteur> {
  let mood: Mood = "passes";
  const pairs = new Set<{ readonly near: Socket; readonly far: Socket; hasHole: boolean }>();
  const listener = createServer((near) => {
    near.on("error", () => undefined);
    if (mood === "refuses") return void near.resetAndDestroy();
    const far = connect(targetPort, "127.0.0.1");
    const pair = { near, far, hasHole: false };
    pairs.add(pair);
    for (const socket of [near, far]) {
      socket.on("error", () => undefined);
      socket.on("close", () => {
        near.destroy();
        far.destroy();
        pairs.delete(pair);
      });
    }
    near.on("data", (bytes) => far.write(bytes));
    far.on("data", (bytes) => {
      if (mood === "swallows answers") pair.hasHole = true;
      else if (pair.hasHole) near.resetAndDestroy();
      else if (mood === "ends with an answer") near.end(bytes);
      else if (mood === "resets with an answer") near.write(bytes, () => near.resetAndDestroy());
      else if (!near.writableEnded) near.write(bytes);
    });
  });
  await new Promise<void>((resolve) => listener.listen(0, "127.0.0.1", resolve));
  const { port } = listener.address() as AddressInfo;
  const cutSome = (): void => {
    for (const { near } of pairs) if (Math.random() < 0.5) near.resetAndDestroy();
  };
  const become = (next: Mood) => (): void => {
    mood = next;
  };
  const faults = [
    cutSome,
    become("ends with an answer"),
    become("resets with an answer"),
    become("swallows answers"),
    become("refuses"),
  ];
  return {
    through: (text) => {
      const url = new URL(text);
      url.port = String(port);
      return url.href.replace(/\/$/, text.endsWith("/") ? "/" : "");
    },
    fault: () => faults[Math.floor(Math.random() * faults.length)]?.(),
    calm: () => {
      mood = "passes";
      for (const { near, hasHole } of pairs) if (hasHole) near.resetAndDestroy();
    },
    close: () => {
      for (const { near } of pairs) near.destroy();
      return new Promise((resolve) => void listener.close(() => resolve()));
    },
  };
}
