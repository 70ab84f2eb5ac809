#include "text/tokenizer/pipeline/token_pipeline.h"

#include "text/tokenizer/unicode.h"

#include <algorithm>
#include <simdjson.h>
#include <utility>

namespace braid::text {
namespace {

void read_parts_of(const ConfigNode& document, PipelineParts& parts) {
  if (document.text_or("version", "1.0") != "1.0")
    return document.fail(ErrorCode::kUnsupported, "'version' is '" + document.text("version") + "', expected '1.0'");
  const auto model = document.find("model");
  if (!model) return document.fail(ErrorCode::kBadFile, "found no 'model'");
  parts.model = read_word_model(*model, parts.vocabulary);
  if (document.failed()) return;
  if (const auto node = document.find("normalizer")) parts.normalizer = read_normalizer(*node);
  if (const auto node = document.find("pre_tokenizer")) parts.splitter = read_splitter(*node);
  parts.decoder = read_text_decoder(document.find("decoder"));
  parts.frame = read_post_processor(document.find("post_processor"));
  parts.pair = read_pair_processor(document.find("post_processor"));
  if (!document.failed()) parts.added = AddedTokens::read(document, parts.vocabulary, parts.normalizer.get(), parts.warnings);
}

}  // namespace

Result<PipelineParts> read_pipeline(std::string_view tokenizer_json) {
  simdjson::dom::parser parser;
  simdjson::dom::element root;
  const auto error = parser.parse(tokenizer_json.data(), tokenizer_json.size()).get(root);
  if (error != simdjson::SUCCESS || !root.is_object())
    return Error{ErrorCode::kBadFile,
                 std::string("tokenizer.json is not a JSON object: ") +
                     (error != simdjson::SUCCESS ? simdjson::error_message(error) : "it is another value"),
                 {}};
  PipelineParts parts;
  std::optional<Error> fault;
  read_parts_of(ConfigNode(root, {}, fault), parts);
  if (fault) return std::move(*fault);
  return parts;
}

TokenPipeline::TokenPipeline(PipelineParts parts) : parts_(std::move(parts)) {
  texts_ = std::move(parts_.vocabulary.texts);
  for (const AddedToken& token : parts_.added.all()) {
    const auto id = static_cast<std::size_t>(token.id);
    if (id >= texts_.size()) texts_.resize(id + 1);
    texts_[id] = token.normal;
  }
  control_.resize(texts_.size());
  for (const AddedToken& token : parts_.added.all()) control_[static_cast<std::size_t>(token.id)] = token.special;
}

std::vector<TokenId> TokenPipeline::encode(std::string_view text, const EncodeOptions& options) const {
  const std::string valid = valid_utf8(text);
  PieceList list = parts_.added.cut(valid, parts_.normalizer.get(), options);
  if (parts_.splitter) parts_.splitter->split(list);
  const bool control_allowed = options.parse_special && options.literal.empty();
  std::vector<TokenId> tokens;
  WordScratch scratch;
  for (const TextPiece& piece : list.pieces) {
    if (piece.token >= 0) {
      tokens.push_back(piece.token);
    } else {
      encode_word(list.of(piece), control_allowed, scratch, tokens);
    }
  }
  if (!options.add_special) return tokens;
  std::vector<TokenId> framed;
  framed.reserve(tokens.size() + parts_.frame.size());
  for (const auto& token : parts_.frame) {
    if (token) {
      framed.push_back(*token);
    } else {
      framed.insert(framed.end(), tokens.begin(), tokens.end());
    }
  }
  return framed;
}

EncodedPair TokenPipeline::encode_pair(std::string_view first, std::string_view second) const {
  const EncodeOptions plain{.add_special = false, .parse_special = true};
  EncodedPair pair;
  for (const PairPiece& piece : parts_.pair) {
    if (piece.type == 1 && pair.second_text == 0) pair.second_text = static_cast<std::int32_t>(pair.tokens.size());
    if (piece.token) {
      pair.tokens.push_back(*piece.token);
      continue;
    }
    const std::vector<TokenId> tokens = encode(piece.text == 0 ? first : second, plain);
    if (piece.text != 0) pair.second = {pair.tokens.size(), pair.tokens.size() + tokens.size()};
    pair.tokens.insert(pair.tokens.end(), tokens.begin(), tokens.end());
  }
  return pair;
}

// A model may hold the texts of control tokens too. Where they are to stay words, such a word is made of its characters.
void TokenPipeline::encode_word(std::string_view word, bool control_allowed, WordScratch& scratch, std::vector<TokenId>& out) const {
  const std::size_t before = out.size();
  parts_.model->tokenize(word, scratch, out);
  const auto is_forbidden = [this](TokenId token) { return is_control(token) && token != parts_.vocabulary.unknown; };
  if (control_allowed || std::none_of(out.begin() + static_cast<std::ptrdiff_t>(before), out.end(), is_forbidden)) return;
  out.resize(before);
  for (std::size_t at = 0; at < word.size();) {
    const std::size_t size = decode_utf8(word, at).size;
    parts_.model->tokenize(word.substr(at, size), scratch, out);
    at += size;
  }
}

std::string TokenPipeline::decode(std::span<const TokenId> tokens, bool skip_special) const {
  std::vector<std::string> texts;
  texts.reserve(tokens.size());
  for (const TokenId token : tokens) {
    if (token < 0 || static_cast<std::size_t>(token) >= size() || (skip_special && is_control(token))) continue;
    texts.push_back(text(token));
  }
  parts_.decoder->decode(texts);
  std::string out;
  for (const std::string& part : texts) out += part;
  return out;
}

}  // namespace braid::text
