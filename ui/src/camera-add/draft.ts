// What somebody has said so far about a camera that is to be added, and the steps of saying it.

import type { Login } from "@/api/camera";
import type { Errand, Preset } from "@/api/types";
import type { Region } from "@/display/regions";

export const STEPS = ["find", "probe", "draw", "place", "test"] as const;
export type Step = (typeof STEPS)[number];

export interface Draft extends Login {
  site: string; // empty: the oldest one
  url: string;
  sub: string;
  probe: Errand | null; // that worked
  regions: Region[];
  name: string;
  cameraId: string;
  preset: Preset | "";
}

export const EMPTY: Draft = {
  site: "",
  url: "",
  sub: "",
  user: "",
  password: "",
  probe: null,
  regions: [],
  name: "",
  cameraId: "",
  preset: "",
};

export interface StepProps {
  draft: Draft;
  onChange: (changes: Partial<Draft>) => void;
  onStep: (step: Step) => void;
}
