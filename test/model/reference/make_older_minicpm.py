#!/usr/bin/env python3
"""Writes a tiny random MiniCPM-V 2.6 as OpenBMB's folders have it, and what PyTorch computes for it in float32.

    python3 make_older_minicpm.py FOLDER        (needs what make_images.py needs, beside which it lies)

transformers has no class of it: the tower is its Idefics 2's, the language model its Qwen 2, the sizes of slices those of its MiniCPM-V 4.6, and
the resampler is written here on PyTorch's attention. minicpm-v2.6/reference.json is as make_images.py has it.
"""
from make_images import *


class Resampler(torch.nn.Module):
    """MiniCPM-V's before 4.6: queries look at all patches, to whose keys sines of their columns and rows are added."""

    def __init__(self, queries, width, inputs):
        super().__init__()
        norm = lambda: torch.nn.LayerNorm(width, eps=1e-6)
        self.query = torch.nn.Parameter(torch.zeros(queries, width))
        self.kv_proj = torch.nn.Linear(inputs, width, bias=False)
        self.attn = torch.nn.MultiheadAttention(width, width // 128)
        self.ln_q, self.ln_kv, self.ln_post = norm(), norm(), norm()
        self.proj = torch.nn.Parameter(torch.zeros(width, width))

    def forward(self, x, rows, columns):
        quarter = self.query.shape[1] // 4
        omega = 10000.0 ** -(torch.arange(quarter).double() / quarter)
        y, z = torch.meshgrid(torch.arange(rows), torch.arange(columns), indexing="ij")
        turn = [p.flatten()[:, None] * omega for p in (z, y)]
        places = torch.cat([f(t) for t in turn for f in (torch.sin, torch.cos)], dim=1).float()
        x = self.ln_kv(self.kv_proj(x))
        out = self.attn(self.ln_q(self.query)[:, None], (x + places)[:, None], x[:, None])[0][:, 0]
        return self.ln_post(out) @ self.proj


def minicpm_old(out):
    """Idefics 2's tower (vpm), the resampler, Qwen 2 (llm)."""
    from transformers.models.idefics2.modeling_idefics2 import Idefics2VisionConfig, Idefics2VisionTransformer
    torch.manual_seed(29)
    d, unk, queries = out / "minicpm-v2.6", PAD, 4
    vision = dict(W, image_size=112, patch_size=14, layer_norm_eps=1e-6, hidden_act="gelu_pytorch_tanh")
    text = dict(B, hidden_size=256, num_hidden_layers=1, num_attention_heads=2, num_key_value_heads=1, head_dim=16, tie_word_embeddings=True)
    parts = {"vpm": rnd(Idefics2VisionTransformer(Idefics2VisionConfig(**vision))), "resampler": rnd(Resampler(queries, 256, 24)),
             "llm": rnd(T.Qwen2ForCausalLM(T.Qwen2Config(**text)))}
    sizes = T.MiniCPMV4_6ImageProcessor(scale_resolution=112, max_slice_nums=4)

    def vectors(tiles):
        found = []
        for px in tiles:
            rows, columns = px.shape[1] // 14, px.shape[2] // 14
            x = parts["vpm"](pixel_values=px[None], patch_attention_mask=torch.ones(1, rows, columns, dtype=torch.bool)).last_hidden_state[0]
            found.append(parts["resampler"](x, rows, columns))
        return torch.cat(found)

    def tiles_of(image):
        """Sizes by the later processor, whose squares of four patches become one; Pillow resizes."""
        size = (image.height, image.width)
        grid = sizes.get_sliced_grid(size, 4, 112)
        whole = [int(n) for n in sizes.find_best_resize(size, 112, 3.5, grid is None)]
        resized = lambda h, w: torch.tensor(list(image.resize((w, h), 3).tobytes())).reshape(h, w, 3).permute(2, 0, 1) / 127.5 - 1.0
        tiles = [resized(*whole)]
        if grid:
            h, w = [int(n) for n in sizes.get_refine_size(size, grid, 112, 3.5, True)]
            rows, columns = grid
            big = resized(h, w)
            tiles += [big[:, y * h // rows:(y + 1) * h // rows, x * w // columns:(x + 1) * w // columns] for y in range(rows) for x in range(columns)]
        return tiles, grid

    def words_for(images):
        text = ""
        for i, (tiles, grid) in enumerate(images):
            text += f"<image_id>{i}</image_id><image>" + "<unk>" * queries + "</image>"
            text += "\n".join(("<slice>" + "<unk>" * queries + "</slice>") * grid[1] for _ in range(grid[0])) if grid else ""
        return text

    @torch.no_grad()
    def told(f, ids, **facts):
        seq, margins, last = list(ids), [], None
        for _ in range(8):
            x = parts["llm"].model.embed_tokens(torch.tensor(seq))
            x[torch.tensor(seq) == unk] = f
            l = parts["llm"](inputs_embeds=x[None], use_cache=False).logits[0, -1]
            last = l if last is None else last
            top = torch.topk(l, 2).values
            margins.append(round(float(top[0] - top[1]), 4))
            seq.append(int(l.argmax()))
        r = lambda v: [round(float(n), 5) for n in v.flatten()]
        return dict(facts, input_ids=ids, image_token=unk, vectors=f.shape[0], features=r(f), last_logits=r(last), greedy=seq[len(ids):], margins=margins)

    d.mkdir(exist_ok=True)
    spelled = (out / "llava" / "tokenizer.json").read_text()
    for ours, theirs in (("<|image_start|>", "</image>"), ("<|image_end|>", "<slice>"), ("<|img_thumbnail|>", "</slice>"), ("[IMG]", "<image_id>"),
                         ("[IMG_END]", "</image_id>"), ("<|image_pad|>", "<unk>")):
        spelled = spelled.replace(f'"{ours}"', f'"{theirs}"')
    (d / "tokenizer.json").write_text(spelled)
    words = Tokenizer.from_file(str(d / "tokenizer.json"))
    with torch.no_grad():
        f = vectors([value_of(0, 56, 112), value_of(1, 84, 42)])
        cases = {"synthetic": told(f, A + [unk] * queries + words.encode("\n").ids + [unk] * queries + Z, tiles=[[56, 112], [84, 42]])}
        for what, images in (("picture", [picture()]), ("several", [picture(), photo()])):
            images = [tiles_of(image) for image in images]
            ids = words.encode("describe " + words_for(images) + " in one line").ids
            cases[what] = dict(told(vectors([t for tiles, _ in images for t in tiles]), ids), features=[])
    state = {f"{part}.{k}": v.to(torch.bfloat16).contiguous() for part, m in parts.items() for k, v in m.state_dict().items()
             if k != "lm_head.weight" and "position_ids" not in k}
    save_file(state, d / "model.safetensors", {"format": "pt"})
    config = dict(text, rms_norm_eps=1e-6, hidden_act="silu", rope_parameters={"rope_theta": 10000.0, "rope_type": "default"},
                  architectures=["MiniCPMV"], model_type="minicpmv", version=2.6, query_num=queries, image_size=112, slice_mode=True,
                  use_image_id=True, drop_vision_last_layer=False, vision_config=dict(vision, model_type="siglip", num_channels=3))
    json.dump(config, open(d / "config.json", "w"), indent=2)
    json.dump(cases, open(d / "reference.json", "w"), separators=(",", ":"))
    pictures = dict(image_processor_type="MiniCPMVImageProcessor", processor_class="MiniCPMVProcessor", max_slice_nums=4, scale_resolution=112,
                    patch_size=14, use_image_id=True, image_feature_size=queries, slice_mode=True, norm_mean=[0.5] * 3, norm_std=[0.5] * 3,
                    unk="<unk>", version=2.6)
    json.dump(pictures, open(d / "preprocessor_config.json", "w"), indent=2)
    print("ok", d.name, [c["margins"] for c in cases.values()], flush=True)


if __name__ == "__main__":
    minicpm_old(Path(sys.argv[1]))
