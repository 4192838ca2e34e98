import { useTranslation } from "react-i18next";
import { useCameras } from "@/api/queries";
import { SelectField } from "./ui/field";

interface Props {
  value: string;
  onChange: (cameraId: string) => void;
  className?: string;
}

export function CameraSelect({ value, onChange, className }: Props) {
  const { t } = useTranslation();
  const cameras = useCameras().data?.pages.flatMap((page) => page.cameras) ?? [];
  return (
    <SelectField
      label={t("events.camera")}
      value={value}
      onChange={(event) => onChange(event.target.value)}
      {...(className ? { className } : {})}
    >
      <option value="">{t("events.any")}</option>
      {/* A camera that was removed still has its events. */}
      {value && !cameras.some((one) => one.camera_id === value) && <option>{value}</option>}
      {cameras.map((camera) => (
        <option key={camera.camera_id} value={camera.camera_id}>
          {camera.name}
        </option>
      ))}
    </SelectField>
  );
}
