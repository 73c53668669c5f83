class LayerHeadPicker {
  constructor(mount) {
    this.readout = element("p", { class: "kv-readout", role: "status" });
    this.corner = element("div", { class: "kv-corner" });
    this.brackets = element("div", { class: "kv-brackets", "aria-hidden": "true" });
    this.grid = element("div", { class: "kv-grid", role: "grid" });
    this.legend = element("p", { class: "kv-legend" });
    this.root = element("section", { class: "kv" }, this.readout, this.brackets, this.grid, this.legend);
    this.grid.addEventListener("click", (event) => this.pick(event.target.closest("button")));
    for (const kind of ["pointerover", "focusin"])
      this.grid.addEventListener(kind, (event) => this.tell(event.target.closest("button")));
    for (const kind of ["pointerleave", "focusout"]) this.grid.addEventListener(kind, () => this.tell(this.chosen));
    roam(this.grid, () => this.heads);
    mount.append(this.root);
  }

  show({ data, setTriggerValue }) {
    Object.assign(this, { data, setTriggerValue, heads: data.values[0].length });
    this.root.style.setProperty("--heads", this.heads);
    this.grid.setAttribute("aria-label", `${data.name} by layer and head`);
    this.drawBrackets();
    fit(this.grid, data.values.length + 1, () => element("div", { class: "kv-line", role: "row" }));
    this.drawTop(this.grid.children[0]);
    data.values.forEach((values, layer) => this.drawLine(this.grid.children[layer + 1], layer, values));
    this.select(...data.selected);
    this.drawLegend();
  }

  drawBrackets() {
    const groups = this.data.kvHeads ?? 0;
    this.brackets.hidden = groups === 0 || groups === this.heads;
    fit(this.brackets, groups + 1, () => element("span"));
    const names = [...this.brackets.children].slice(1);
    names.forEach((bracket, group) => {
      write(bracket, groups > 8 ? `${group}` : `KV ${group}`);
      bracket.style.gridColumn = `span ${this.heads / groups}`;
    });
  }

  drawTop(line) {
    fit(line, this.heads + 1, () => element("span", { role: "columnheader" }));
    write(line.children[0], "layer ↓ head →");
    for (let head = 0; head < this.heads; head += 1) write(line.children[head + 1], `${head}`);
  }

  drawLine(line, layer, values) {
    if (!line.children.length) line.append(element("span", { role: "rowheader" }));
    write(line.children[0], `${layer}`);
    while (line.children.length > values.length + 1) line.lastElementChild.remove();
    while (line.children.length < values.length + 1)
      line.append(element("button", { type: "button", role: "gridcell", tabindex: -1 }));
    values.forEach((value, head) => this.drawCell(line.children[head + 1], layer, head, value));
  }

  drawCell(cell, layer, head, value) {
    const { shades } = this.data;
    const share = Math.min(Math.max(value ?? 0, 0), 1);
    const [ground, ink] = value === null ? ["transparent", "inherit"] : shades[Math.round(share * (shades.length - 1))];
    Object.assign(cell, { layer, head, value });
    cell.style.background = ground;
    cell.style.color = ink;
    write(cell, value === null ? "–" : `${Math.round(100 * value)}`);
    cell.setAttribute("aria-label", this.words(cell));
  }

  cells() {
    return [...this.grid.querySelectorAll("button")];
  }

  select(layer, head) {
    const cells = this.cells();
    this.chosen = cells.find((cell) => cell.layer === layer && cell.head === head);
    for (const cell of cells) cell.setAttribute("aria-selected", cell === this.chosen);
    // the arrows may have gone further than the choice; then the Tab stop stays where the focus is
    const focused = this.grid.getRootNode().activeElement;
    rove(cells, cells.includes(focused) ? focused : this.chosen);
    this.tell(this.chosen);
  }

  pick(cell) {
    if (!cell) return;
    this.select(cell.layer, cell.head);
    rove(this.cells(), cell);
    this.setTriggerValue("pick", [cell.layer, cell.head]);
  }

  words({ layer, head, value }) {
    const groups = this.data.kvHeads;
    const shared = groups && groups !== this.heads ? ` (KV head ${Math.floor((head * groups) / this.heads)})` : "";
    return `layer ${layer}, head ${head}${shared}: ${this.data.name} ${percent(value)}`;
  }

  tell(cell) {
    if (cell) write(this.readout, (cell === this.chosen ? "chosen: " : "") + this.words(cell));
  }

  drawLegend() {
    const colours = this.data.shades.map(([ground]) => ground).join(", ");
    const scale = element("span", { class: "kv-scale", style: `background: linear-gradient(to right, ${colours})` });
    this.legend.replaceChildren(element("span", {}, `${this.data.name} in %: 0`, scale, "100"));
  }
}

export default (component) => resident(component.parentElement, LayerHeadPicker, component);
