/**
 * Resolves once no promise has more to do. In Node that is `process.nextTick`, awaited from a microtask: it runs only
 * after the whole queue of microtasks is empty, however deep its chains. A browser has no such hook; there a message to
 * oneself is the next task, and the queue of microtasks is empty before it starts.
 */
export const barrier: () => Promise<void> = typeof process === "undefined" ? messageBarrier() : nextTick;

function nextTick(): Promise<void> {
  return new Promise((resolve) => process.nextTick(resolve));
}

function messageBarrier(): () => Promise<void> {
  const { port1, port2 } = new MessageChannel();
  const waiting: (() => void)[] = [];
  port1.addEventListener("message", () => waiting.shift()?.());
  port1.start();
  return () =>
    new Promise((resolve) => {
      waiting.push(resolve);
      port2.postMessage(null);
    });
}
