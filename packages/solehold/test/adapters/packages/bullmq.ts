export { type Job, Queue, Worker } from "bullmq";
