// Conversations in the browser's IndexedDB. Where it has none (a private window of some browsers), they last as long as the page.

const kStore = "conversations";
const settled = (request) => new Promise((resolve, reject) => {
  request.onsuccess = () => resolve(request.result);
  request.onerror = () => reject(request.error);
});

function open() {
  const request = indexedDB.open("braid", 1);
  request.onupgradeneeded = () => request.result.createObjectStore(kStore, { keyPath: "id" });
  return settled(request);
}

class Memory {
  #kept = new Map();
  async all() { return [...this.#kept.values()]; }
  async put(conversation) { this.#kept.set(conversation.id, structuredClone(conversation)); }
  async remove(id) { this.#kept.delete(id); }
}

class Database {
  #database;
  constructor(database) { this.#database = database; }
  #store(mode) { return this.#database.transaction(kStore, mode).objectStore(kStore); }
  async all() { return settled(this.#store("readonly").getAll()); }
  async put(conversation) { await settled(this.#store("readwrite").put(conversation)); }
  async remove(id) { await settled(this.#store("readwrite").delete(id)); }
}

export async function open_store() {
  try {
    return new Database(await open());
  } catch {
    return new Memory();
  }
}
