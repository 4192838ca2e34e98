import { StrictMode } from "react";
import { createRoot } from "react-dom/client";
import { App, makeQueryClient } from "./app";
import "./i18n";
import "./styles.css";

const root = document.getElementById("root");
if (!root) throw new Error("index.html has no element named root");
createRoot(root).render(
  <StrictMode>
    <App client={makeQueryClient()} />
  </StrictMode>,
);
