#!/usr/bin/env python3
"""Writes tiny random encoders, rerankers, classifiers and reward models as folders, and what transformers computes for them in float32.

    python3 make_encoders.py FOLDER [NAME...]       (needs torch, transformers 5, tokenizers and safetensors; without names all of them)

<name>/config.json, model.safetensors, tokenizer.json   the model, its parameters rounded to bf16
<name>/modules.json, 1_Pooling/config.json, ...         as sentence-transformers writes them, where the name is in MODULES
<name>/reference.json                                   [{text, pair or null, ids, types, vector or logits}]
"""
import json
import sys
import traceback
from pathlib import Path

import torch
import transformers as T
from safetensors.torch import save_file
from tokenizers import Tokenizer, decoders, models, normalizers, pre_tokenizers, processors, trainers

CORPUS = ["the river runs to the sea and the boats go with it", "a small network reads a whole sentence at once", "Köln liegt am Rhein",
          "what is the capital of france? paris, of course!", "prices rose by 3.5 % in 2024, said the bank", "she sells sea shells",
          "rain in the morning, sun in the afternoon and stars at night", "vectors, scores and labels are what it gives"] * 4
TEXTS = [("the river", None), ("a", None), ("what is the capital of france? paris, of course! prices rose by 3.5 %", None),
         (" ".join(CORPUS[:8]) + " " + "rain in the morning, sun in the afternoon", None), ("Köln liegt am Rhein, said she", None),
         ("what is the capital", "paris, of course!"), ("sea", "she sells sea shells and vectors at night, said the bank in 2024")]
V = 300
E = dict(vocab_size=V, hidden_size=32, intermediate_size=48, num_hidden_layers=3, num_attention_heads=4, max_position_embeddings=320)
G = dict(vocab_size=V, hidden_size=32, intermediate_size=48, num_hidden_layers=4, num_attention_heads=4, num_key_value_heads=2, head_dim=16,
         max_position_embeddings=320, bos_token_id=0, eos_token_id=1, pad_token_id=2)


def word_piece():
    t = Tokenizer(models.WordPiece(unk_token="[UNK]"))
    t.normalizer = normalizers.BertNormalizer(lowercase=True)
    t.pre_tokenizer = pre_tokenizers.BertPreTokenizer()
    t.train_from_iterator(CORPUS, trainers.WordPieceTrainer(vocab_size=V, special_tokens=["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]"]))
    t.post_processor = processors.TemplateProcessing(single="[CLS] $A [SEP]", pair="[CLS] $A [SEP] $B:1 [SEP]:1",
                                                     special_tokens=[("[CLS]", 2), ("[SEP]", 3)])
    t.decoder = decoders.WordPiece()
    return t, dict(tokenizer_class="BertTokenizer", cls_token="[CLS]", sep_token="[SEP]", pad_token="[PAD]", unk_token="[UNK]")


def mpnet_piece():
    t = Tokenizer(models.WordPiece(unk_token="[UNK]"))
    t.normalizer = normalizers.BertNormalizer(lowercase=True)
    t.pre_tokenizer = pre_tokenizers.BertPreTokenizer()
    t.train_from_iterator(CORPUS, trainers.WordPieceTrainer(vocab_size=V, special_tokens=["<s>", "<pad>", "</s>", "[UNK]", "<mask>"]))
    t.post_processor = processors.RobertaProcessing(("</s>", 2), ("<s>", 0), trim_offsets=False, add_prefix_space=False)
    t.decoder = decoders.WordPiece()
    return t, dict(tokenizer_class="MPNetTokenizer", bos_token="<s>", eos_token="</s>", cls_token="<s>", sep_token="</s>", pad_token="<pad>")


