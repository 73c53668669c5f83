// How the player draws one step; every method writes only what has changed.
Object.assign(StepPlayer.prototype, {
  draw() {
    const life = this.lives[this.head];
    const held = [];
    const gone = [];
    for (let token = 0; token <= this.step; token += 1) {
      if (life[token] > this.step) held.push(token);
      if (life[token] === this.step) gone.push(token);
    }
    this.drawHeadline(held, gone);
    if (this.ring) this.drawRing(held, gone);
    else this.drawRow(held);
    this.drawLeft(gone, held.length);
    this.markText(life);
  },

  drawHeadline(held, gone) {
    const say = (tokens) => tokens.map((token) => this.number(token)).join(", ");
    const left = gone.length <= LISTED ? say(gone) : `${gone.length} tokens`;
    const parts = [
      `Step ${this.number(this.step)}`,
      `cache ${ranges(held.map((token) => this.number(token)))}`,
      `entered ${this.number(this.step)}`,
      `evicted ${left || "none"}`,
    ];
    write(this.headline, parts.join(" · "));
  },

  drawRow(held) {
    const shown = held.slice(-this.room);
    for (let slot = 0; slot < this.room; slot += 1) this.drawSlot(slot, shown[slot], null);
    reveal(this.slots, this.slots.children[shown.length - 1]);
  },

  drawRing(held, gone) {
    const lying = new Map(held.map((token) => [this.number(token) % this.room, token]));
    const before = new Map(gone.map((token) => [this.number(token) % this.room, token]));
    for (let slot = 0; slot < this.room; slot += 1) this.drawSlot(slot, lying.get(slot), before.get(slot));
  },

  drawSlot(slot, token, former) {
    const box = this.slots.children[slot];
    const [number, text] = box.children;
    const place = this.ring ? `slot ${slot}: ` : "";
    if (token === undefined) {
      dress(box, "kv-slot kv-empty");
      write(number, place.slice(0, -2));
      write(text, "");
    } else {
      const role = this.roleOf(token, this.step);
      dress(box, `kv-slot${role ? ` kv-role-${role}` : ""}${token === this.step ? " kv-entered" : ""}`);
      write(number, `${place}${this.number(token)}`);
      write(text, this.data.tokens[token]);
    }
    this.drawFormer(box, former);
  },

  // In a ring the newcomer overwrites: the former holder stays readable, struck through.
  drawFormer(box, former) {
    const line = box.children[2];
    if (former === undefined || former === null) line?.remove();
    else write(line ?? box.appendChild(element("s", { class: "kv-former" })), this.name(former));
  },

  drawLeft(gone, held) {
    const most = 24;
    const shown = gone.slice(0, most).map((token) => element("s", { class: "kv-chip" }, this.name(token)));
    const more = gone.length > most ? [` and ${gone.length - most} more`] : [];
    const of = this.data.budget ? ` of at most ${this.data.budget}` : "";
    const hidden = !this.ring && held > this.room ? `, the latest ${this.room} shown` : "";
    const count = `${held}${of} ${held === 1 && !of ? "token" : "tokens"} in the cache${hidden}`;
    const chips = gone.length ? shown : ["nothing"];
    this.left.replaceChildren(element("span", { class: "kv-quiet" }, "evicted at this step: "), ...chips, ...more);
    this.left.append(element("span", { class: "kv-quiet kv-count" }, count));
  },

  drawText() {
    fit(this.text, this.count, () => element("span"));
    this.data.tokens.forEach((token, position) => {
      write(this.text.children[position], token);
      this.text.children[position].title = `${this.number(position)} ${token}`;
    });
  },

  markText(life) {
    for (let token = 0; token < this.count; token += 1) {
      const role = this.roleOf(token, this.step);
      const state = token > this.step ? "kv-later" : life[token] > this.step ? `kv-held kv-role-${role}` : "kv-gone";
      dress(this.text.children[token], token === this.step ? "kv-held kv-entered" : state);
    }
    reveal(this.text, this.text.children[this.step]);
  },

  drawPhase() {
    const prompt = this.data.promptTokens;
    this.phase.hidden = !prompt || prompt >= this.count;
    fit(this.phase, 2, () => element("span"));
    if (this.phase.hidden) return;
    this.phase.style.gridTemplateColumns = `${prompt}fr ${this.count - prompt}fr`;
    write(this.phase.children[0], "prompt");
    write(this.phase.children[1], "after the prompt");
  },

  drawLegend() {
    const codes = new Set((this.data.roles ?? []).flatMap((life) => life.filter((_, place) => place % 2)));
    const roles = [...codes].filter(Boolean).sort();
    const entries = roles.map((code) => [`kv-role-${code}`, this.data.roleLabels[code - 1]]);
    if (!roles.length) entries.push(["kv-held", "in the cache"]);
    entries.unshift(["kv-entered", "entered now"]);
    entries.push(["kv-gone", "evicted"], ["kv-later", "not yet read"]);
    const made = entries.map(([kind, label]) =>
      element("span", {}, element("span", { class: `kv-key ${kind}` }, kind === "kv-gone" ? "a" : ""), ` ${label}`),
    );
    this.legend.replaceChildren(...made);
  },

  name(token) {
    return `${this.number(token)} ${this.data.tokens[token]}`;
  },

  // The code of the role a token has at a step; 0 where roles are not known.
  roleOf(token, step) {
    const life = this.data.roles?.[token];
    let role = 0;
    for (let place = 0; life && place < life.length && life[place] <= step; place += 2) role = life[place + 1];
    return role;
  },
});

// base64 of little-endian 16-bit numbers → one array of lifetimes per head
const unpack = (base64, count) => {
  const bytes = Uint8Array.from(atob(base64), (sign) => sign.charCodeAt(0));
  const view = new DataView(bytes.buffer);
  const numbers = Array.from({ length: bytes.length / 2 }, (_, place) => view.getUint16(2 * place, true));
  return Array.from({ length: numbers.length / count }, (_, head) => numbers.slice(head * count, (head + 1) * count));
};

// [5, 6, 7, 8] one by one when they are few, otherwise as runs: [0–3, 140–199] (64 tokens)
const ranges = (numbers) => {
  if (numbers.length <= LISTED) return `[${numbers.join(", ")}]`;
  const runs = [];
  for (const number of numbers) {
    if (runs.length && runs.at(-1)[1] === number - 1) runs.at(-1)[1] = number;
    else runs.push([number, number]);
  }
  const texts = runs.slice(0, 8).map(([first, last]) => (first === last ? `${first}` : `${first}–${last}`));
  return `[${texts.join(", ")}${runs.length > 8 ? ", …" : ""}] (${numbers.length} tokens)`;
};

export default (component) => resident(component.parentElement, StepPlayer, component);
