const SHOWN_SLOTS = 512;
const ROOMY_SLOTS = 32; // with more slots the boxes are drawn smaller
const LISTED = 16; // up to so many positions are listed one by one
const SPEEDS = [1, 2, 5, 10, 25];

class StepPlayer {
  constructor(mount) {
    this.step = null;
    this.head = 0;
    this.timer = null;
    this.speed = null;
    this.build();
    mount.append(this.root);
  }

  build() {
    this.headline = element("p", { class: "kv-headline", role: "status", "aria-live": "polite" });
    this.back = element("button", { type: "button", onclick: () => this.move(-1) }, "Back");
    this.play = element("button", { type: "button", class: "kv-play", onclick: () => this.toggle() }, "Play");
    this.next = element("button", { type: "button", onclick: () => this.move(1) }, "Next");
    this.scrub = element("input", {
      type: "range",
      min: 0,
      step: 1,
      "aria-label": "step",
      oninput: () => this.go(Number(this.scrub.value)),
    });
    this.phase = element("div", { class: "kv-phase", "aria-hidden": "true" });
    this.pace = element(
      "select",
      { "aria-label": "speed", onchange: () => (this.speed = Number(this.pace.value)) },
      ...SPEEDS.map((speed) => element("option", { value: speed }, `${speed} ${speed === 1 ? "step" : "steps"}/s`)),
    );
    this.choice = element("select", { "aria-label": "head", onchange: () => this.choose(Number(this.choice.value)) });
    this.slots = element("ol", { class: "kv-slots", "aria-label": "slots of the cache", tabindex: 0 });
    this.left = element("p", { class: "kv-left" });
    this.legend = element("div", { class: "kv-legend" });
    this.text = element("div", { class: "kv-text", role: "group", "aria-label": "the whole text", tabindex: 0 });
    this.root = element(
      "section",
      { class: "kv", tabindex: 0, "aria-label": "step player", onkeydown: (event) => this.press(event) },
      this.headline,
      element(
        "div",
        { class: "kv-controls" },
        element("span", { class: "kv-buttons" }, this.back, this.play, this.next),
        element("span", { class: "kv-scrub" }, this.scrub, this.phase),
        this.pace,
        this.choice,
      ),
      this.slots,
      this.left,
      this.legend,
      this.text,
    );
  }

  show({ data }) {
    this.pause();
    const asked = data.startStep !== this.data?.startStep;
    if (data.startHead !== this.data?.startHead) this.head = data.startHead;
    this.data = data;
    this.count = data.tokens.length;
    this.lives = unpack(data.lifetimes, this.count);
    this.head = Math.min(this.head, this.lives.length - 1);
    this.speed ??= this.count <= 32 ? 1 : 10;
    this.pace.value = this.speed;
    fit(this.choice, data.heads.length, () => element("option"));
    data.heads.forEach((name, head) => {
      write(this.choice.children[head], name);
      this.choice.children[head].value = head;
    });
    this.choice.value = this.head;
    this.choice.hidden = data.heads.length < 2;
    this.scrub.max = this.count - 1;
    this.drawPhase();
    this.drawLegend();
    this.drawText();
    this.measure();
    this.step = this.step === null || asked ? (data.startStep ?? this.firstDeparture()) : this.step;
    dress(this.root, `kv kv-${data.side}`);
    this.go(this.step);
  }

  leave() {
    this.pause();
  }

  choose(head) {
    this.head = head;
    this.measure();
    this.go(this.step);
  }

  // The room the fullest step needs is kept from the start, so that nothing below jumps.
  measure() {
    const life = this.lives[this.head];
    const change = new Int32Array(this.count + 1);
    let most = 0;
    life.forEach((end, token) => {
      change[token] += 1;
      change[Math.max(end, token)] -= 1;
    });
    change.reduce((held, more) => {
      most = Math.max(most, held + more);
      return held + more;
    }, 0);
    this.ring = this.data.ring && this.data.budget <= SHOWN_SLOTS;
    this.room = this.ring ? this.data.budget : Math.min(most, SHOWN_SLOTS);
    dress(this.slots, `kv-slots${this.room > ROOMY_SLOTS ? " kv-small" : ""}`);
    fit(this.slots, this.room, () =>
      element("li", {}, element("span", { class: "kv-number" }), element("span", { class: "kv-token" })),
    );
  }

  firstDeparture() {
    const first = this.lives[this.head].reduce((least, end) => Math.min(least, end), this.count);
    return first < this.count ? first : this.count - 1;
  }

  press(event) {
    const at = event.target;
    if (event.altKey || event.ctrlKey || event.metaKey || at.tagName === "SELECT") return;
    if (event.key === " " && at.tagName === "BUTTON") return;
    const moves = { ArrowRight: 1, ArrowLeft: -1, ArrowUp: 1, ArrowDown: -1, Home: -Infinity, End: Infinity };
    const vertical = event.key === "ArrowUp" || event.key === "ArrowDown";
    if (vertical && at !== this.scrub) return; // they scroll the page and the text
    if (event.key === " ") this.toggle();
    else if (event.key in moves) this.move(moves[event.key]);
    else return;
    event.preventDefault();
  }

  move(by) {
    this.pause();
    this.go(this.step + by);
  }

  toggle() {
    if (this.timer !== null) return this.pause();
    if (this.step >= this.count - 1) this.go(0);
    this.headline.setAttribute("aria-live", "off"); // a reader need not speak every frame
    write(this.play, "Pause");
    this.wait();
  }

  wait() {
    this.timer = setTimeout(() => {
      if (!this.root.isConnected || this.step >= this.count - 1) return this.pause();
      this.go(this.step + 1);
      this.wait();
    }, 1000 / this.speed);
  }

  pause() {
    clearTimeout(this.timer);
    this.timer = null;
    this.headline.setAttribute("aria-live", "polite");
    write(this.play, "Play");
  }

  go(step) {
    this.step = Math.min(Math.max(step, 0), this.count - 1);
    this.scrub.value = this.step;
    this.scrub.setAttribute("aria-valuetext", `step ${this.number(this.step)} of ${this.number(this.count - 1)}`);
    this.back.disabled = this.step === 0;
    this.next.disabled = this.step === this.count - 1;
    this.draw();
  }

  number(position) {
    return position + this.data.countFrom;
  }
}
