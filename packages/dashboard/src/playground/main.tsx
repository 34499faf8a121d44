import { render } from "preact";
import "../ui/theme.css";
import "../ui/base.css";
import "./playground.css";
import { App } from "./app.tsx";

const app = document.getElementById("app") as HTMLElement;
// What the page says as long as no script runs.
app.replaceChildren();
render(<App />, app);