def byte_pairs(kind):
    t = Tokenizer(models.BPE())
    t.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
    special = {"roberta": ["<s>", "<pad>", "</s>", "<unk>", "<mask>"], "modern": ["[UNK]", "[CLS]", "[SEP]", "[PAD]", "[MASK]"],
               "decoder": ["<bos>", "<eos>", "<pad>"]}[kind]
    t.train_from_iterator(CORPUS, trainers.BpeTrainer(vocab_size=V, special_tokens=special,
                                                      initial_alphabet=pre_tokenizers.ByteLevel.alphabet()))
    t.decoder = decoders.ByteLevel()
    if kind == "roberta":
        t.post_processor = processors.RobertaProcessing(("</s>", 2), ("<s>", 0), trim_offsets=True, add_prefix_space=False)
        return t, dict(tokenizer_class="RobertaTokenizer", bos_token="<s>", eos_token="</s>", cls_token="<s>", sep_token="</s>", pad_token="<pad>")
    if kind == "modern":
        t.post_processor = processors.TemplateProcessing(single="[CLS] $A [SEP]", pair="[CLS] $A [SEP] $B [SEP]",
                                                         special_tokens=[("[CLS]", 1), ("[SEP]", 2)])
        return t, dict(tokenizer_class="PreTrainedTokenizerFast", cls_token="[CLS]", sep_token="[SEP]", pad_token="[PAD]")
    t.post_processor = processors.TemplateProcessing(single="$A <eos>", pair="$A $B <eos>", special_tokens=[("<eos>", 1)])
    return t, dict(tokenizer_class="PreTrainedTokenizerFast", bos_token="<bos>", eos_token="<eos>", pad_token="<pad>")


def unigram():
    t = Tokenizer(models.Unigram())
    t.pre_tokenizer = pre_tokenizers.Metaspace()
    t.train_from_iterator(CORPUS, trainers.UnigramTrainer(vocab_size=V, special_tokens=["<s>", "<pad>", "</s>", "<unk>"], unk_token="<unk>"))
    t.post_processor = processors.TemplateProcessing(single="<s> $A </s>", pair="<s> $A </s> </s> $B </s>",
                                                     special_tokens=[("<s>", 0), ("</s>", 2)])
    t.decoder = decoders.Metaspace()
    return t, dict(tokenizer_class="XLMRobertaTokenizer", bos_token="<s>", eos_token="</s>", cls_token="<s>", sep_token="</s>", pad_token="<pad>")


def judging():
    """With the words and marks of Qwen3-Reranker's prompt; it closes no text."""
    t = Tokenizer(models.BPE())
    t.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
    t.train_from_iterator(CORPUS + ["yes", "no"] * 40, trainers.BpeTrainer(
        vocab_size=V, special_tokens=["<bos>", "<eos>", "<pad>", "<|im_start|>", "<|im_end|>", "<think>", "</think>"],
        initial_alphabet=pre_tokenizers.ByteLevel.alphabet()))
    t.decoder = decoders.ByteLevel()
    assert len(t.encode("yes").ids) == len(t.encode("no").ids) == 1
    return t, dict(tokenizer_class="PreTrainedTokenizerFast", eos_token="<|im_end|>", pad_token="<pad>")


JUDGMENT = ("<|im_start|>system\nJudge whether the Document meets the requirements based on the Query and the Instruct provided. Note that the "
            "answer can only be \"yes\" or \"no\".<|im_end|>\n<|im_start|>user\n<Instruct>: Given a web search query, retrieve relevant "
            "passages that answer the query\n<Query>: {}\n<Document>: {}<|im_end|>\n<|im_start|>assistant\n<think>\n\n</think>\n\n")


def labels(n, **more):
    return dict(num_labels=n, id2label={i: f"label{i}" for i in range(n)}, label2id={f"label{i}": i for i in range(n)}, **more)


R = dict(E, pad_token_id=1, bos_token_id=0, eos_token_id=2, type_vocab_size=1, layer_norm_eps=1e-5)
D = dict(vocab_size=V, dim=32, hidden_dim=48, n_layers=3, n_heads=4, max_position_embeddings=320)
M = dict(E, global_attn_every_n_layers=3, num_hidden_layers=4, local_attention=16, pad_token_id=3, bos_token_id=1, eos_token_id=2, cls_token_id=1,
         sep_token_id=2, attn_implementation="eager")
