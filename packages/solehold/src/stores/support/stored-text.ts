export { storedFromText } from "../../store/stored-text.ts";
