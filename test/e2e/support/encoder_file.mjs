// A GGUF file of a BERT, as llama.cpp's converter would write it of its folder.
import { readFileSync } from "node:fs";
import path from "node:path";
import { read_safetensors, write_gguf } from "./gguf.mjs";

const words = [[/^bert\./, ""], ["embeddings.word_embeddings", "token_embd"], ["embeddings.position_embeddings", "position_embd"],
  ["embeddings.token_type_embeddings", "token_types"], ["embeddings.LayerNorm", "token_embd_norm"], ["encoder.layer.", "blk."],
  ["attention.self.query", "attn_q"], ["attention.self.key", "attn_k"], ["attention.self.value", "attn_v"],
  ["attention.output.dense", "attn_output"], ["attention.output.LayerNorm", "attn_output_norm"], ["intermediate.dense", "ffn_up"],
  ["output.dense", "ffn_down"], ["output.LayerNorm", "layer_output_norm"], ["pooler.dense", "cls"], [/^classifier/, "cls.output"]];

// A token that begins a word is spelt with U+2581 before it, and one that goes on without its "##".
function spell(token, is_control) {
  if (is_control) return token;
  return token.startsWith("##") ? token.slice(2) : `\u2581${token}`;
}

function read_tokens(folder, rows) {
  const { model, added_tokens: added } = JSON.parse(readFileSync(path.join(folder, "tokenizer.json"), "utf8"));
  const control = new Set(added.filter(({ special }) => special).map(({ id }) => id));
  const tokens = Array.from({ length: rows }, (_, id) => `[PAD${id}]`);
  const types = new Int32Array(rows).fill(5);  // unused
  for (const [token, id] of Object.entries(model.vocab)) {
    tokens[id] = spell(token, control.has(id));
    types[id] = control.has(id) ? 3 : 1;
  }
  const id_of = (text) => model.vocab[text];
  return { tokens, types, id_of };
}

// `pooling`: 0 none, 1 the mean, 2 the first token, 4 a reranker's head, which the folder has then.
export function write_bert_file(folder, file, pooling) {
  const config = JSON.parse(readFileSync(path.join(folder, "config.json"), "utf8"));
  const { tokens, types, id_of } = read_tokens(folder, config.vocab_size);
  const tensors = {};
  for (const [name, tensor] of Object.entries(read_safetensors(path.join(folder, "model.safetensors")))) {
    const own = words.reduce((all, [from, to]) => all.replace(from, to), name);
    if (pooling === 4 || !own.startsWith("cls")) tensors[own] = tensor;
  }
  write_gguf(file, {
    "general.architecture": "bert", "general.name": "converted", "bert.context_length": config.max_position_embeddings,
    "bert.embedding_length": config.hidden_size, "bert.feed_forward_length": config.intermediate_size,
    "bert.block_count": config.num_hidden_layers, "bert.attention.head_count": config.num_attention_heads,
    "bert.attention.layer_norm_epsilon": config.layer_norm_eps, "bert.attention.causal": false, "bert.pooling_type": pooling,
    ...(pooling === 4 && { "bert.classifier.output_labels": Object.values(config.id2label) }),
    "tokenizer.ggml.model": "bert", "tokenizer.ggml.pre": "default", "tokenizer.ggml.tokens": tokens, "tokenizer.ggml.token_type": types,
    "tokenizer.ggml.cls_token_id": id_of("[CLS]"), "tokenizer.ggml.seperator_token_id": id_of("[SEP]"),
    "tokenizer.ggml.unknown_token_id": id_of("[UNK]"), "tokenizer.ggml.padding_token_id": id_of("[PAD]"),
    "tokenizer.ggml.mask_token_id": id_of("[MASK]"),
  }, tensors);
}