N = dict(vocab_size=V, hidden_size=32, intermediate_size=48, num_hidden_layers=3, num_attention_heads=4, max_position_embeddings=320)
decoder = lambda: byte_pairs("decoder")
CASES = {
    "bert": (lambda: T.BertModel(T.BertConfig(**E)), word_piece, "mean"),
    "bert-dense": (lambda: T.BertModel(T.BertConfig(**E, hidden_act="gelu_new")), word_piece, "mean"),
    "bert-cls": (lambda: T.BertModel(T.BertConfig(**E)), word_piece, "cls"),
    "bert-rank": (lambda: T.BertForSequenceClassification(T.BertConfig(**E, **labels(1))), word_piece, "logits"),
    "bert-labels": (lambda: T.BertForSequenceClassification(T.BertConfig(**E, **labels(3))), word_piece, "logits"),
    "roberta": (lambda: T.RobertaModel(T.RobertaConfig(**R)), lambda: byte_pairs("roberta"), "mean"),
    "xlm-roberta-rank": (lambda: T.XLMRobertaForSequenceClassification(T.XLMRobertaConfig(**R, **labels(1))), unigram, "logits"),
    "distilbert": (lambda: T.DistilBertModel(T.DistilBertConfig(**D)), word_piece, "mean"),
    "distilbert-labels": (lambda: T.DistilBertForSequenceClassification(
        T.DistilBertConfig(**D, **labels(4, problem_type="multi_label_classification"))), word_piece, "logits"),
    "mpnet": (lambda: T.MPNetModel(T.MPNetConfig(**{**R, "relative_attention_num_buckets": 32})), mpnet_piece, "mean"),
    "nomic-bert": (lambda: T.NomicBertModel(T.NomicBertConfig(**N)), word_piece, "mean"),
    "modernbert": (lambda: T.ModernBertModel(T.ModernBertConfig(**M)), lambda: byte_pairs("modern"), "cls"),
    "modernbert-labels": (lambda: T.ModernBertForSequenceClassification(T.ModernBertConfig(**M, **labels(3), classifier_pooling="mean")),
                          lambda: byte_pairs("modern"), "logits"),
    "electra": (lambda: T.ElectraModel(T.ElectraConfig(**E, embedding_size=16)), word_piece, "mean"),
    "jina-v3": (lambda: T.JinaEmbeddingsV3Model(T.JinaEmbeddingsV3Config(**R)), unigram, "mean"),
    "gemma3": (lambda: T.Gemma3TextModel(T.Gemma3TextConfig(**{**G, "num_hidden_layers": 6}, sliding_window=16, query_pre_attn_scalar=16,
                                                            use_bidirectional_attention=True, attn_implementation="eager")), decoder, "mean"),
    "qwen3": (lambda: T.Qwen3Model(T.Qwen3Config(**G)), decoder, "last"),
    "mistral": (lambda: T.MistralModel(T.MistralConfig(**G, sliding_window=None)), decoder, "last"),
    "qwen3-reranker": (lambda: T.Qwen3ForCausalLM(T.Qwen3Config(**{**G, "max_position_embeddings": 640})), judging, "judgment"),
    "qwen3-labels": (lambda: T.Qwen3ForSequenceClassification(T.Qwen3Config(**G, **labels(3))), decoder, "logits"),
    "llama-reward": (lambda: T.LlamaForSequenceClassification(T.LlamaConfig(**G, **labels(1))), decoder, "logits"),
}
# Whose folder says how tokens become a vector; the others' poolings are told by the server's options.
MODULES = {"bert", "bert-dense", "bert-cls", "roberta", "distilbert", "mpnet", "nomic-bert", "modernbert", "gemma3", "qwen3", "mistral", "electra", "jina-v3"}
DENSE = {"bert-dense": (24, "torch.nn.modules.activation.Tanh"), "gemma3": (40, "torch.nn.modules.linear.Identity")}


def randomise(model, name):
    torch.manual_seed(sum(name.encode()))
    with torch.no_grad():
        for key, p in model.named_parameters():
            if p.dim() >= 2 and "norm" not in key.lower():
                p.normal_(0, 1.6 / p.shape[-1] ** 0.5)
            elif "norm" in key.lower() and key.endswith("weight"):
                p.normal_(0.0 if "gemma" in name else 1.0, 0.2)
            else:
                p.normal_(0, 0.2)
            p.copy_(p.to(torch.bfloat16).float())
    return model.float().eval()


