#!/usr/bin/env python3
"""Writes tiny random models that see as folders, and what transformers computes for them in float32.

    python3 make_images.py FOLDER [FUNCTION...]   (needs torch, transformers 5, tokenizers, safetensors and Pillow; without names all of them)
    python3 make_images.py FOLDER again           then, of those there, the pictures that a server is asked about in other words
    python3 make_images.py FOLDER files           then, of some, picture.png and photo.jpg in one prompt, through the whole processor

<name>/config.json, model.safetensors, tokenizer.json, preprocessor_config.json   the model, its parameters rounded to bf16
<name>/reference.json   "synthetic": of an image whose values follow from a formula (value_of; from 0 to 1 where it says "unit"), "picture": of
                        picture.png through the model's image processor, "several": of two files. Each: tiles [[height, width]], grid, overview, original, input_ids, image_token, vectors, features,
                        last_logits, greedy, margins
"""
import inspect
import json
import sys
import traceback
from pathlib import Path

import torch
import transformers as T
from PIL import Image, ImageDraw
from safetensors.torch import load_file, save_file
from tokenizers import Tokenizer, decoders, models, pre_tokenizers, trainers

torch.manual_seed(11)
CORPUS = ["describe the picture in one line", "a red circle and a blue square on a bright ground", "what is to be seen here?",
          "the river runs to the sea and the boats go with it", "user assistant system"] * 4
SPECIAL = ["<bos>", "<eos>", "<pad>", "<|im_start|>", "<|im_end|>", "<image>", "<|vision_start|>", "<|vision_end|>", "<|image_pad|>",
           "<|video_pad|>", "<fake_token_around_image>", "<global-img>", "<start_of_image>", "<end_of_image>", "<image_soft_token>", "[IMG]",
           "[IMG_BREAK]", "[IMG_END]", "<img>", "</img>", "<IMG_CONTEXT>", "<|image_start|>", "<|image_end|>", "<|img_thumbnail|>",
           "<end_of_utterance>"] + [f"<row_{r}_col_{c}>" for r in (1, 2, 3) for c in (1, 2, 3)] + [f"<|img_row_{r}_col_{c}|>" for r in (1, 2) for c in (1, 2)]
tk = Tokenizer(models.BPE())
tk.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
tk.decoder = decoders.ByteLevel()
tk.train_from_iterator(CORPUS, trainers.BpeTrainer(vocab_size=340, special_tokens=SPECIAL, initial_alphabet=pre_tokenizers.ByteLevel.alphabet()))
V = tk.get_vocab_size()
tid = tk.token_to_id
tok = T.PreTrainedTokenizerFast(tokenizer_object=tk, bos_token="<bos>", eos_token="<eos>", pad_token="<pad>")
A = tk.encode("describe ").ids
Z = tk.encode(" in one line").ids


def rnd(m, scale=1.4):
    with torch.no_grad():
        for n, p in m.named_parameters():
            if "lambda" in n:
                p.uniform_(0.2, 0.8)
            elif p.dim() >= 2 and "position" not in n and "pos_embed" not in n:
                fan = p.shape[1:].numel() if p.dim() > 2 else p.shape[-1]
                p.normal_(0, scale / fan ** 0.5 if "conv.weight" not in n else 0.5)
            elif "norm" in n.lower() and n.endswith("weight"):
                p.normal_(0.0 if "gemma" in type(m).__name__.lower() and "vision" not in n else 1.0, 0.1)
            else:
                p.normal_(0, 0.3)
        for t in m.state_dict().values():
            if t.is_floating_point():
                t.copy_(t.to(torch.bfloat16).float())
    return m.float().eval()


def value_of(tile, h, w):
    c, y, x = torch.meshgrid(torch.arange(3), torch.arange(h), torch.arange(w), indexing="ij")
    return ((x * 37 + y * 101 + c * 53 + tile * 17 + x * y) % 256).float() / 127.5 - 1.0


