// Where a message is written: text, and images where the model sees.
import { button, by_id, element } from "./dom.js";

const data_url = (file) => new Promise((resolve, reject) => {
  const reader = new FileReader();
  reader.onload = () => resolve(reader.result);
  reader.onerror = () => reject(reader.error);
  reader.readAsDataURL(file);
});

export class Composer {
  #images = [];
  #sees = false;
  #text = by_id("composer-text");

  // on_send(text, images), on_stop()
  constructor(on_send, on_stop) {
    this.on_send = on_send;
    by_id("composer").addEventListener("submit", (event) => {
      event.preventDefault();
      this.#send();
    });
    this.#text.addEventListener("keydown", (event) => {
      if (event.key !== "Enter" || event.shiftKey || event.isComposing) return;
      event.preventDefault();
      this.#send();
    });
    this.#text.addEventListener("paste", (event) => this.#attach(event.clipboardData.files));
    by_id("attach-file").addEventListener("change", (event) => this.#attach(event.target.files));
    by_id("stop").addEventListener("click", on_stop);
    document.addEventListener("keydown", (event) => {
      if (event.key === "Escape" && !by_id("stop").hidden) on_stop();
    });
  }

  set_running(is_running) {
    by_id("stop").hidden = !is_running;
    by_id("send").disabled = is_running;
  }

  // Whether the model takes images.
  set_sees(sees) {
    this.#sees = sees;
    by_id("attach").hidden = !sees;
    if (!sees) this.#images = [];
    this.#show_images();
  }

  focus() { this.#text.focus(); }

  #send() {
    const text = this.#text.value;
    if (by_id("send").disabled || (text.trim() === "" && this.#images.length === 0)) return;
    const images = this.#images.splice(0);
    this.#text.value = "";
    this.#show_images();
    this.on_send(text, images);
  }

  async #attach(files) {
    if (!this.#sees) return;
    for (const file of files) if (file.type.startsWith("image/")) this.#images.push(await data_url(file));
    by_id("attach-file").value = "";
    this.#show_images();
  }

  #show_images() {
    by_id("attached").replaceChildren(...this.#images.map((url, i) => element("li", {},
      element("img", { src: url, alt: `Image ${i + 1}` }),
      button("Remove", () => { this.#images.splice(i, 1); this.#show_images(); }, { "aria-label": `Remove image ${i + 1}` }))));
  }
}
