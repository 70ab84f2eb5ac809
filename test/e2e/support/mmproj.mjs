// A GGUF file of an image tower, as llama.cpp's converter would write it beside a language model.
import { readFileSync } from "node:fs";
import path from "node:path";
import { read_safetensors, write_gguf } from "./gguf.mjs";

const words = [["vision_tower.encoder.layers.", "v.blk."], ["vision_tower.embeddings.patch_embedding", "v.patch_embd"],
  ["vision_tower.embeddings.class_embedding", "v.class_embd"], ["vision_tower.embeddings.position_embedding", "v.position_embd"],
  ["vision_tower.pre_layrnorm", "v.pre_ln"], ["multi_modal_projector.linear_1", "mm.0"], ["multi_modal_projector.linear_2", "mm.2"],
  ["self_attn.q_proj", "attn_q"], ["self_attn.k_proj", "attn_k"], ["self_attn.v_proj", "attn_v"], ["self_attn.out_proj", "attn_out"],
  ["layer_norm1", "ln1"], ["layer_norm2", "ln2"], ["mlp.fc1", "ffn_up"], ["mlp.fc2", "ffn_down"]];

// Of a LLaVA 1.5's folder. The last layer, which nobody reads, stays in the folder.
export function write_llava_tower(folder, file) {
  const { vision_config: vision } = JSON.parse(readFileSync(path.join(folder, "config.json"), "utf8"));
  const pictures = JSON.parse(readFileSync(path.join(folder, "preprocessor_config.json"), "utf8"));
  const layers = vision.num_hidden_layers - 1;
  const tensors = {};
  for (const [name, tensor] of Object.entries(read_safetensors(path.join(folder, "model.safetensors")))) {
    const own = words.reduce((all, [from, to]) => all.replace(from, to), name);
    if (/^(v|mm)\./.test(own) && !own.startsWith(`v.blk.${layers}.`)) tensors[own] = tensor;
  }
  write_gguf(file, {
    "general.architecture": "clip", "clip.projector_type": "mlp", "clip.vision.image_size": vision.image_size,
    "clip.vision.patch_size": vision.patch_size, "clip.vision.embedding_length": vision.hidden_size,
    "clip.vision.feed_forward_length": vision.intermediate_size, "clip.vision.block_count": layers,
    "clip.vision.attention.head_count": vision.num_attention_heads, "clip.vision.attention.layer_norm_epsilon": vision.layer_norm_eps,
    "clip.vision.image_mean": pictures.image_mean, "clip.vision.image_std": pictures.image_std,
  }, tensors);
}
