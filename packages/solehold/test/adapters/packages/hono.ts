export { Hono } from "hono";
