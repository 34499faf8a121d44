export { serverGateway } from "./gateway.ts";
