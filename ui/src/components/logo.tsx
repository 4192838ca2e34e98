export function Logo() {
  return (
    <span className="flex items-center gap-2 font-semibold tracking-tight">
      <img src="/favicon.svg" alt="" className="size-7" />
      {/* Beside the buttons of the header it does not fit on the narrowest screens. */}
      <span className="max-[22rem]:sr-only">camserver</span>
    </span>
  );
}
