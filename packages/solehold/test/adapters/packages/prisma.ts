/**
 * Prisma's client as its users have it: what `prisma generate` makes of the model below is this call and types. The
 * command itself has 300 MB and asks the network for an engine that this client does not need.
 */
import { PrismaMariaDb } from "@prisma/adapter-mariadb";
import { PrismaPg } from "@prisma/adapter-pg";
import { getPrismaClient } from "@prisma/client/runtime/client";

/** The signatures of the generated class, as far as the tests call them. */
export interface PrismaTransaction {
  $queryRaw<T = unknown>(query: TemplateStringsArray, ...values: unknown[]): Promise<T>;
  $executeRaw(query: TemplateStringsArray, ...values: unknown[]): Promise<number>;
  $queryRawUnsafe<T = unknown>(query: string, ...values: unknown[]): Promise<T>;
  readonly invoice: {
    update(args: { where: { id: number }; data: { total: number } }): Promise<{ id: number; total: number }>;
  };
}

export interface PrismaClient extends PrismaTransaction {
  $connect(): Promise<void>;
  $disconnect(): Promise<void>;
  $transaction<P extends Promise<unknown>[]>(arg: [...P], options?: TransactionOptions): Promise<unknown[]>;
  $transaction<R>(
    work: (transaction: Omit<PrismaClient, "$connect" | "$disconnect">) => Promise<R>,
    options?: TransactionOptions,
  ): Promise<R>;
}

interface TransactionOptions {
  readonly maxWait?: number;
  readonly timeout?: number;
}

const MODEL = `model Invoice {
  id    Int @id
  total Int

  @@map("invoice")
}`;

/** What the command writes beside the model: its fields, the names and, in base64, the shapes of its queries. */
const FIELDS = `{
  "models": {
    "Invoice": {
      "fields": [{ "name": "id", "kind": "scalar", "type": "Int" }, { "name": "total", "kind": "scalar", "type": "Int" }],
      "dbName": "invoice",
      "schema": null
    }
  },
  "enums": {},
  "types": {}
}`;
const QUERIES = `
where Invoice.findUnique Invoice.findUniqueOrThrow orderBy cursor Invoice.findFirst
Invoice.findFirstOrThrow Invoice.findMany data Invoice.createOne Invoice.createMany
Invoice.createManyAndReturn Invoice.updateOne Invoice.updateMany Invoice.updateManyAndReturn create
update Invoice.upsertOne Invoice.deleteOne Invoice.deleteMany having _count _avg _sum _min _max
Invoice.groupBy Invoice.aggregate AND OR NOT id total equals in notIn lt lte gt gte not set
increment decrement multiply divide`;
const SHAPES =
  "JgsQBRwAAB8AMB0AAAQAEB4AAB8AMB8CAAAAASACACAAIQEAAAABACABAAAAAQAgBRwAAB8AMB0AAAQAEB4AAB8AMB8CACAAISAC" +
  "ACAAIQADAAAABAAgAwAABQAwBAAAAQAgAwAAAAQAIAMAAAUAMAQAAAEAIAMAAAAEACADAAAFADAEAAABACACHwIAAAABIAIAAAAB" +
  "AQgAAAkAIAIfAgAAAAEgAgAAAAEBCAAACwAwAQgAAAsAMAIfAgAmACEgAgAmACECAAAAAQAgCAAADgAgAh8CACYAISACACYAIQIA" +
  "AAAEACAIAAAQACACAAAABAAgCAAAEAAgAwAAAAEAIA8AAAkAIBAAAA4AIAEAAAABACABAAAABAAgBRUAACEAIBYAACIAIBcAACUA" +
  "IBgAACQAIBkAACMAIAUcAAAaADAdAAAXABAeAAAaADAfAgAbACEgAgAbACEDAAAABAAgAwAAFgAwFAAAFwAgAwAAAAQAIAMAAAUA" +
  "MAQAAAEAIAUcAAAaADAdAAAXABAeAAAaADAfAgAbACEgAgAbACENFQAAHQAgFgAAHgAgFwAAHQAgGAAAHQAgGQAAHQAgIQIAAAAB" +
  "IgIAAAAEIwIAAAAEJAIAAAABJQIAAAABJgIAAAABJwIAAAABKAIAHAAhDRUAAB0AIBYAAB4AIBcAAB0AIBgAAB0AIBkAAB0AICEC" +
  "AAAAASICAAAABCMCAAAABCQCAAAAASUCAAAAASYCAAAAAScCAAAAASgCABwAIQghAgAAAAEiAgAAAAQjAgAAAAQkAgAAAAElAgAA" +
  "AAEmAgAAAAEnAgAAAAEoAgAdACEIIQgAAAABIggAAAAEIwgAAAAEJAgAAAABJQgAAAABJggAAAABJwgAAAABKAgAHgAhBRwAAB8A" +
  "MB0AAAQAEB4AAB8AMB8CACAAISACACAAIQghAgAAAAEiAgAAAAQjAgAAAAQkAgAAAAElAgAAAAEmAgAAAAEnAgAAAAEoAgAdACEA" +
  "AAAAAAUpAgAAAAEqAgAAAAErAgAAAAEsAgAAAAEtAgAAAAEAAAAABRUABhYABxcACBgACRkACgAAAAAABRUABhYABxcACBgACRkA" +
  "CgECAQIDAQUGAQYHAQcIAQkKAQoMAgsNAwwPAQ0RAg4SBBETARIUARMVAhoYBRsZCw";

/** Node.js has it; the types of this repository leave the browser's out. */
const { WebAssembly } = globalThis as unknown as {
  readonly WebAssembly: { readonly Module: new (bytes: Uint8Array) => object };
};

const PROVIDERS = {
  postgres: { name: "postgresql", adapter: (url: string) => new PrismaPg({ connectionString: url }) },
  mysql: { name: "mysql", adapter: (url: string) => new PrismaMariaDb(url) },
} as const;

export function prismaClient(dialect: keyof typeof PROVIDERS, url: string): PrismaClient {
  const { name, adapter } = PROVIDERS[dialect];
  const compiler = `@prisma/client/runtime/query_compiler_fast_bg.${name}`;
  const Client = getPrismaClient({
    previewFeatures: [],
    clientVersion: "7.10.0",
    engineVersion: "none",
    activeProvider: name,
    inlineSchema: `datasource db {\n  provider = "${name}"\n}\n${MODEL}\n`,
    runtimeDataModel: JSON.parse(FIELDS),
    parameterizationSchema: { strings: QUERIES.trim().split(/\s+/), graph: SHAPES },
    compilerWasm: {
      getRuntime: () => import(`${compiler}.mjs`),
      getQueryCompilerWasmModule: async () => {
        const { wasm } = await import(`${compiler}.wasm-base64.mjs`);
        return new WebAssembly.Module(Buffer.from(wasm, "base64"));
      },
      importName: "./query_compiler_fast_bg.js",
    },
  });
  return new Client({ adapter: adapter(url) }) as unknown as PrismaClient;
}
