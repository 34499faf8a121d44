// The types of the engines: what a test may ask of a real server that it started itself, and what the state
// file of `npm run engines -- up` holds. Every implementation file is checked against these declarations
// (`npx tsc -p scripts/engines`), so they cannot drift from the code.

export type EngineName = "redis" | "postgres" | "etcd" | "nats" | "mariadb" | "ceph" | "azurite" | "dynalite";

/** One operating-system process of an engine. Signals reach its descendants too (PostgreSQL's backends). */
export interface EngineProcess {
  readonly name: string;
  /** The pid of the running process, or of the last one that ran. It changes with `restart`. */
  readonly pid: number;
  readonly running: boolean;
  /** Sends the signal (default: the engine's own graceful one), waits for the end, and after 15 s kills. */
  stop(signal?: NodeJS.Signals): Promise<void>;
  /** SIGSTOP; resolves when the kernel reports every process as stopped. */
  pause(): Promise<void>;
  /** SIGCONT. */
  resume(): Promise<void>;
  /** SIGKILL; resolves when the processes are gone. */
  kill(): Promise<void>;
  /** Ends it gracefully if it runs, then starts it on the same data and ports; resolves when it answers. */
  restart(): Promise<void>;
}

export interface Engine {
  readonly name: EngineName;
  readonly version: string;
  /** The first of `urls`. */
  readonly url: string;
  readonly urls: readonly string[];
  /** What the URL cannot carry: S3 and DynamoDB keys, region and bucket; the Azure account. Empty for the others. */
  readonly credentials: Readonly<Record<string, string>>;
  readonly dataDir: string;
  /** From the first spawn to the first proven answer. */
  readonly readyMs: number;
  readonly processes: readonly EngineProcess[];
  /** The end of this engine: its processes are gone and its data is deleted. Safe to call twice. */
  stop(): Promise<void>;
  pause(): Promise<void>;
  resume(): Promise<void>;
  kill(): Promise<void>;
  restart(): Promise<void>;
}

export interface EtcdEngine extends Engine {
  /** The process of the member that all members agree is the leader; those that are down or paused are not asked. */
  leader(): Promise<EngineProcess>;
}

export interface StartOptions {
  /** Keeps the data here instead of in a fresh temp folder. The folder must not exist yet. */
  readonly dataDir?: string;
}

export interface RedisOptions extends StartOptions {
  /** Directives as on the command line, after the defaults, so they win: `["--appendfsync", "always"]`. */
  readonly flags?: readonly string[];
  /** Sets `requirepass` and puts it into the URL. */
  readonly password?: string;
}

export interface SentinelOptions extends StartOptions {
  /** The port of the primary that it looks after, under the name "primary". One Sentinel decides alone. */
  readonly primaryPort: number;
}

export interface PostgresOptions extends StartOptions {
  /** Settings as `name=value`, after the defaults: `["synchronous_commit=off"]`. */
  readonly settings?: readonly string[];
}

export interface EtcdOptions extends StartOptions {
  /** Default 3. */
  readonly members?: number;
  /** Flags that every member gets: `["--election-timeout=500", "--heartbeat-interval=50"]`. */
  readonly flags?: readonly string[];
}

export interface NatsOptions extends StartOptions {
  /** Lines of its configuration file, after the defaults: `["authorization { token: secret }"]`. */
  readonly settings?: readonly string[];
}

export interface MariadbOptions extends StartOptions {
  /** Settings as `name=value`, after the defaults: `["innodb-flush-log-at-trx-commit=2"]`. */
  readonly settings?: readonly string[];
}

export interface CephOptions extends StartOptions {
  /**
   * "memory" (default) is ready about four times sooner, but what it holds is lost when the storage process
   * (`osd`) is killed; killing and restarting only the gateway (`rgw`) loses nothing. "disk" survives `kill()`.
   */
  readonly storage?: "memory" | "disk";
}

export declare function startRedis(options?: RedisOptions): Promise<Engine>;
export declare function startRedisSentinel(options: SentinelOptions): Promise<Engine>;
export declare function startPostgres(options?: PostgresOptions): Promise<Engine>;
export declare function startEtcd(options?: EtcdOptions): Promise<EtcdEngine>;
export declare function startNats(options?: NatsOptions): Promise<Engine>;
export declare function startMariadb(options?: MariadbOptions): Promise<Engine>;
export declare function startCeph(options?: CephOptions): Promise<Engine>;
export declare function startAzurite(options?: StartOptions): Promise<Engine>;
export declare function startDynalite(options?: StartOptions): Promise<Engine>;

export interface ProxyOptions {
  readonly targetPort: number;
  /** Default 127.0.0.1. */
  readonly targetHost?: string;
}

export interface FaultProxy {
  readonly port: number;
  /** Connections of which at least one end is open. */
  readonly connections: number;
  /** Bytes from the server that `dropReplies` swallowed so far. */
  readonly droppedBytes: number;
  /** The same URL, through this proxy. */
  through(url: string): string;
  /** Requests pass, replies are swallowed, until `heal`. */
  dropReplies(): void;
  /** Resolves when the next reply is swallowed: the server has then acted on a request. */
  nextDroppedReply(): Promise<void>;
  /** New connections lead to this port, as when an address is given to another server. Open ones stay. */
  moveTo(port: number): void;
  /** Resets every open connection. New ones are accepted. */
  cut(): void;
  /** Nothing passes in either direction, connections stay; what arrives meanwhile is kept until `heal`. */
  freeze(): void;
  /** Everything passes this many milliseconds late, in order. */
  delay(delayMs: number): void;
  /**
   * Ends all faults. Connections that lost bytes are reset: a stream with a hole in it does not exist in TCP,
   * and a client would take the next reply for the lost one.
   */
  heal(): void;
  close(): Promise<void>;
}

export declare function startProxy(options: ProxyOptions): Promise<FaultProxy>;

/** A process as the state file names it; `startTicks` tells it from a later process with the same pid. */
export interface ProcessIdentity {
  readonly name: string;
  readonly pid: number;
  readonly startTicks: string;
}

export interface RunningEngineRecord {
  readonly state: "up";
  readonly name: EngineName;
  readonly version: string;
  readonly url: string;
  readonly urls: readonly string[];
  readonly credentials: Readonly<Record<string, string>>;
  readonly dataDir: string;
  readonly processes: readonly ProcessIdentity[];
  /** The process that owns the engine: its end is theirs. */
  readonly supervisor: ProcessIdentity;
  readonly secondsToReady: number;
}

export interface UnavailableEngineRecord {
  readonly state: "unavailable";
  readonly name: EngineName;
  readonly reason: string;
}

export type EngineRecord = RunningEngineRecord | UnavailableEngineRecord;

export interface EnginesState {
  readonly schema: 1;
  readonly engines: Readonly<Partial<Record<EngineName, EngineRecord>>>;
}

export declare const engineNames: readonly EngineName[];

/** Where the state file is: SOLEHOLD_ENGINES, else in SOLEHOLD_ENGINES_DIR, else in this checkout's temp folder. */
export declare function stateFilePath(): string;

/** The state file's content, without the engines whose processes are gone. Empty when there is no file. */
export declare function readLiveState(): EnginesState;
