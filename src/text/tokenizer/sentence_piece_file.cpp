// SentencePiece's files are one message of Protocol Buffers (sentencepiece_model.proto), of which a few fields count here.
#include "text/tokenizer/model_file.h"

#include <bit>
#include <cmath>
#include <cstring>
#include <fmt/format.h>
#include <optional>
#include <simdjson.h>
#include <string>
#include <utility>

namespace braid::text {
namespace {

constexpr std::size_t kMostPieces = 4'000'000;
constexpr std::size_t kLongestPiece = 2048;  // in bytes: cutting a piece in two takes time quadratic in its length

struct WireField {
  std::uint64_t number = 0;
  std::uint64_t value = 0;  // of a varint, or the bits of a fixed one
  std::string_view bytes;   // of a field with a length
};

// The fields of one message, in order.
class WireReader {
 public:
  explicit WireReader(std::string_view bytes) : rest_(bytes) {}

  // Nothing at the end, and when the message is damaged.
  std::optional<WireField> next() {
    if (rest_.empty() || damaged_) return std::nullopt;
    WireField field;
    const std::uint64_t key = varint();
    field.number = key >> 3U;
    switch (key & 7U) {
      case 0:
        field.value = varint();
        break;
      case 1:
        field.value = fixed(8);
        break;
      case 2:
        field.bytes = take(varint());
        break;
      case 5:
        field.value = fixed(4);
        break;
      default:
        damaged_ = true;
    }
    return damaged_ ? std::nullopt : std::optional(field);
  }
  bool damaged() const { return damaged_; }

 private:
  std::string_view take(std::uint64_t size) {
    if (size > rest_.size()) {
      damaged_ = true;
      return {};
    }
    const std::string_view bytes = rest_.substr(0, size);
    rest_.remove_prefix(size);
    return bytes;
  }

  std::uint64_t fixed(std::size_t size) {
    std::uint64_t value = 0;
    std::size_t shift = 0;
    for (const char byte : take(size)) {
      value |= static_cast<std::uint64_t>(static_cast<unsigned char>(byte)) << shift;
      shift += 8;
    }
    return value;
  }

  std::uint64_t varint() {
    std::uint64_t value = 0;
    for (std::size_t shift = 0; shift < 64; shift += 7) {
      const std::string_view byte = take(1);
      if (byte.empty()) return 0;
      const auto bits = static_cast<unsigned char>(byte[0]);
      value |= static_cast<std::uint64_t>(bits & 0x7fU) << shift;
      if (bits < 0x80) return value;
    }
    damaged_ = true;
    return 0;
  }