def write_modules(folder, name, pooling, width):
    modules = [{"idx": 0, "name": "0", "path": "", "type": "sentence_transformers.models.Transformer"},
               {"idx": 1, "name": "1", "path": "1_Pooling", "type": "sentence_transformers.models.Pooling"}]
    (folder / "1_Pooling").mkdir(exist_ok=True)
    mode = {"mean": "mean_tokens", "cls": "cls_token", "last": "lasttoken"}[pooling]
    flags = {f"pooling_mode_{m}": m == mode for m in
             ["cls_token", "mean_tokens", "max_tokens", "mean_sqrt_len_tokens", "weightedmean_tokens", "lasttoken"]}
    (folder / "1_Pooling/config.json").write_text(json.dumps({"word_embedding_dimension": width, **flags, "include_prompt": True}, indent=1))
    dense = None
    if name in DENSE:
        out, act = DENSE[name]
        torch.manual_seed(7)
        dense = torch.nn.Linear(width, out, bias="gemma" not in name)
        (folder / "2_Dense").mkdir(exist_ok=True)
        save_file({"linear." + k: v.detach().contiguous() for k, v in dense.state_dict().items()}, str(folder / "2_Dense/model.safetensors"))
        (folder / "2_Dense/config.json").write_text(json.dumps({"in_features": width, "out_features": out, "bias": dense.bias is not None,
                                                                "activation_function": act}))
        modules.append({"idx": 2, "name": "2", "path": "2_Dense", "type": "sentence_transformers.models.Dense"})
    if name != "bert-cls":  # one without
        n = len(modules)
        modules.append({"idx": n, "name": str(n), "path": f"{n}_Normalize", "type": "sentence_transformers.models.Normalize"})
    (folder / "modules.json").write_text(json.dumps(modules, indent=1))
    if name == "bert":
        (folder / "config_sentence_transformers.json").write_text(json.dumps(
            {"prompts": {"query": "what is ", "document": ""}, "default_prompt_name": None, "similarity_fn_name": "cosine"}))
        (folder / "sentence_bert_config.json").write_text(json.dumps({"max_seq_length": 128, "do_lower_case": False}))
    return dense


def make(root, name):
    build, tokenizer, gives = CASES[name]
    folder = root / name
    folder.mkdir(parents=True, exist_ok=True)
    text_side, names = tokenizer()
    text_side.save(str(folder / "tokenizer.json"))
    (folder / "tokenizer_config.json").write_text(json.dumps(names))
    model = randomise(build(), name)
    model.config.architectures = [type(model).__name__]
    config = model.config.to_dict()
    config["model_type"] = model.config.model_type
    (folder / "config.json").write_text(json.dumps(config, indent=1, default=str))
    save_file({k: v.to(torch.bfloat16).contiguous().clone() for k, v in model.state_dict().items() if v.is_floating_point()},
              str(folder / "model.safetensors"))
    dense = write_modules(folder, name, gives, model.config.hidden_size) if name in MODULES else None
    entries = []
    for text, pair in TEXTS:
        if (pair is not None) < (gives == "judgment") or (pair is not None and gives not in ("logits", "judgment")):
            continue
        encoded = text_side.encode(JUDGMENT.format(text, pair)) if gives == "judgment" else text_side.encode(text) if pair is None else (
            text_side.encode(text, pair))
        given = {"input_ids": torch.tensor([encoded.ids]), "attention_mask": torch.ones(1, len(encoded.ids), dtype=torch.long)}
        if getattr(model.config, "type_vocab_size", 0) > 1:
            given["token_type_ids"] = torch.tensor([encoded.type_ids])
        with torch.no_grad():
            out = model(**given)
            if gives == "logits":
                values = out.logits[0]
            elif gives == "judgment":  # by how much "yes" is likelier than "no"
                yes, no = (text_side.encode(word).ids[0] for word in ("yes", "no"))
                values = (out.logits[0, -1, yes] - out.logits[0, -1, no])[None]
            else:
                hidden = out.last_hidden_state[0]
                values = {"mean": lambda: hidden.mean(0), "cls": lambda: hidden[0], "last": lambda: hidden[-1]}[gives]()
                if dense is not None:
                    values = dense(values)
                    if "Tanh" in DENSE[name][1]:
                        values = torch.tanh(values)
                if name in MODULES and name != "bert-cls":
                    values = torch.nn.functional.normalize(values, dim=0)
        entries.append({"text": text, "pair": pair, "ids": encoded.ids, "types": encoded.type_ids,
                        "vector" if name in MODULES else "logits": [float(v) for v in values]})
    (folder / "reference.json").write_text(json.dumps(entries))
    print(name, len(entries[0].get("vector", entries[0].get("logits"))), sum(f.stat().st_size for f in folder.rglob("*") if f.is_file()))


if __name__ == "__main__":
    root, chosen = Path(sys.argv[1]), sys.argv[2:] or list(CASES)
    for name in chosen:
        try:
            make(root, name)
        except Exception:
            print("FAILED", name)
            traceback.print_exc(limit=-3)
