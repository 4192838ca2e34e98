import { useSyncExternalStore } from "react";
import { currentTheme, onTheme } from "@/display/theme";

export const useTheme = () => useSyncExternalStore(onTheme, currentTheme);
