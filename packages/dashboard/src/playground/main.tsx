import { render } from "preact";
import "../ui/theme.css";
import "../ui/base.css";
import "./playground.css";
import { App } from "./app.tsx";

render(<App />, document.getElementById("app") as HTMLElement);
