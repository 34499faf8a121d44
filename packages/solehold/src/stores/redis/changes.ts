/**
 * The channel of changes, on a connection of its own: opened for the first watch, ended with the last one, and opened
 * again when it is lost.
 */
import { jittered, type Timer } from "../../env/index.ts";
import { WatchFeed } from "../support/watch-feed.ts";
import { eventOf } from "./layout.ts";
import { type LinkOptions, RedisLink } from "./link.ts";

interface Subscription {
  readonly link: RedisLink;
  heartbeat: Timer | null;
}

/** A connection on which nobody speaks may be dead, or lead to the wrong server: how long that may go unnoticed. */
const HEARTBEAT_MS = 10_000;

export function changesFeed(
  options: LinkOptions,
  channel: string,
  onHeartbeat: () => void,
): WatchFeed<Subscription> {
  const { env } = options;
  const onMessage = (_channel: string, message: string): void => {
    const event = eventOf(message);
    if (event !== null) feed.announce(event);
  };
  const beatLater = (subscription: Subscription): void => {
    const { link } = subscription;
    subscription.heartbeat = env.timer(jittered(env, HEARTBEAT_MS, 0.3), () => {
      onHeartbeat();
      const beaten = link.request((connection) => connection.call("ping", []));
      beaten.then(() => link.hasEnded || beatLater(subscription)).catch(() => link.end());
    });
  };
  const open = async (onLost: () => void): Promise<Subscription> => {
    const link = await RedisLink.open(options, { onEnd: onLost, onMessage });
    try {
      await link.request((connection) => connection.subscribe(channel));
    } catch (error) {
      link.end();
      throw error;
    }
    const subscription: Subscription = { link, heartbeat: null };
    beatLater(subscription);
    return subscription;
  };
  const close = ({ link, heartbeat }: Subscription): void => {
    heartbeat?.cancel();
    link.end();
  };
  const feed: WatchFeed<Subscription> = new WatchFeed({ env, name: "redis", open, close });
  return feed;
}
