class TokenStrip {
  constructor(mount) {
    this.readout = element("p", { class: "kv-readout", role: "status" });
    this.box = element("div", { class: "kv-strip", role: "listbox", "aria-label": "tokens; choose the query" });
    this.legend = element("p", { class: "kv-legend" });
    this.root = element("section", { class: "kv" }, this.readout, this.box, this.legend);
    this.box.addEventListener("click", (event) => this.pick(event.target.closest("button")));
    for (const kind of ["pointerover", "focusin"])
      this.box.addEventListener(kind, (event) => this.tell(event.target.closest("button")));
    for (const kind of ["pointerleave", "focusout"]) this.box.addEventListener(kind, () => this.tell(null));
    roam(this.box, () => 1);
    mount.append(this.root);
  }

  show({ data, setTriggerValue }) {
    Object.assign(this, { data, setTriggerValue });
    dress(this.root, `kv kv-${data.side}`);
    fit(this.box, data.tokens.length, () => element("button", { type: "button", role: "option", tabindex: -1 }));
    data.tokens.forEach((token, position) => this.drawChip(this.box.children[position], token, position));
    this.select(data.query);
    this.drawLegend();
  }

  drawChip(chip, token, position) {
    const level = this.data.levels[position];
    const [ground, ink] = level === null ? ["", ""] : this.data.shades[level];
    chip.position = position;
    chip.style.background = ground;
    chip.style.color = ink;
    write(chip, token);
    chip.setAttribute("aria-label", this.words(position));
    chip.title = this.words(position);
  }

  // What a token is to the query: read later, held with a weight, or no longer there.
  state(position) {
    const { query, weights } = this.data;
    if (query !== null && position > query) return "later";
    return weights[position] === null ? "gone" : "held";
  }

  words(position) {
    const weight = percent(this.data.weights[position]);
    const says = { later: "comes after the query", gone: "not in the cache", held: `gets ${weight}` };
    return `${this.name(position)}: ${says[this.state(position)]}`;
  }

  name(position) {
    return `${position + this.data.countFrom} ${this.data.tokens[position]}`;
  }

  select(query) {
    this.query = query;
    const chips = [...this.box.children];
    chips.forEach((chip, position) => {
      dress(chip, `kv-token kv-${this.state(position)}${position === query ? " kv-query" : ""}`);
      chip.setAttribute("aria-selected", position === query);
    });
    const focused = this.box.getRootNode().activeElement;
    rove(chips, chips.includes(focused) ? focused : (chips[query] ?? chips[0]));
    this.tell(null);
    // a fresh strip shows the text's beginning, where the sinks are
    if (this.seen !== undefined && this.seen !== query) reveal(this.box, chips[query]);
    this.seen = query;
  }

  pick(chip) {
    if (!chip) return;
    for (const one of this.box.children) one.classList.toggle("kv-query", one === chip);
    rove([...this.box.children], chip);
    this.setTriggerValue("pick", chip.position);
  }

  tell(chip) {
    const query = this.query === null ? "Choose the token that attends." : `Query ${this.name(this.query)}`;
    write(this.readout, chip ? `${query} · ${this.words(chip.position)}` : query);
  }

  drawLegend() {
    const { ticks, shades } = this.data;
    const colours = shades.map(([ground]) => ground).join(", ");
    const scale = element("span", { class: "kv-scale", style: `background: linear-gradient(to right, ${colours})` });
    this.legend.replaceChildren(
      element("span", {}, `attention weight: ${ticks[0]}`, scale, ticks.at(-1)),
      element("span", {}, element("span", { class: "kv-token kv-query" }, "query")),
      element("span", {}, element("span", { class: "kv-token kv-gone" }, "not in the cache")),
      element("span", {}, element("span", { class: "kv-token kv-later" }, "after the query")),
    );
  }
}

export default (component) => resident(component.parentElement, TokenStrip, component);
