import { type ClassValue, clsx } from "clsx";
import { twMerge } from "tailwind-merge";

/** Class names joined; of two that contradict each other the later one stays. */
export const cn = (...classes: ClassValue[]) => twMerge(clsx(classes));
