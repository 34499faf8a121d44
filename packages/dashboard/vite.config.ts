import { resolve } from "node:path";
import { defaultClientConditions, defineConfig } from "vite";
import { nodeForBrowser } from "./src/playground/node/vite-plugin.ts";

/** Two pages: the live views, and the playground, which also works as plain files from any host. */
export default defineConfig({
  root: import.meta.dirname,
  base: "./",
  resolve: { conditions: ["solehold-source", ...defaultClientConditions] },
  plugins: [nodeForBrowser()],
  build: {
    outDir: "dist",
    emptyOutDir: true,
    target: "es2022",
    rolldownOptions: {
      input: {
        index: resolve(import.meta.dirname, "index.html"),
        playground: resolve(import.meta.dirname, "playground.html"),
      },
    },
  },
  worker: { format: "es", plugins: () => [nodeForBrowser()] },
});
