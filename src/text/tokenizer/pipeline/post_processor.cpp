#include "text/tokenizer/pipeline/post_processor.h"

#include <fmt/format.h>

namespace braid::text {
namespace {

// "sep": ["</s>", 2]
TokenId token_of(const ConfigNode& node, std::string_view name) {
  const auto items = node.items(name);
  if (items.size() == 2) return static_cast<TokenId>(items[1].as_count());
  node.fail(ErrorCode::kBadFile, fmt::format("'{}.{}' is not a text and its id", node.path(), name));
  return 0;
}

void append_special(const ConfigNode& node, const std::string& name, TokenFrame& frame) {
  const auto all = node.find("special_tokens");
  const auto special = all ? all->find(name) : std::nullopt;
  if (!special) return node.fail(ErrorCode::kBadFile, fmt::format("'{}.special_tokens' lacks '{}'", node.path(), name));
  for (const ConfigNode& id : special->items("ids")) frame.emplace_back(static_cast<TokenId>(id.as_count()));
}

TokenFrame read_template(const ConfigNode& node) {
  TokenFrame frame;
  for (const ConfigNode& piece : node.items("single")) {
    if (const auto special = piece.find("SpecialToken")) {
      append_special(node, special->text("id"), frame);
    } else if (const auto sequence = piece.find("Sequence"); sequence && sequence->text("id") == "A") {
      frame.emplace_back();
    } else {
      piece.fail(ErrorCode::kBadFile, fmt::format("'{}' is neither a SpecialToken nor the Sequence A", piece.path()));
    }
  }
  return frame;
}

// Each part takes what the one before it made for the text.
TokenFrame read_parts(const ConfigNode& node) {
  TokenFrame frame = {std::nullopt};
  for (const ConfigNode& part : node.items("processors")) {
    const TokenFrame outer = read_post_processor(part);
    TokenFrame joined;
    for (const auto& token : outer) {
      if (token) {
        joined.push_back(token);
      } else {
        joined.insert(joined.end(), frame.begin(), frame.end());
      }
    }
    frame = std::move(joined);
    if (frame.size() > 1024) node.fail(ErrorCode::kBadFile, fmt::format("'{}' adds more than 1000 tokens to every text", node.path()));
    if (node.failed()) break;
  }
  return frame;
}

PairFrame read_pair_template(const ConfigNode& node) {
  PairFrame frame;
  for (const ConfigNode& piece : node.items("pair")) {
    if (const auto special = piece.find("SpecialToken")) {
      TokenFrame tokens;
      append_special(node, special->text("id"), tokens);
      for (const auto& token : tokens) frame.push_back({token, 0, static_cast<int>(special->count_or("type_id", 0))});
    } else if (const auto sequence = piece.find("Sequence")) {
      frame.push_back({std::nullopt, sequence->text("id") == "B" ? 1 : 0, static_cast<int>(sequence->count_or("type_id", 0))});
    } else {
      piece.fail(ErrorCode::kBadFile, fmt::format("'{}' is neither a SpecialToken nor a Sequence", piece.path()));
    }
  }
  return frame;
}

}  // namespace

PairFrame read_pair_processor(const std::optional<ConfigNode>& node) {
  const PairFrame plain = {{std::nullopt, 0, 0}, {std::nullopt, 1, 0}};
  if (!node || node->failed()) return plain;
  const std::string type = node->text("type");
  if (type == "TemplateProcessing") return node->find("pair") ? read_pair_template(*node) : plain;
  if (type == "BertProcessing") {
    const TokenId cls = token_of(*node, "cls");
    const TokenId sep = token_of(*node, "sep");
    return {{cls, 0, 0}, {std::nullopt, 0, 0}, {sep, 0, 0}, {std::nullopt, 1, 1}, {sep, 0, 1}};
  }
  if (type == "RobertaProcessing") {
    const TokenId cls = token_of(*node, "cls");
    const TokenId sep = token_of(*node, "sep");
    return {{cls, 0, 0}, {std::nullopt, 0, 0}, {sep, 0, 0}, {sep, 0, 0}, {std::nullopt, 1, 0}, {sep, 0, 0}};
  }
  if (type != "Sequence") return plain;
  for (const ConfigNode& part : node->items("processors"))  // the one that adds tokens
    if (PairFrame frame = read_pair_processor(part); frame.size() > plain.size()) return frame;
  return plain;
}

TokenFrame read_post_processor(const std::optional<ConfigNode>& node) {
  if (!node) return {std::nullopt};
  const std::string type = node->text("type");
  if (node->failed() || type == "ByteLevel") return {std::nullopt};  // sets offsets only
  if (type == "TemplateProcessing") return read_template(*node);
  if (type == "BertProcessing" || type == "RobertaProcessing") return {token_of(*node, "cls"), std::nullopt, token_of(*node, "sep")};
  if (type == "Sequence") return read_parts(*node);
  node->refuse_type(type, "'BertProcessing', 'ByteLevel', 'RobertaProcessing', 'Sequence', 'TemplateProcessing'");
  return {};
}

}  // namespace braid::text
