import { render } from "preact";

render(<h1>Solehold</h1>, document.getElementById("app") as HTMLElement);
