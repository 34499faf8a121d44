// A man in the middle: passes everything on to a real server, and replaces one text in its answers.
import { createServer, request } from "node:http";
import type { AddressInfo } from "node:net";
import { onTestFinished } from "vitest";
import { startServer } from "./server-process.ts";

/** The URL of a server whose answers say `hostile` where they should say `placeholder`. */
export async function startHostileServer(placeholder: string, hostile: string): Promise<string> {
  let target = "";
  // In JSON, as a hostile server would write it.
  const written = JSON.stringify(hostile).slice(1, -1);
  const proxy = createServer((incoming, outgoing) => {
    const { connection: _connection, upgrade: _upgrade, ...headers } = incoming.headers;
    const onward = request(new URL(incoming.url ?? "/", target), { method: incoming.method, headers });
    onward.on("response", (answer) => {
      const { "content-length": _length, ...rest } = answer.headers;
      outgoing.writeHead(answer.statusCode ?? 500, rest);
      answer.setEncoding("utf8").on("data", (text: string) => {
        outgoing.write(text.replaceAll(placeholder, written));
      });
      answer.on("end", () => outgoing.end());
      outgoing.on("close", () => answer.destroy());
    });
    onward.on("error", () => outgoing.destroy());
    incoming.pipe(onward);
  });
  await new Promise<void>((resolve) => proxy.listen(0, "127.0.0.1", resolve));
  const url = `http://127.0.0.1:${(proxy.address() as AddressInfo).port}`;
  const server = await startServer(["--advertise-url", url]);
  target = server.url;
  onTestFinished(async () => {
    proxy.closeAllConnections();
    proxy.close();
    await server.stop();
  });
  return url;
}
