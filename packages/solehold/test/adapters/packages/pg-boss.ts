export { default as PgBoss } from "pg-boss";