def picture():
    im = Image.new("RGB", (90, 70), (240, 240, 230))
    for x in range(90):
        for y in range(70):
            im.putpixel((x, y), ((x * 255) // 90, (y * 255) // 70, ((x * y) // 7) % 256))
    d = ImageDraw.Draw(im)
    d.ellipse((10, 10, 40, 40), fill=(250, 20, 20))
    d.rectangle((50, 30, 80, 60), fill=(10, 20, 240))
    return im


def qwen_patches(img, p, m=2):
    c, h, w = img.shape
    gh, gw = h // p, w // p
    x = torch.stack([img, img]).reshape(1, 2, c, gh // m, m, p, gw // m, m, p).permute(0, 3, 6, 4, 7, 2, 1, 5, 8)
    return x.reshape(gh * gw, c * 2 * p * p), torch.tensor([[1, gh, gw]])


def run(m, kw, ids, image_token):
    k = dict(kw)
    names = inspect.signature(m.forward).parameters
    kinds = torch.tensor([[1 if t == image_token else 0 for t in ids]])
    if "mm_token_type_ids" in names:
        k["mm_token_type_ids"] = kinds
    if "token_type_ids" in names:
        k["token_type_ids"] = kinds
    return m(input_ids=torch.tensor([ids]), use_cache=False, **k).logits[0].float()


def features_of(m, kw):
    names = inspect.signature(m.get_image_features).parameters
    out = m.get_image_features(**{k: v for k, v in kw.items() if k in names or k in ("image_sizes", "spatial_shapes", "pixel_attention_mask", "image_grid_thw", "target_sizes", "image_position_ids", "pixel_values")})
    f = getattr(out, "pooler_output", out)
    deep = getattr(out, "deepstack_features", None)
    if isinstance(f, (list, tuple)):
        f = torch.cat([x.reshape(-1, x.shape[-1]) for x in f])
    f = f.reshape(-1, f.shape[-1]).float()
    if deep is not None:
        f = torch.cat([f] + [d.reshape(-1, d.shape[-1]).float() for d in deep], dim=-1)
    return f


def case(m, kw, ids_of, image_token, facts):
    f = features_of(m, kw)
    ids = ids_of(f.shape[0])
    assert sum(t == image_token for t in ids) == f.shape[0], (sum(t == image_token for t in ids), f.shape)
    with torch.no_grad():
        last = run(m, kw, ids, image_token)[-1]
        seq, margins = list(ids), []
        for _ in range(8):
            l = run(m, kw, seq, image_token)[-1]
            top = torch.topk(l, 2).values
            margins.append(round(float(top[0] - top[1]), 4))
            seq.append(int(l.argmax()))
    return dict(facts, input_ids=ids, image_token=image_token, vectors=f.shape[0], features=[round(float(v), 5) for v in f.flatten()],
                last_logits=[round(float(v), 5) for v in last], greedy=seq[len(ids):], margins=margins)


def save(out, name, m, cases, proc=None, names=()):
    d = out / name
    d.mkdir(parents=True, exist_ok=True)
    m.config.dtype = torch.bfloat16
    state = {k: (v.to(torch.bfloat16) if v.is_floating_point() else v) for k, v in m.state_dict().items()}
    m.save_pretrained(d, safe_serialization=True, state_dict=state)
    for extra in ("generation_config.json",):
        (d / extra).unlink(missing_ok=True)
    if names:  # as the hub's files have them, where transformers does not find its way back
        tensors = load_file(d / "model.safetensors")
        for theirs, hubs in names:
            tensors = {k.replace(theirs, hubs): v for k, v in tensors.items()}
        save_file(tensors, d / "model.safetensors", {"format": "pt"})
    tk.save(str(d / "tokenizer.json"))
    if proc is not None:
        proc.save_pretrained(d)
    json.dump(cases, open(d / "reference.json", "w"), separators=(",", ":"))
    size = sum(p.stat().st_size for p in d.iterdir())
    print("ok", name, sum(p.numel() for p in m.parameters()), size, "margins", min(min(c["margins"]) for c in cases.values()), flush=True)


B = dict(vocab_size=V, hidden_size=32, intermediate_size=48, num_hidden_layers=2, num_attention_heads=4, num_key_value_heads=2,
         max_position_embeddings=512, bos_token_id=0, eos_token_id=1, pad_token_id=2, tie_word_embeddings=False)
W = dict(hidden_size=24, intermediate_size=40, num_hidden_layers=3, num_attention_heads=2)
CLIP = lambda: T.CLIPVisionConfig(**W, image_size=56, patch_size=14)
SIGLIP = lambda size=56: T.SiglipVisionConfig(**W, image_size=size, patch_size=14)
IMG = tid("<image>")


def both(out, name, m, synthetic, facts, ids_of, image_token, proc=None, pixels_of=None, picture_ids=None, names=()):
    cases = {"synthetic": case(m, synthetic, ids_of, image_token, facts)}
    if proc is not None:
        try:
            px = proc(images=picture(), return_tensors="pt")
            kw = {k: v for k, v in px.items() if k in ("pixel_values", "image_grid_thw", "pixel_attention_mask", "image_sizes", "spatial_shapes", "target_sizes", "image_position_ids", "pixel_position_ids")}
            cases["picture"] = case(m, kw, picture_ids(px) if picture_ids else ids_of, image_token,
                                    {"shapes": {k: list(v.shape) for k, v in px.items() if hasattr(v, "shape")}})
        except Exception:
            print("no picture", name)
            traceback.print_exc(limit=-3)
    save(out, name, m, cases, proc, names)


def plain(n):
    return A + [IMG] * n + Z


def llava(out):
    cfg = T.LlavaConfig(vision_config=CLIP(), text_config=T.LlamaConfig(**B), image_token_index=IMG, image_token_id=IMG,
                        vision_feature_select_strategy="default", vision_feature_layer=-2)
    m = rnd(T.LlavaForConditionalGeneration(cfg))
    proc = T.CLIPImageProcessor(size={"shortest_edge": 56}, crop_size={"height": 56, "width": 56})
    both(out, "llava", m, {"pixel_values": value_of(0, 56, 56)[None]}, {"tiles": [[56, 56]]}, plain, IMG, proc)


def next_case(size, original, rows, columns):
    n = rows * columns + 1
    return ({"pixel_values": torch.stack([value_of(t, size, size) for t in range(n)])[None], "image_sizes": torch.tensor([original])},
            {"tiles": [[size, size]] * n, "grid": [rows, columns], "overview": 0, "original": original})


PIN = [[56, 112], [112, 56], [112, 112], [56, 168]]


def llava_next(out):
    cfg = T.LlavaNextConfig(vision_config=CLIP(), text_config=T.LlamaConfig(**B), image_token_index=IMG, image_token_id=IMG,
                            image_grid_pinpoints=PIN, vision_feature_select_strategy="default", vision_feature_layer=-2)
    m = rnd(T.LlavaNextForConditionalGeneration(cfg))
    kw, facts = next_case(56, [60, 90], 2, 2)
    proc = T.LlavaNextImageProcessor(size={"shortest_edge": 56}, crop_size={"height": 56, "width": 56}, image_grid_pinpoints=PIN)
    both(out, "llava-next", m, kw, facts, plain, IMG, proc)


def llava_onevision(out):
    cfg = T.LlavaOnevisionConfig(vision_config=SIGLIP(), text_config=T.Qwen2Config(**B), image_token_index=IMG, image_token_id=IMG,
                                 image_grid_pinpoints=PIN, vision_feature_select_strategy="full", vision_feature_layer=-1,
                                 vision_aspect_ratio="anyres_max_2")
    m = rnd(T.LlavaOnevisionForConditionalGeneration(cfg))
    kw, facts = next_case(56, [60, 90], 2, 2)
    proc = T.LlavaOnevisionImageProcessor(size={"height": 56, "width": 56}, image_grid_pinpoints=PIN)
    both(out, "llava-onevision", m, kw, facts, plain, IMG, proc)


def gemma3(out):
    soft = tid("<image_soft_token>")
    text = T.Gemma3TextConfig(**dict(B, num_hidden_layers=3), head_dim=16, sliding_window=8, query_pre_attn_scalar=16,
                              layer_types=["sliding_attention", "sliding_attention", "full_attention"])
    cfg = T.Gemma3Config(vision_config=SIGLIP(112), text_config=text, mm_tokens_per_image=16, boi_token_index=tid("<start_of_image>"),
                         eoi_token_index=tid("<end_of_image>"), image_token_index=soft)
    m = rnd(T.Gemma3ForConditionalGeneration(cfg))
    proc = T.Gemma3ImageProcessor(size={"height": 112, "width": 112})
    both(out, "gemma3", m, {"pixel_values": value_of(0, 112, 112)[None]}, {"tiles": [[112, 112]]},
         lambda n: A + [tid("<start_of_image>")] + [soft] * n + [tid("<end_of_image>")] + Z, soft, proc)


def idefics_ids(rows, columns):
    def ids(n):
        fake, out = tid("<fake_token_around_image>"), list(A)
        per = n // (rows * columns + 1) if rows else n
        for r in range(rows):
            for c in range(columns):
                out += [fake, tid(f"<row_{r + 1}_col_{c + 1}>")] + [IMG] * per
            out += tk.encode("\n").ids
        return out + (tk.encode("\n").ids if rows else []) + [fake, tid("<global-img>")] + [IMG] * per + [fake] + Z
    return ids


def idefics3(out, name="idefics3"):
    big = name == "smolvlm"
    kind = "SmolVLM" if big else "Idefics3"
    vis = getattr(T, kind + "VisionConfig")(**W, image_size=56, patch_size=14)
    cfg = getattr(T, kind + "Config")(vision_config=vis, text_config=T.LlamaConfig(**B), image_token_id=IMG, scale_factor=2, pad_token_id=2)
    m = rnd(getattr(T, kind + "ForConditionalGeneration")(cfg))
    px = torch.stack([value_of(t, 56, 56) for t in range(5)])[None]
    proc = getattr(T, kind + "ImageProcessor")(size={"longest_edge": 112}, max_image_size={"longest_edge": 56})
    both(out, name, m, {"pixel_values": px}, {"tiles": [[56, 56]] * 5, "grid": [2, 2], "overview": 4}, idefics_ids(2, 2), IMG, proc,
         picture_ids=lambda px: idefics_ids(2, 2))


def internvl(out):
    ctx = tid("<IMG_CONTEXT>")
    vis = T.InternVLVisionConfig(**W, image_size=[56, 56], patch_size=[14, 14])
    cfg = T.InternVLConfig(vision_config=vis, text_config=T.Qwen2Config(**B), image_token_id=ctx, image_seq_length=4, downsample_ratio=0.5)
    m = rnd(T.InternVLForConditionalGeneration(cfg))
    px = torch.stack([value_of(t, 56, 56) for t in range(3)])
    proc = T.GotOcr2ImageProcessor(size={"height": 56, "width": 56}, crop_to_patches=True, min_patches=1, max_patches=4)
    both(out, "internvl", m, {"pixel_values": px}, {"tiles": [[56, 56]] * 3, "grid": [1, 2], "overview": 2},
         lambda n: A + [tid("<img>")] + [ctx] * n + [tid("</img>")] + Z, ctx, proc)


def internvl_tiles(im, size, least, most):
    """What the model's own code shows: the grid whose ratio is nearest, larger ones where the picture is large, and the whole behind it."""
    ratio, best = im.width / im.height, (float("inf"), 1, 1)
    for tiles in range(least, most + 1):
        for columns in (c for c in range(1, tiles + 1) if tiles % c == 0):
            off = abs(ratio - columns / (tiles // columns))
            if off < best[0] or (off == best[0] and im.width * im.height > 0.5 * size * size * tiles):
                best = (off, tiles // columns, columns)
    rows, columns = best[1:]
    work = im.resize((columns * size, rows * size), Image.BICUBIC)
    tiles = [work.crop((x * size, y * size, (x + 1) * size, (y + 1) * size)) for y in range(rows) for x in range(columns)]
    tiles += [im.resize((size, size), Image.BICUBIC)] if len(tiles) > 1 else []
    mean, deviation = torch.tensor([0.485, 0.456, 0.406]), torch.tensor([0.229, 0.224, 0.225])
    bytes_of = lambda t: torch.frombuffer(bytearray(t.tobytes()), dtype=torch.uint8).reshape(size, size, 3)
    return torch.stack([((bytes_of(t) / 255 - mean) / deviation).permute(2, 0, 1) for t in tiles])


INTERN_NAMES = [("vision_tower.", "vision_model."), ("embeddings.cls_token", "embeddings.class_embedding"),
                ("embeddings.patch_embeddings.projection", "embeddings.patch_embedding"), ("position_embeddings", "position_embedding"),
                ("encoder.layer.", "encoder.layers."), ("attention.projection_layer", "attn.proj"), ("attention.q_norm", "attn.q_norm"),
                ("attention.k_norm", "attn.k_norm"), ("layernorm_before", "norm1"), ("layernorm_after", "norm2"), ("lambda_1", "ls1"),
                ("lambda_2", "ls2"), ("multi_modal_projector.layer_norm", "mlp1.0"), ("multi_modal_projector.linear_1", "mlp1.1"),
                ("multi_modal_projector.linear_2", "mlp1.3"), ("model.embed_tokens", "model.tok_embeddings"), ("self_attn.o_proj", "attention.wo"),
                ("mlp.gate_proj", "feed_forward.w1"), ("mlp.up_proj", "feed_forward.w3"), ("mlp.down_proj", "feed_forward.w2"),
                ("input_layernorm", "attention_norm"), ("post_attention_layernorm", "ffn_norm"), ("lm_head", "output")]


def internvl_chat(out):
    """As InternVL 2 with InternLM 2 names it, which transformers has no class for: of that model what InternVL and Llama compute."""
    torch.manual_seed(31)
    ctx = tid("<IMG_CONTEXT>")
    own = dict(hidden_size=36, intermediate_size=40, num_hidden_layers=4, num_attention_heads=3)
    vis = T.InternVLVisionConfig(**own, image_size=[70, 70], patch_size=[14, 14], norm_type="rms_norm", use_qk_norm=True, attention_bias=False)
    cfg = T.InternVLConfig(vision_config=vis, text_config=T.LlamaConfig(**B), image_token_id=ctx, image_seq_length=4, downsample_ratio=0.5,
                           vision_feature_layer=-2)
    m = rnd(T.InternVLForConditionalGeneration(cfg))
    ids = lambda n: A + [tid("<img>")] + [ctx] * n + [tid("</img>")] + Z
    px = torch.stack([value_of(t, 56, 56) for t in range(3)])
    cases = {"synthetic": case(m, {"pixel_values": px}, ids, ctx, {"tiles": [[56, 56]] * 3, "grid": [1, 2], "overview": 2}),
             "picture": case(m, {"pixel_values": internvl_tiles(picture(), 56, 1, 6)}, ids, ctx, {})}
    save(out, "internvl-chat", m, cases)
    d = out / "internvl-chat"
    tensors = load_file(d / "model.safetensors")
    for layer in range(4):
        of = f"vision_tower.encoder.layer.{layer}.attention."
        tensors[f"vision_model.encoder.layers.{layer}.attn.qkv.weight"] = torch.cat([tensors.pop(f"{of}{p}_proj.weight") for p in "qkv"])
    for layer in range(2):
        of = f"language_model.model.layers.{layer}."
        q, k, v = (tensors.pop(f"{of}self_attn.{p}_proj.weight").reshape(2, -1, 8, 32) for p in "qkv")  # by heads of keys
        tensors[of + "attention.wqkv.weight"] = torch.cat([q, k, v], 1).reshape(-1, 32)
    for theirs, own_name in INTERN_NAMES:
        tensors = {k.replace(theirs, own_name): v for k, v in tensors.items()}
    save_file({k: v.contiguous() for k, v in tensors.items()}, d / "model.safetensors", {"format": "pt"})
    text = {k: B[k] for k in ("vocab_size", "hidden_size", "intermediate_size", "num_hidden_layers", "num_attention_heads", "num_key_value_heads",
                              "max_position_embeddings", "bos_token_id", "eos_token_id", "pad_token_id", "tie_word_embeddings")}
    text |= {"model_type": "internlm2", "architectures": ["InternLM2ForCausalLM"], "hidden_act": "silu", "bias": False, "rms_norm_eps": 1e-6,
             "rope_theta": 10000.0, "rope_scaling": None, "attn_implementation": "eager"}
    vision = own | {"model_type": "intern_vit_6b", "architectures": ["InternVisionModel"], "image_size": 70, "patch_size": 14, "hidden_act": "gelu",
                    "norm_type": "rms_norm", "qk_normalization": True, "qkv_bias": False, "layer_norm_eps": 1e-6, "num_channels": 3}
    config = {"model_type": "internvl_chat", "architectures": ["InternVLChatModel"], "downsample_ratio": 0.5, "dynamic_image_size": True,
              "force_image_size": 56, "llm_config": text, "max_dynamic_patch": 6, "min_dynamic_patch": 1, "pad2square": False, "ps_version": "v2",
              "select_layer": -2, "template": "internlm2-chat", "use_thumbnail": True, "vision_config": vision}
    json.dump(config, open(d / "config.json", "w"), indent=2)
    json.dump({"crop_size": 448, "do_center_crop": True, "do_normalize": True, "do_resize": True, "feature_extractor_type": "CLIPFeatureExtractor",
               "image_mean": [0.485, 0.456, 0.406], "image_std": [0.229, 0.224, 0.225], "resample": 3, "size": 448},
              open(d / "preprocessor_config.json", "w"), indent=2)


def row_ids(columns):
    def ids(n):
        out = list(A)
        for i in range(n // columns):
            out += [tid("[IMG]")] * columns + [tid("[IMG_BREAK]" if i + 1 < n // columns else "[IMG_END]")]
        return out + Z
    return ids


def pixtral(out):
    vis = T.PixtralVisionConfig(**dict(W, num_attention_heads=2, hidden_size=32), head_dim=16, image_size=112, patch_size=14, hidden_act="silu")
    cfg = T.LlavaConfig(vision_config=vis, text_config=T.MistralConfig(**B), image_token_index=tid("[IMG]"), image_token_id=tid("[IMG]"),
                        vision_feature_select_strategy="full", vision_feature_layer=-1)
    m = rnd(T.LlavaForConditionalGeneration(cfg))
    kw = {"pixel_values": value_of(0, 56, 84)[None], "image_sizes": torch.tensor([[56, 84]])}
    proc = T.PixtralImageProcessor(size={"longest_edge": 112}, patch_size={"height": 14, "width": 14})
    both(out, "pixtral", m, kw, {"tiles": [[56, 84]]}, row_ids(6), tid("[IMG]"), proc,
         picture_ids=lambda px: row_ids(int(px["image_sizes"][0][1]) // 14))


def mistral3(out):
    vis = T.PixtralVisionConfig(**dict(W, num_attention_heads=2, hidden_size=32), head_dim=16, image_size=112, patch_size=14, hidden_act="silu")
    cfg = T.Mistral3Config(vision_config=vis, text_config=T.MistralConfig(**B), image_token_index=tid("[IMG]"), image_token_id=tid("[IMG]"),
                           spatial_merge_size=2)
    m = rnd(T.Mistral3ForConditionalGeneration(cfg))
    kw = {"pixel_values": value_of(0, 56, 84)[None], "image_sizes": torch.tensor([[56, 84]])}
    proc = T.PixtralImageProcessor(size={"longest_edge": 112}, patch_size={"height": 28, "width": 28})
    both(out, "mistral3", m, kw, {"tiles": [[56, 84]]}, row_ids(3), tid("[IMG]"), proc,
         picture_ids=lambda px: row_ids(int(px["image_sizes"][0][1]) // 28))
    # Its processor multiplies the patch of this file by spatial_merge_size.
    T.PixtralImageProcessor(size={"longest_edge": 112}, patch_size={"height": 14, "width": 14}).save_pretrained(out / "mistral3")


QWEN = dict(image_token_id=tid("<|image_pad|>"), video_token_id=tid("<|video_pad|>"), vision_start_token_id=tid("<|vision_start|>"),
            vision_end_token_id=tid("<|vision_end|>"))
PAD = tid("<|image_pad|>")


def qwen_ids(n):
    return A + [tid("<|vision_start|>")] + [PAD] * n + [tid("<|vision_end|>")] + Z


def mrope(**more):
    return {"rope_type": "default", "rope_theta": 10000.0, "mrope_section": [2, 3, 3], **more}


def qwen_run(out, name, m, patch, h, w, proc):
    px, grid = qwen_patches(value_of(0, h, w), patch)
    both(out, name, m, {"pixel_values": px, "image_grid_thw": grid}, {"tiles": [[h, w]]}, qwen_ids, PAD, proc)


def qwen2_vl(out):
    vis = dict(depth=3, embed_dim=24, hidden_size=32, num_heads=2, mlp_ratio=2, patch_size=14, spatial_merge_size=2)
    cfg = T.Qwen2VLConfig(text_config=dict(B, num_attention_heads=2, num_key_value_heads=1, rope_parameters=mrope()), vision_config=vis, **QWEN)
    qwen_run(out, "qwen2-vl", rnd(T.Qwen2VLForConditionalGeneration(cfg)), 14, 56, 84,
             T.Qwen2VLImageProcessor(min_pixels=56 * 56, max_pixels=112 * 112))


def qwen25_vl(out):
    vis = dict(depth=3, hidden_size=24, intermediate_size=40, num_heads=2, out_hidden_size=32, patch_size=14, spatial_merge_size=2,
               window_size=56, fullatt_block_indexes=[1])
    cfg = T.Qwen2_5_VLConfig(text_config=dict(B, num_attention_heads=2, num_key_value_heads=1, rope_parameters=mrope()), vision_config=vis, **QWEN)
    qwen_run(out, "qwen2.5-vl", rnd(T.Qwen2_5_VLForConditionalGeneration(cfg)), 14, 84, 140,
             T.Qwen2VLImageProcessor(min_pixels=56 * 56, max_pixels=112 * 112))


def qwen3_vl(out):
    vis = dict(depth=3, hidden_size=24, intermediate_size=40, num_heads=2, out_hidden_size=32, patch_size=16, spatial_merge_size=2,
               num_position_embeddings=16, deepstack_visual_indexes=[0, 1])
    cfg = T.Qwen3VLConfig(text_config=dict(B, num_attention_heads=2, num_key_value_heads=1, num_hidden_layers=3, head_dim=16, rope_parameters=mrope()), vision_config=vis, **QWEN)
    qwen_run(out, "qwen3-vl", rnd(T.Qwen3VLForConditionalGeneration(cfg)), 16, 64, 96,
             T.Qwen2VLImageProcessor(min_pixels=64 * 64, max_pixels=128 * 128, patch_size=16))


def qwen3_vl_moe(out):
    vis = dict(depth=3, hidden_size=24, intermediate_size=40, num_heads=2, out_hidden_size=32, patch_size=16, spatial_merge_size=2,
               num_position_embeddings=16, deepstack_visual_indexes=[0, 1])
    text = dict(B, num_attention_heads=2, num_key_value_heads=1, num_hidden_layers=3, head_dim=16, rope_parameters=mrope(), num_experts=4,
                num_experts_per_tok=2, moe_intermediate_size=24, decoder_sparse_step=1, norm_topk_prob=True)
    qwen_run(out, "qwen3-vl-moe", rnd(T.Qwen3VLMoeForConditionalGeneration(T.Qwen3VLMoeConfig(text_config=text, vision_config=vis, **QWEN))), 16, 64, 96,
             T.Qwen2VLImageProcessor(min_pixels=64 * 64, max_pixels=128 * 128, patch_size=16))


def lfm2_vl(out):
    vis = T.Siglip2VisionConfig(**W, patch_size=16, num_patches=16)
    text = T.Lfm2Config(**dict(B, num_hidden_layers=3), conv_L_cache=3, layer_types=["conv", "full_attention", "conv"], block_auto_adjust_ff_dim=False)
    cfg = T.Lfm2VlConfig(vision_config=vis, text_config=text, image_token_id=IMG, projector_hidden_size=40, downsample_factor=2)
    m = rnd(T.Lfm2VlForConditionalGeneration(cfg))
    img = value_of(0, 64, 96)
    px = img.reshape(3, 4, 16, 6, 16).permute(1, 3, 2, 4, 0).reshape(24, 768)[None]
    kw = {"pixel_values": px, "spatial_shapes": torch.tensor([[4, 6]]), "pixel_attention_mask": torch.ones(1, 24, dtype=torch.long)}
    both(out, "lfm2-vl", m, kw, {"tiles": [[64, 96]]},
         lambda n: A + [tid("<|image_start|>")] + [IMG] * n + [tid("<|image_end|>")] + Z, IMG)


MLA = dict(kv_lora_rank=16, qk_nope_head_dim=8, qk_rope_head_dim=8, v_head_dim=8, q_lora_rank=24, n_group=1, topk_group=1, n_routed_experts=4,
           num_experts_per_tok=2, n_shared_experts=1, moe_intermediate_size=16, first_k_dense_replace=1, routed_scaling_factor=2.0)


def qwen35(out):
    vis = dict(depth=3, hidden_size=24, intermediate_size=40, num_heads=2, out_hidden_size=32, patch_size=16, spatial_merge_size=2,
               num_position_embeddings=16)
    text = dict(B, num_hidden_layers=3, layer_types=["linear_attention", "full_attention", "linear_attention"], head_dim=16,
                linear_num_key_heads=2, linear_num_value_heads=4, linear_key_head_dim=8, linear_value_head_dim=12, linear_conv_kernel_dim=4,
                rope_parameters={"rope_type": "default", "rope_theta": 10000.0, "partial_rotary_factor": 0.5, "mrope_section": [2, 1, 1],
                                 "mrope_interleaved": True})
    cfg = T.Qwen3_5Config(text_config=text, vision_config=vis, **QWEN)
    qwen_run(out, "qwen3.5", rnd(T.Qwen3_5ForConditionalGeneration(cfg)), 16, 64, 96,
             T.Qwen2VLImageProcessor(min_pixels=64 * 64, max_pixels=128 * 128, patch_size=16))


def rows_of_patches(img, p):
    c, h, w = img.shape
    return img.reshape(c, h // p, p, w // p, p).permute(1, 3, 0, 2, 4).reshape(h // p * (w // p), c, p, p)


def kimi(out):
    vis = T.Kimi_K25VisionConfig(hidden_size=32, intermediate_size=40, num_hidden_layers=3, num_attention_heads=2, patch_size=14,
                                 pos_emb_height=4, pos_emb_width=4, pos_emb_time=4, merge_kernel_size=[2, 2])
    text = T.DeepseekV3Config(**dict(B, num_attention_heads=4, num_key_value_heads=4, num_hidden_layers=2), **MLA)
    cfg = T.Kimi_K25Config(vision_config=vis, text_config=text, image_token_id=IMG, projection_hidden_size=32)
    m = rnd(T.Kimi_K25ForConditionalGeneration(cfg))
    h, w = 56, 84
    kw = {"pixel_values": rows_of_patches(value_of(0, h, w), 14), "image_grid_thw": torch.tensor([[1, h // 14, w // 14]])}
    both(out, "kimi-k2.5", m, kw, {"tiles": [[h, w]]}, plain, IMG, T.Kimi_K25ImageProcessor(patch_size=14, merge_kernel_size=[2, 2]),
         names=(("language_model.model.blocks.", "language_model.model.layers."), ("model.mm_projector.", "mm_projector."),
                ("vision_tower.encoder.patch_embed.", "vision_tower.patch_embed.")))


def gemma4(out, name="gemma4", **more):
    torch.manual_seed(23)
    vis = T.Gemma4VisionConfig(hidden_size=32, intermediate_size=40, num_hidden_layers=3, num_attention_heads=2, num_key_value_heads=2, head_dim=16,
                               patch_size=16, pooling_kernel_size=3, position_embedding_size=64, **more)
    sees = None if more else "vision"  # as with the smaller and the larger ones
    text = T.Gemma4TextConfig(**dict(B, num_hidden_layers=3, tie_word_embeddings=True), head_dim=16, global_head_dim=16, sliding_window=8,
                              layer_types=["sliding_attention", "sliding_attention", "full_attention"], hidden_size_per_layer_input=0,
                              vocab_size_per_layer_input=V, use_bidirectional_attention=sees)
    soft = tid("<image_soft_token>")
    cfg = T.Gemma4Config(text_config=text, vision_config=vis, image_token_id=soft, boi_token_id=tid("<start_of_image>"),
                         eoi_token_id=tid("<end_of_image>"), video_token_id=tid("<|video_pad|>"), audio_token_id=tid("[IMG_END]"))
    m = rnd(T.Gemma4ForConditionalGeneration(cfg))
    for part, values in m.named_buffers():
        with torch.no_grad():
            if part.endswith("std_bias"):
                values.copy_(torch.randn_like(values).mul(0.5).to(torch.bfloat16))
            elif part.endswith("std_scale"):
                values.copy_(torch.rand_like(values).add(0.5).to(torch.bfloat16))
            elif part.endswith("_min"):
                values.fill_(-1.0)
            elif part.endswith("_max"):
                values.fill_(0.75)
    h, w = 96, 144
    px = rows_of_patches((value_of(0, h, w) + 1) / 2, 16).permute(0, 2, 3, 1).reshape(1, h // 16 * (w // 16), -1)
    y, x = torch.meshgrid(torch.arange(h // 16), torch.arange(w // 16), indexing="ij")
    kw = {"pixel_values": px, "image_position_ids": torch.stack([x.flatten(), y.flatten()], -1)[None]}
    both(out, name, m, kw, {"tiles": [[h, w]], "unit": True}, lambda n: A + [tid("<start_of_image>")] + [soft] * n + [tid("<end_of_image>")] + Z, soft,
         T.Gemma4ImageProcessor(patch_size=16, pooling_kernel_size=3, max_soft_tokens=70))
    # What its processor writes around an image are tokens of its own.
    words = (out / name / "tokenizer.json").read_text()
    (out / name / "tokenizer.json").write_text(words.replace('"<start_of_image>"', '"<|image>"').replace('"<end_of_image>"', '"<image|>"'))


def gemma4_small(out):
    gemma4(out, "gemma4-small", use_clipped_linears=True, standardize=True)


def minicpm(out):
    vis = dict(W, image_size=112, patch_size=14, insert_layer_id=1)
    text = T.LlamaConfig(**B)
    cfg = T.MiniCPMV4_6Config(vision_config=vis, text_config=dict(text.to_dict(), model_type="llama"), insert_layer_id=1, image_token_id=IMG)
    m = rnd(T.MiniCPMV4_6ForConditionalGeneration(cfg))
    h, w = 56, 112
    px = rows_of_patches(value_of(0, h, w), 14).permute(1, 2, 0, 3).reshape(1, 3, 14, -1)
    kw = {"pixel_values": px, "target_sizes": torch.tensor([[h // 14, w // 14]])}
    both(out, "minicpm-v", m, kw, {"tiles": [[h, w]]}, plain, IMG)


JOBS = [llava, llava_next, llava_onevision, gemma3, idefics3, lambda o: idefics3(o, "smolvlm"), internvl, internvl_chat, pixtral, mistral3, qwen2_vl, qwen25_vl,
        qwen3_vl, qwen3_vl_moe, lfm2_vl, qwen35, kimi, gemma4, gemma4_small, minicpm]

def again(out, name, proc, words):
    """The picture of a model that is there, with the words around it that its processor writes: what a server is asked over HTTP."""
    m = T.AutoModelForImageTextToText.from_pretrained(out / name, dtype=torch.float32).eval()
    px = proc(images=picture(), return_tensors="pt")
    kw = {k: v for k, v in px.items() if k in ("pixel_values", "pixel_attention_mask", "spatial_shapes")}
    token = m.config.image_token_id
    cases = json.load(open(out / name / "reference.json"))
    cases["picture"] = case(m, kw, lambda n: tk.encode("describe " + words(n) + " in one line").ids, token,
                            {"shapes": {k: list(v.shape) for k, v in px.items() if hasattr(v, "shape")}})
    proc.save_pretrained(out / name)
    json.dump(cases, open(out / name / "reference.json", "w"), separators=(",", ":"))
    print("ok again", name, len(cases["picture"]["input_ids"]), flush=True)


def idefics_words(n):
    per, fake = n // 5, "<fake_token_around_image>"
    rows = "".join("".join(f"{fake}<row_{r}_col_{c}>" + "<image>" * per for c in (1, 2)) + "\n" for r in (1, 2))
    return rows + f"\n{fake}<global-img>" + "<image>" * per + fake


AGAIN = [
    lambda out: again(out, "idefics3", T.Idefics3ImageProcessor(size={"longest_edge": 112}, max_image_size={"longest_edge": 56}, resample=3), idefics_words),
    lambda out: again(out, "smolvlm", T.SmolVLMImageProcessor(size={"longest_edge": 112}, max_image_size={"longest_edge": 56}, resample=3), idefics_words),
    lambda out: again(out, "gemma3", T.Gemma3ImageProcessor(size={"height": 112, "width": 112}),
                      lambda n: "\n\n<start_of_image>" + "<image_soft_token>" * n + "<end_of_image>\n\n"),
    lambda out: again(out, "lfm2-vl", T.Lfm2VlImageProcessor(tile_size=128, min_image_tokens=4, max_image_tokens=16, encoder_patch_size=16,
                                                             downsample_factor=2, do_image_splitting=False, max_num_patches=64),
                      lambda n: "<|image_start|>" + "<image>" * n + "<|image_end|>"),
]

def photo():
    return Image.open(Path(__file__).parents[2] / "images/pictures/photo.jpg").convert("RGB")


def add_case(out, name, what, m, kw, ids, token):
    kw = {k: v for k, v in kw.items() if k not in ("input_ids", "attention_mask", "mm_token_type_ids", "token_type_ids")}
    cases = json.load(open(out / name / "reference.json"))
    cases[what] = dict(case(m, kw, lambda n: ids, token, {"shapes": {k: list(v.shape) for k, v in kw.items() if hasattr(v, "shape")}}), features=[])
    json.dump(cases, open(out / name / "reference.json", "w"), separators=(",", ":"))
    print("ok", what, name, len(ids), cases[what]["margins"], cases[what]["shapes"], flush=True)


def loaded(out, name):
    return T.AutoModelForImageTextToText.from_pretrained(out / name, dtype=torch.float32).eval()


def words_of(out, name, **more):
    return T.PreTrainedTokenizerFast(tokenizer_file=str(out / name / "tokenizer.json"), bos_token="<bos>", eos_token="<eos>", pad_token="<pad>", **more)


def minicpm_files(out):
    """The picture, and the picture and a photo that is cut into slices, through the model's whole processor."""
    d = out / "minicpm-v"
    text = (d / "tokenizer.json").read_text()
    for ours, theirs in (("<|image_start|>", "</image>"), ("<|image_end|>", "<slice>"), ("<|img_thumbnail|>", "</slice>"),
                         ("[IMG]", "<image_id>"), ("[IMG_END]", "</image_id>"), ("<img>", "<video>"), ("</img>", "</video>")):
        text = text.replace(f'"{ours}"', f'"{theirs}"')
    (d / "tokenizer.json").write_text(text)
    config = json.load(open(d / "config.json"))
    json.dump(dict(config, image_token_id=PAD), open(d / "config.json", "w"), indent=2)
    special = {"image_token": "<|image_pad|>", "video_token": "<|video_pad|>"}
    for name in ("image", "slice", "image_id", "video"):
        special |= {name + "_start_token": f"<{name}>", name + "_end_token": f"</{name}>"}
    words = words_of(out, "minicpm-v", extra_special_tokens=special)
    pictures = T.MiniCPMV4_6ImageProcessor(scale_resolution=112, max_slice_nums=4)
    pictures.save_pretrained(d)
    proc = T.MiniCPMV4_6Processor(pictures, T.MiniCPMV4_6VideoProcessor(), words)
    m = loaded(out, "minicpm-v")
    for what, images in (("picture", [picture()]), ("several", [picture(), photo()])):
        px = proc(images=images, text="describe " + "<|image_pad|>" * len(images) + " in one line", return_tensors="pt")
        add_case(out, "minicpm-v", what, m, px, px["input_ids"][0].tolist(), PAD)


def onevision_files(out):
    proc = T.LlavaOnevisionProcessor(T.LlavaOnevisionImageProcessor.from_pretrained(out / "llava-onevision"), words_of(out, "llava-onevision"),
                                     T.LlavaOnevisionVideoProcessor(), num_image_tokens=16, vision_feature_select_strategy="full",
                                     vision_aspect_ratio="anyres_max_2")
    px = proc(images=[[picture(), photo()]], text="describe <image><image> in one line", return_tensors="pt")
    add_case(out, "llava-onevision", "several", loaded(out, "llava-onevision"), px, px["input_ids"][0].tolist(), IMG)


def qwen_files(out):
    px = T.Qwen2VLImageProcessor.from_pretrained(out / "qwen2-vl")(images=[picture(), photo()], return_tensors="pt")
    ids = list(A)
    for n in px["image_grid_thw"].prod(-1).tolist():
        ids += [tid("<|vision_start|>")] + [PAD] * (n // 4) + [tid("<|vision_end|>")]
    add_case(out, "qwen2-vl", "several", loaded(out, "qwen2-vl"), px, ids + Z, PAD)


def gemma_files(out):
    px = T.Gemma3ImageProcessor.from_pretrained(out / "gemma3")(images=[picture(), photo()], return_tensors="pt")
    words = "\n\n<start_of_image>" + "<image_soft_token>" * 16 + "<end_of_image>\n\n"
    ids = tk.encode("describe " + words + words + " in one line").ids
    add_case(out, "gemma3", "several", loaded(out, "gemma3"), {"pixel_values": px["pixel_values"]}, ids, tid("<image_soft_token>"))


FILES = [minicpm_files, onevision_files, qwen_files, gemma_files]


if __name__ == "__main__":
    out = Path(sys.argv[1])
    out.mkdir(parents=True, exist_ok=True)
    picture().save(out / "picture.png")
    for job in {"again": AGAIN, "files": FILES}.get(" ".join(sys.argv[2:]), JOBS):
        if sys.argv[2:] not in ([], ["again"], ["files"]) and getattr(job, "__name__", "") not in sys.argv[2:]:
            continue
        try:
            job(out)
        except Exception as e:
            print("FAIL", getattr(job, "__name__", "job"), type(e).__name__, str(e)[:300], flush=True)
            traceback.print_exc(limit=-4)