  std::string_view rest_;
  bool damaged_ = false;
};

struct SentenceModel {
  Vocabulary vocabulary;
  SentenceRules rules;
  std::uint64_t type = 1;  // 1 unigram, 2 BPE
  std::int64_t unknown = 0, bos = 1, eos = 2;
};

Error damaged_file(const std::string& what) { return {ErrorCode::kBadFile, "tokenizer.model is no file of SentencePiece: " + what, {}}; }

Result<void> add_piece(std::string_view bytes, Vocabulary& vocabulary) {
  VocabularyEntry entry;
  WireReader reader(bytes);
  while (const auto field = reader.next()) {
    if (field->number == 1) entry.text = field->bytes;
    if (field->number == 2) entry.score = std::bit_cast<float>(static_cast<std::uint32_t>(field->value));
    if (field->number == 3)  // numbered as in GGUF
      entry.type = field->value >= 1 && field->value <= 6 ? static_cast<TokenType>(field->value) : TokenType::kUndefined;
  }
  const std::size_t id = vocabulary.entries.size();
  if (reader.damaged() || id >= kMostPieces) return damaged_file(fmt::format("piece {} is damaged", id));
  if (entry.text.size() > kLongestPiece) return damaged_file(fmt::format("piece {} has {} bytes", id, entry.text.size()));
  if (std::isnan(entry.score)) return damaged_file(fmt::format("the score of piece {} is not a number", id));
  vocabulary.entries.push_back(std::move(entry));
  return {};
}

bool read_trainer(std::string_view bytes, SentenceModel& model) {
  WireReader reader(bytes);
  while (const auto field = reader.next()) {
    if (field->number == 3) model.type = field->value;
    if (field->number == 24) model.rules.space_is_suffix = field->value != 0;
    if (field->number == 40) model.unknown = static_cast<std::int32_t>(field->value);
    if (field->number == 41) model.bos = static_cast<std::int32_t>(field->value);
    if (field->number == 42) model.eos = static_cast<std::int32_t>(field->value);
  }
  return !reader.damaged();
}

bool read_normalizer_spec(std::string_view bytes, SentenceModel& model) {
  WireReader reader(bytes);
  while (const auto field = reader.next()) {
    if (field->number == 2) model.rules.charsmap = field->bytes;
    if (field->number == 3) model.rules.add_space_prefix = field->value != 0;
    if (field->number == 4) model.rules.remove_extra_whitespaces = field->value != 0;
  }
  return !reader.damaged();
}

Result<SentenceModel> read_model(std::string_view bytes) {
  SentenceModel model;
  model.rules.remove_extra_whitespaces = true;  // what the format says where the field is absent
  WireReader reader(bytes);
  while (const auto field = reader.next()) {
    if (field->number == 1)
      if (const auto added = add_piece(field->bytes, model.vocabulary); !added) return added.error();
    if (field->number == 2 && !read_trainer(field->bytes, model)) return damaged_file("its training settings are damaged");
    if (field->number == 3 && !read_normalizer_spec(field->bytes, model)) return damaged_file("its normalizer is damaged");
  }
  if (reader.damaged()) return damaged_file("a field reaches beyond the end");
  if (model.vocabulary.entries.empty()) return damaged_file("it has no pieces");
  return model;
}

std::optional<TokenId> id_within(std::int64_t id, const Vocabulary& vocabulary) {
  return id >= 0 && static_cast<std::size_t>(id) < vocabulary.size() ? std::optional(static_cast<TokenId>(id)) : std::nullopt;
}

}  // namespace

Result<ModelFile> read_sentence_piece_file(std::string_view bytes, std::string_view config) {
  auto model = read_model(bytes);
  if (!model) return model.error();
  Vocabulary& vocabulary = model->vocabulary;
  const bool unigram = model->type == 1;
  if (!unigram && model->type != 2)
    return Error{ErrorCode::kUnsupported,
                 fmt::format("tokenizer.model is of SentencePiece's type {}, expected 1 (unigram) or 2 (BPE)", model->type),
                 {}};
  vocabulary.kind = unigram ? TokenizerKind::kUnigram : TokenizerKind::kSentencePiece;
  vocabulary.unknown = id_within(model->unknown, vocabulary);
  vocabulary.bos = id_within(model->bos, vocabulary);
  vocabulary.eos = id_within(model->eos, vocabulary);
  vocabulary.add_bos = !unigram && vocabulary.bos.has_value();
  vocabulary.add_eos = unigram && vocabulary.eos.has_value();
  if (!add_configured_tokens(config, vocabulary))
    return Error{ErrorCode::kBadFile, "tokenizer_config.json: the ids of 'added_tokens_decoder' do not fit tokenizer.model", {}};
  auto encoder = unigram ? make_unigram_encoder(vocabulary, model->rules) : make_sentence_piece_encoder(vocabulary, model->rules);
  if (!encoder) return Error{encoder.error().code, "tokenizer.model: " + encoder.error().message, {}};
  return ModelFile{std::move(vocabulary), std::move(*encoder)};
}

bool add_configured_tokens(std::string_view config, Vocabulary& vocabulary) {
  constexpr std::size_t kLargestGap = 10'000;
  simdjson::dom::parser parser;
  simdjson::dom::element root;
  simdjson::dom::object tokens;
  if (!config.empty() && parser.parse(config.data(), config.size()).get(root) == simdjson::SUCCESS &&
      root["added_tokens_decoder"].get(tokens) == simdjson::SUCCESS)
    for (const auto& [key, token] : tokens) {
      std::string_view content;
      bool special = false;
      std::uint64_t id = 0;
      for (const char digit : key)
        id = id < kMostPieces && digit >= '0' && digit <= '9' ? 10 * id + static_cast<unsigned>(digit - '0') : kMostPieces;
      if (token["content"].get(content) != simdjson::SUCCESS) continue;
      if (token["special"].get(special) != simdjson::SUCCESS) special = false;
      if (id > vocabulary.size() + kLargestGap) return false;
      if (id >= vocabulary.size()) vocabulary.entries.resize(id + 1, {"", 0.0F, TokenType::kUnused});
      VocabularyEntry& entry = vocabulary.entries[id];
      entry.text = content;
      if (entry.type != TokenType::kUnknown) entry.type = special ? TokenType::kControl : TokenType::kUserDefined;
    }
  vocabulary.ids.clear();
  vocabulary.ids.reserve(vocabulary.size());
  for (std::size_t i = 0; i < vocabulary.size(); ++i)
    if (!vocabulary.entries[i].text.empty()) vocabulary.ids.emplace(vocabulary.entries[i].text, static_cast<TokenId>(i));
  return true;
}

}  // namespace braid::text
