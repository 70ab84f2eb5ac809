// The commands that documents show: found in them, with what stands for names that are nobody's, and why those are not run that are not.
import { readFileSync, readdirSync } from "node:fs";
import { join } from "node:path";
import { sourceFolder } from "./processes.mjs";

const folder = join(sourceFolder, "docs");
export const documents = Object.fromEntries([["README.md", readFileSync(join(sourceFolder, "README.md"), "utf8")],
  ...readdirSync(folder).filter((name) => name.endsWith(".md")).map((name) => [name, readFileSync(join(folder, name), "utf8")])]);

const kPrograms = ["aider", "apt", "apt-get", "braid", "braid-rank", "caddy", "chmod", "chown", "claude", "cline", "cmake", "cn", "codex", "ctest", "curl",
  "docker", "eval", "export", "git", "haproxy", "journalctl", "kill", "kubectl", "ldd", "logrotate", "mpirun", "nginx", "node", "npm", "npx", "ollama",
  "openssl", "opencode", "pip", "printf", "promtool", "python3", "redis-cli", "redis-server", "ssh", "sudo", "systemctl", "systemd-analyze"];
const program_of = (command) => command.replace(/^(?:[A-Z_]+=\S+ +)+/, "").split(/\s/)[0];
const is_command = (text) => kPrograms.includes(program_of(text)) || /^(?:\.\/|build\/|example\/|perf\/|scripts\/)/.test(text);
const without_remark = (line) => line.replace(/ {2,}#.*$/, "");

// Blocks and lines in the order of a document: { kind, script }.
export function steps_of(text) {
  const steps = [];
  for (const [, language, block, lines] of text.matchAll(/^```(\w*)\n([^]*?)^```$|((?:^ {4}\S.*\n(?:^ {5,}.*\n)*)+)/gm)) {
    if (language === "sh" || language === "js") steps.push({ kind: language, script: block });
    const plain = lines ? lines.split(/\n(?= {4}\S)/).map((line) => line.replace(/^ {4}/, "").trimEnd()) : language === "" ? block.split("\n") : [];
    for (const line of plain.filter(is_command)) steps.push({ kind: "sh", script: without_remark(line) });
  }
  return steps;
}

// Commands within sentences and tables, each once.
export function sentences_of(text) {
  const prose = text.replace(/^```[^]*?^```$|^ {4}\S.*$/gm, "");
  return new Set([...prose.matchAll(/`([^`\n]+)`/g)].map(([, words]) => words).filter((words) => words.includes(" ") && is_command(words)));
}

// What a test runs for those, in this order: one command or several. What only names a command of braid ("braid key") has an empty list.
export const sentences = {
  "README.md": {
    "scripts/api-reference FILE": `python3 ${sourceFolder}/scripts/api-reference api.md`,
    "braid convert FOLDER OUT.gguf": "braid convert folder converted.gguf",
    "braid quantize IN OUT.gguf --type q4_k_m": "braid quantize model.gguf small.gguf --type q4_k_m --allow-requantize",
    "braid split IN STEM --max-size 5G": "braid split model.gguf part --max-size 20M",
    "braid merge FIRST OUT.gguf": "braid merge part-00001-of-00002.gguf whole.gguf",
    "braid serve": [], "braid serve --help": "braid serve --help", "braid config init": "braid config init braid.yaml",
  },
  "adding-a-family.md": { "braid convert": [] },
  "architecture.md": { "braid convert": [] },
  "configuration.md": { "braid serve": [], "braid serve --help": "braid serve --help", "braid config check": [] },
  "images.md": { "braid run MODEL \"What is this? picture.png\"": "braid run eyes \"What is this? picture.png\"" },
  "models.md": { "braid convert FOLDER OUT.gguf": "braid convert folder converted.gguf", "braid info": [] },
  "networks.md": { "braid serve FOLDER": "braid serve policy", "braid serve model.gguf policy/ value/": "braid serve model.gguf policy/ value/" },
  "registry.md": {
    "braid pull NAME": ["braid pull demo:1b", "braid pull hf.co/owner/name:Q4_K_M"], "braid key": "braid key", "braid list [PART]": ["braid list", "braid list dem"],
    "braid show NAME": ["braid show demo:1b", "braid show demo:1b --modelfile"], "braid create NAME -f Modelfile": "braid create fox -f Modelfile",
    "braid run NAME": "braid run fox 'What is 17 + 25?'", "braid ps": "braid ps", "braid stop NAME...": "braid stop fox", "braid status": "braid status",
    "braid cp OLD NEW": "braid cp fox $REGISTRY/me/fox", "braid cp": [], "braid push NAME": "braid push --insecure http://$REGISTRY/me/fox",
    "braid rm NAME...": "braid rm fox $REGISTRY/me/fox", "braid completion bash": "braid completion bash", "eval \"$(braid completion bash)\"": "eval \"$(braid completion bash)\"",
  },
  "scaling.md": {
    "braid plan": [], "braid bench": [], "braid launch --ranks N [--hostfile FILE] serve MODEL …": "braid launch --ranks 2 serve model.gguf --threads 2",
    "braid plan MODEL --hosts 8 --bandwidth 1.25GB --latency 50 --memory-bandwidth 100GB": "braid plan model.gguf --hosts 8 --bandwidth 1.25GB --latency 50 --memory-bandwidth 100GB",
  },
  "security.md": { "braid key": [], "braid run": [] },
  "vectors.md": { "braid info FOLDER": "braid info encoder", "braid serve FOLDER_OR_FILE": "braid serve encoder",
    "braid bench serve --endpoint embeddings --batch-size 16": "braid bench serve --endpoint embeddings --batch-size 16 --num-prompts 16 --input-len 8" },
};

const kBare = "scripts/check-distribution does this in a bare system";
const kArm = "scripts/check-aarch64 does this";
const kInstalled = "test/e2e/installed.sh reads it here and runs it";

// Why a command is not run where the document is tried.
export const elsewhere = {
  "README.md": {
    "scripts/demo": kBare, "scripts/test": kBare, "scripts/install-deps": kBare,
    "cmake --preset release -DBRAID_TESTS=OFF -DBRAID_BENCH=OFF && cmake --build --preset release": kBare,
    "sudo cmake --install build/release": "test/e2e/installed.sh installs into a folder",
    "scripts/install-deps package && cmake --build build/release --target package": kBare,
    "sudo apt install ./build/release/braid_0.1.0_amd64.deb && sudo systemctl enable --now braid.socket braid.service": kBare,
    "systemctl restart braid": "scripts/check-service does it in a booted system",
  },
  "adding-a-family.md": {
    "python3 make_folders.py FOLDER gemma3n": "it needs torch and transformers",
    "build/release/test/model/test_model --gtest_filter='*gemma3n*'": "CTest runs each of these tests",
  },
  "agents.md": {
    "export OPENAI_API_BASE=http://127.0.0.1:8000/v1 OPENAI_API_KEY=none": "test/e2e/agents_test.mjs sends aider's requests; aider is Python's",
    "aider --model openai/braid-demo --no-show-model-warnings": "as above",
  },
  "clients.md": { "braid serve --ollama": "its port is fixed, and may be another program's" },
  "library.md": {
    "cmake --preset release && cmake --build --preset release": "it is how this was built",
    "cmake --install build/release --component library --prefix /opt/braid": kInstalled,
    "cmake -S docs/library -B example -DCMAKE_PREFIX_PATH=/opt/braid -DCMAKE_BUILD_TYPE=Release && cmake --build example": kInstalled,
    "example/example model.gguf": kInstalled, "scripts/install-deps build": kBare,
  },
  "operations.md": { "systemctl status": "scripts/check-service does it in a booted system" },
  "porting.md": { "cmake --preset aarch64": kArm, "cmake --build --preset aarch64": kArm, "scripts/check-aarch64 build/release/braid": "CTest has it, as distribution.aarch64" },
  "scaling.md": { "cmake --install build --component ranks": "test/e2e/installed.sh installs it into a folder" },
  "security.md": {
    "chown root:braid /etc/braid/keys && chmod 0640 /etc/braid/keys": "scripts/check-service reads it here and runs it in a booted system",
    "systemd-analyze security": "test/e2e/deploy_test.mjs asks it",
  },
};
