import { Trash2 } from "lucide-react";
import { useState } from "react";
import { useTranslation } from "react-i18next";
import type { Camera } from "@/api/types";
import { GROUPS_MAX, type OwnGroup, withGroup } from "@/display/wall";
import { addWords } from "@/i18n/page-words";
import * as words from "@/i18n/pages/wall";
import { tell } from "@/shell/notices";
import { FormProblem, sentValues } from "./entry-page";
import { Button } from "./ui/button";
import { DialogButtons } from "./ui/dialog";
import { CheckField, Field, SelectField } from "./ui/field";

const useWords = addWords("wall", words);
const NEW = "";

interface Props {
  cameras: readonly Camera[];
  groups: readonly OwnGroup[];
  onChange: (groups: OwnGroup[]) => void;
  onClose: () => void;
}

/** Makes groups of cameras, changes and removes them. */
export default function WallGroups({ cameras, groups, onChange, onClose }: Props) {
  const { t } = useWords();
  const [name, setName] = useState(NEW);
  const group = groups.find((one) => one.name === name) ?? null;
  return (
    <div className="grid gap-4">
      <p className="text-quiet text-sm">{t("ownLead")}</p>
      {groups.length > 0 && (
        <SelectField label={t("group")} value={name} onChange={(event) => setName(event.target.value)}>
          {groups.length < GROUPS_MAX && <option value={NEW}>{t("newGroup")}</option>}
          {groups.map((one) => (
            <option key={one.name}>{one.name}</option>
          ))}
        </SelectField>
      )}
      <GroupForm key={name} {...{ cameras, groups, group, onChange, onClose }} />
    </div>
  );
}

function GroupForm({ cameras, groups, group, onChange, onClose }: Props & { group: OwnGroup | null }) {
  const { t } = useWords();
  const { t: shared } = useTranslation();
  const [chosen, setChosen] = useState<readonly string[]>(group?.cameras ?? []);
  const [isEmpty, setEmpty] = useState(false);

  function save(name: string): void {
    setEmpty(chosen.length === 0);
    if (chosen.length === 0 || !name) return;
    onChange(withGroup(groups, { name, cameras: chosen }, group?.name ?? null));
    tell({ text: t("saved", { name }) });
    onClose();
  }

  function remove(of: OwnGroup): void {
    onChange(groups.filter((one) => one.name !== of.name));
    tell({ text: t("removed", { name: of.name }), undo: () => onChange([...groups]) });
    onClose();
  }

  return (
    <form className="grid gap-4" onSubmit={(event) => save(sentValues(event).name?.trim() ?? "")}>
      <Field
        label={t("groupName")}
        name="name"
        required
        maxLength={40}
        autoComplete="off"
        defaultValue={group?.name ?? ""}
      />
      <fieldset className="grid gap-1">
        <legend className="mb-1 font-medium text-sm">{t("groupCameras")}</legend>
        <div className="grid max-h-60 gap-1.5 overflow-y-auto rounded-md border p-2">
          {cameras.map(({ camera_id, name }) => (
            <CheckField
              key={camera_id}
              label={name}
              checked={chosen.includes(camera_id)}
              onChange={(event) =>
                setChosen(event.target.checked ? [...chosen, camera_id] : chosen.filter((one) => one !== camera_id))
              }
            />
          ))}
        </div>
      </fieldset>
      {isEmpty && chosen.length === 0 && <FormProblem text={t("chooseSome")} />}
      <DialogButtons>
        {group && (
          <Button variant="danger" className="mr-auto" onClick={() => remove(group)}>
            <Trash2 aria-hidden="true" />
            {shared("action.remove")}
          </Button>
        )}
        <Button variant="outline" onClick={onClose}>
          {shared("action.cancel")}
        </Button>
        <Button type="submit">{shared("action.save")}</Button>
      </DialogButtons>
    </form>
  );
}
