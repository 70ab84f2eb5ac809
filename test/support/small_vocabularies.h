// Small vocabularies of each kind for tests, as the metadata of a GGUF file.
#pragma once

#include "support/gguf_writer.h"
#include "text/tokenizer/byte_alphabet.h"

#include <cstdint>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace braid::test {

// Collects tokens; scores and types as GGUF has them (1 normal, 2 unknown, 3 control, 4 user-defined, 6 byte).
struct TokenList {
  std::vector<std::string> texts;
  std::vector<float> scores;
  std::vector<std::int32_t> types;

  std::int32_t add(std::string text, float score = 0.0F, std::int32_t type = 1) {
    texts.push_back(std::move(text));
    scores.push_back(score);
    types.push_back(type);
    return static_cast<std::int32_t>(texts.size()) - 1;
  }
  void write(GgufWriter& writer) const {
    writer.strings("tokenizer.ggml.tokens", texts).f32s("tokenizer.ggml.scores", scores).i32s("tokenizer.ggml.token_type", types);
  }
};

// Ids: 0 <unk>, 1 <s>, 2 </s>, 3..258 the bytes, 259 <|user|> (control), 260 <tool> (user-defined), 261 <tool>s (user-defined),
// then pieces of "hello world".
inline GgufWriter sentence_piece_vocabulary() {
  TokenList list;
  list.add("<unk>", 0, 2);
  list.add("<s>", 0, 3);
  list.add("</s>", 0, 3);
  constexpr char kHex[] = "0123456789ABCDEF";
  for (unsigned byte = 0; byte < 256; ++byte) list.add(std::string("<0x") + kHex[byte / 16] + kHex[byte % 16] + ">", 0, 6);
  list.add("<|user|>", 0, 3);
  list.add("<tool>", 0, 4);
  list.add("<tool>s", 0, 4);
  float score = 0;
  for (const char* piece :
       {"he",           "ll",     "hell", "\u2581hell", "\u2581hello", "or", "\u2581w", "\u2581wor", "ld", "\u2581world",
        "\u2581\u2581", "\u2581", "h",    "e",          "l",           "o",  "w",       "r",         "d",  "é"})
    list.add(piece, score -= 1);
  GgufWriter writer;
  writer.string("tokenizer.ggml.model", "llama");
  list.write(writer);
  return writer;
}

// Ids: 0..255 the bytes, 256 <|endoftext|> (control), 257 <|im_end|> (control), 258 <tool> (user-defined), then what the merges make.
inline GgufWriter byte_pair_vocabulary(std::string_view pre = "gpt-2") {
  TokenList list;
  for (unsigned byte = 0; byte < 256; ++byte) list.add(text::spell_byte(static_cast<unsigned char>(byte)));
  list.add("<|endoftext|>", 0, 3);
  list.add("<|im_end|>", 0, 3);
  list.add("<tool>", 0, 4);
  std::vector<std::string> merges;
  const std::string space = text::spell_byte(' ');
  for (const auto& [left, right] : std::vector<std::pair<std::string, std::string>>{
           {"l", "l"}, {"h", "e"}, {"he", "ll"}, {"hell", "o"}, {space, "w"}, {"o", "r"}, {space + "w", "or"}, {"l", "d"}, {"a", "a"}}) {
    merges.push_back(left + " " + right);
    list.add(left + right);
  }
  GgufWriter writer;
  writer.string("tokenizer.ggml.model", "gpt2").strings("tokenizer.ggml.merges", merges).u32("tokenizer.ggml.eos_token_id", 257);
  if (!pre.empty()) writer.string("tokenizer.ggml.pre", pre);
  list.write(writer);
  return writer;
}

// Ids: 0 [PAD], 1 [UNK], 2 [CLS], 3 [SEP], then words and continuations.
inline GgufWriter word_piece_vocabulary() {
  TokenList list;
  for (const char* text : {"[PAD]", "[UNK]", "[CLS]", "[SEP]"}) list.add(text, 0, 3);
  for (const char* text : {"\u2581hello", "\u2581he", "llo", "\u2581world", "\u2581!", "\u2581cafe", "\u2581中", "s"}) list.add(text);
  GgufWriter writer;
  writer.string("tokenizer.ggml.model", "bert").u32("tokenizer.ggml.unknown_token_id", 1);
  writer.u32("tokenizer.ggml.cls_token_id", 2).u32("tokenizer.ggml.seperator_token_id", 3);
  list.write(writer);
  return writer;
}

}  // namespace braid::test
