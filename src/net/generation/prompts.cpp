#include "net/generation/prompts.h"

#include "net/generation/shown_images.h"
#include "net/generation/tool_texts.h"

#include <algorithm>
#include <array>
#include <fmt/format.h>
#include <utility>

namespace braid::net {
namespace {

constexpr std::size_t kMaxPromptScores = 4'000'000;  // an answer repeats them for every choice
constexpr std::size_t kBytesOfChat = 2048;           // what rendering a short one is like
constexpr std::size_t kMaxVectorValues = 4'000'000;  // of vectors of single tokens

using Prompts = std::vector<std::vector<TokenId>>;

// Whether the schema's types allow nothing but strings, and null if it is `optional`.
bool is_text(const Value& schema, bool optional) {
  const auto fits = [optional](const Value& name) { return name == Value("string") || (optional && name == Value("null")); };
  if (const Value* type = schema.find("type")) {
    const auto* names = type->get_if<ValueList>();
    return names != nullptr ? !names->empty() && std::all_of(names->begin(), names->end(), fits) : fits(*type);
  }
  for (const char* keyword : {"anyOf", "oneOf"}) {
    const Value* branches = schema.find(keyword);
    const auto* list = branches != nullptr ? branches->get_if<ValueList>() : nullptr;
    if (list != nullptr && !list->empty())
      return std::all_of(list->begin(), list->end(), [optional](const Value& branch) { return is_text(branch, optional); });
  }
  return false;
}

void add_texts(AnswerSyntax& syntax, const ToolFunction& function) {
  const Value* properties = function.parameters.find("properties");
  const auto* members = properties != nullptr ? properties->get_if<ValueDict>() : nullptr;
  if (members == nullptr) return;
  for (const auto& [name, schema] : *members) {
    if (is_text(schema, false)) {
      syntax.texts.emplace_back(function.name, name);
    } else if (is_text(schema, true)) {
      syntax.optional_texts.emplace_back(function.name, name);
    }
  }
}

// Jinja's variable, or Go's field.
bool knows_tools(std::string_view source) {
  return source.find("tools") != std::string_view::npos || source.find(".Tools") != std::string_view::npos;
}

// Whether the template looks for messages without content.
bool asks_for_none(std::string_view source) {
  constexpr std::array<std::string_view, 3> kQuestions = {"content'] is none", "content\"] is none", ".content is none"};
  return std::any_of(kQuestions.begin(), kQuestions.end(),
                     [source](std::string_view asked) { return source.find(asked) != std::string_view::npos; });
}

Result<RenderedChat> render_calls(const TextCodec& codec, ChatPrompt& chat) {
  Result<RenderedChat> rendered = codec.render(chat);
  if (!rendered && write_arguments_as_text(chat)) rendered = codec.render(chat);
  return rendered;
}

// How the answer to a rendered chat is to be split; nothing when it is text throughout.
std::optional<AnswerSyntax> syntax_of(const TextCodec& codec, const std::optional<ToolRules>& tools, std::string_view source,
                                      std::string_view rendered) {
  AnswerSyntax syntax;
  find_reasoning(syntax, codec, source, rendered);
  if (tools) {
    syntax.calls = &call_syntax_of(knows_tools(source) ? source : std::string_view());  // as write_tools_as_text() tells the model
    for (const ToolFunction& function : tools->functions) {
      syntax.functions.push_back(function.name);
      add_texts(syntax, function);
    }
    syntax.single_call = !tools->parallel;
  }
  if (syntax.reasoning.open.empty() && syntax.calls == nullptr) return std::nullopt;
  find_control_markers(syntax, codec);
  return syntax;
}

Result<Prompts> encode_chat(const ServedModel& model, GenerationCall& call) {
  const TextCodec& codec = *model.codec;
  auto& chat = std::get<ChatPrompt>(call.prompt);
  const std::string_view source = codec.template_source(chat);
  if (!call.prompt_ids.empty()) {
    std::string written;
    for (const TokenId id : call.prompt_ids) written += codec.token_bytes(id);
    call.syntax = syntax_of(codec, call.tools, source, written);
    return Prompts{call.prompt_ids};
  }
  const Result<void> read = read_images(model, call);
  if (!read) return read.error();
  const Result<RenderedChat> rendered = call.images.empty() ? render_chat(codec, chat) : render_with_images(model, call);
  if (!rendered) return rendered.error();
  call.syntax = syntax_of(codec, call.tools, source, rendered->text);
  const EncodeOptions options{.add_special = call.add_special.value_or(false), .parse_special = true, .literal = rendered->literal};
  Result<std::vector<TokenId>> ids = codec.encode(rendered->text, options);
  if (!ids) return ids.error();
  ids->insert(ids->begin(), call.context.begin(), call.context.end());
  const Result<void> placed = call.images.empty() ? Result<void>() : place_images(model, call, *ids);
  if (!placed) return placed.error();
  Prompts prompts;
  prompts.push_back(std::move(*ids));
  return prompts;
}

Result<std::vector<TokenId>> encode_item(const TextCodec& codec, const PromptItem& item, const EncodeOptions& options) {
  if (const auto* ids = std::get_if<std::vector<TokenId>>(&item)) return *ids;
  return codec.encode(std::get<std::string>(item), options);
}

// Prefix, suffix, middle: the order that the families were trained on most.
Result<std::vector<TokenId>> encode_infill(const TextCodec& codec, const PromptItem& before, const std::string& after) {
  const InfillTokens marks = codec.infill_tokens().value();
  const EncodeOptions plain{.add_special = false, .parse_special = false};
  const Result<std::vector<TokenId>> front = encode_item(codec, before, plain);
  if (!front) return front.error();
  const Result<std::vector<TokenId>> back = codec.encode(after, plain);
  if (!back) return back.error();
  std::vector<TokenId> ids;
  if (marks.begin) ids.push_back(*marks.begin);
  ids.push_back(marks.prefix);
  ids.insert(ids.end(), front->begin(), front->end());
  ids.push_back(marks.suffix);
  ids.insert(ids.end(), back->begin(), back->end());
  ids.push_back(marks.middle);
  return ids;
}

Result<Prompts> encode_pairs(const TextCodec& codec, GenerationCall& call) {
  const auto& items = std::get<std::vector<PromptItem>>(call.prompt);
  Prompts prompts;
  for (std::size_t i = 0; i < items.size(); ++i) {
    Result<EncodedPair> pair = codec.encode_pair(std::get<std::string>(items[i]), call.second_texts[i]);
    if (!pair) return pair.error();
    prompts.push_back(std::move(pair->tokens));
    call.second_begins.push_back(pair->second_text);
    call.documents.push_back(pair->second);
  }
  return prompts;
}

Result<Prompts> encode_framed(const TextCodec& codec, const GenerationCall& call) {
  const auto& items = std::get<std::vector<PromptItem>>(call.prompt);
  Prompts prompts;
  for (std::size_t i = 0; i < items.size(); ++i) {
    const std::string text = call.frame->before[i] + std::get<std::string>(items[i]) + call.frame->behind;
    Result<std::vector<TokenId>> ids = codec.encode(text, {.add_special = false, .parse_special = true});
    if (!ids) return ids.error();
    prompts.push_back(std::move(*ids));
  }
  return prompts;
}

// Each as its template writes it.
Result<Prompts> encode_chats(const TextCodec& codec, GenerationCall& call) {
  Prompts prompts;
  auto& items = std::get<std::vector<PromptItem>>(call.prompt);
  for (ChatPrompt& chat : call.chats) {
    const Result<RenderedChat> rendered = render_chat(codec, chat);
    if (!rendered) return rendered.error();
    chat = ChatPrompt();
    auto ids = codec.encode(rendered->text,
                            {.add_special = call.add_special.value_or(false), .parse_special = true, .literal = rendered->literal});
    if (!ids) return ids.error();
    items.emplace_back(*ids);
    prompts.push_back(std::move(*ids));
  }
  return prompts;
}

Result<Prompts> encode_items(const TextCodec& codec, GenerationCall& call) {
  if (!call.second_texts.empty()) return encode_pairs(codec, call);
  if (call.frame) return encode_framed(codec, call);
  const EncodeOptions options{.add_special = call.add_special.value_or(true), .parse_special = true};
  Prompts prompts;
  for (const PromptItem& item : std::get<std::vector<PromptItem>>(call.prompt)) {
    Result<std::vector<TokenId>> ids = call.suffix ? encode_infill(codec, item, *call.suffix) : encode_item(codec, item, options);
    if (!ids) return ids.error();
    prompts.push_back(std::move(*ids));
  }
  return prompts;
}

std::string text_of(const TextCodec& codec, const PromptItem& item) {
  if (const auto* text = std::get_if<std::string>(&item)) return *text;
  std::string text;
  const std::unique_ptr<StreamDecoder> decoder = codec.new_decoder();
  for (const TokenId id : std::get<std::vector<TokenId>>(item)) decoder->append(id, text);
  decoder->finish(text);
  return text;
}

// kContextLength when the prompt leaves no room for what is asked at least. `field` is where it came from.
Result<void> check_length(const LongPrompt& prompt, const Voice& voice, const std::string& field) {
  if (prompt.tokens == 0) return invalid_argument(fmt::format("'{}' is empty: it gives no token to start from", field), field);
  if (prompt.tokens <= prompt.most()) return {};
  return Error{ErrorCode::kContextLength, voice.too_long(prompt), field};
}

GenerationRequest request_of(const GenerationCall& call, std::vector<TokenId> prompt, std::int32_t context) {
  GenerationRequest request;
  const auto room = context - static_cast<std::int32_t>(prompt.size());
  request.prompt = std::move(prompt);
  request.sampling = call.sampling;
  if (call.candidates > call.choices) request.sampling.top_logprobs = std::max(call.sampling.top_logprobs, 0);
  request.stop = call.stop;
  request.stop.max_tokens = std::min(call.max_tokens.value_or(context), room);
  request.stop.min_tokens = std::min(request.stop.min_tokens, request.stop.max_tokens);
  request.marked_turns = call.marked_turns;
  request.client = call.client;
  request.cache_salt = call.cache_salt;
  request.priority = call.priority.value_or(0);
  request.prompt_logprobs = call.echo ? std::max(call.prompt_logprobs, call.sampling.top_logprobs) : call.prompt_logprobs;
  request.constraint = call.constraint;
  request.speculation = call.speculation;
  request.tells_revisions = call.tells_revisions;
  request.pooling = call.pooling;
  request.pooled_output = call.pooled_output;
  request.task = call.task;
  return request;
}

}  // namespace

Result<RenderedChat> render_chat(const TextCodec& codec, ChatPrompt& chat) {
  const std::string_view source = codec.template_source(chat);
  if (!knows_tools(source)) write_tools_as_text(chat);
  if (wants_parts(source)) write_contents_as_parts(chat);
  if (asks_for_none(source)) {
    ChatPrompt bare = chat;
    if (leave_out_empty_content(bare)) {
      if (Result<RenderedChat> rendered = render_calls(codec, bare)) return rendered;
    }
  }
  return render_calls(codec, chat);
}

Result<Prompts> encode_prompts(const ServedModel& model, GenerationCall& call) {
  if (!call.chats.empty()) return encode_chats(*model.codec, call);
  const auto* chat = std::get_if<ChatPrompt>(&call.prompt);
  return chat != nullptr ? encode_chat(model, call) : encode_items(*model.codec, call);
}

std::size_t bytes_to_encode(const GenerationCall& call) {
  std::size_t bytes = 0;
  if (const auto* items = std::get_if<std::vector<PromptItem>>(&call.prompt))
    for (const PromptItem& item : *items)
      if (const auto* text = std::get_if<std::string>(&item)) bytes += text->size();
  for (const std::string& text : call.second_texts) bytes += text.size();
  if (call.frame)
    for (const std::string& before : call.frame->before) bytes += before.size() + call.frame->behind.size();
  return bytes + call.chats.size() * kBytesOfChat;
}

std::vector<std::string> last_words(const ChatPrompt& chat) {
  const auto* messages = chat.messages.get_if<ValueList>();
  const Value* last = messages != nullptr && !messages->empty() ? &messages->back() : nullptr;
  const Value* role = last != nullptr ? last->find("role") : nullptr;
  const Value* content = role != nullptr && *role == Value("assistant") ? last->find("content") : nullptr;
  const auto* text = content != nullptr ? content->get_if<std::string>() : nullptr;
  if (text == nullptr) return {};
  return {*text};
}

std::vector<std::string> prompt_texts(const TextCodec& codec, const std::vector<PromptItem>& items) {
  std::vector<std::string> texts;
  for (const PromptItem& item : items) texts.push_back(text_of(codec, item));
  return texts;
}

Result<std::vector<GenerationRequest>> make_requests(const ServedModel& model, const GenerationCall& call, const std::string& id,
                                                     std::uint64_t seed, Prompts prompts, const Voice& voice) {
  const std::string field(call.prompt_field);
  const bool answer = call.max_tokens.value_or(1) > 0;
  const std::size_t total = prompts.size() * static_cast<std::size_t>(call.candidates);
  if (total > model.most_waiting)  // they are queued at once: a full queue would never let them in
    return invalid_argument(fmt::format("{} answers are asked for at once, and this server's queue holds {}", total, model.most_waiting),
                            "n");
  const std::int32_t scored = call.echo ? std::max(call.prompt_logprobs, call.sampling.top_logprobs) : call.prompt_logprobs;
  std::size_t scores = 0;  // of prompt tokens, over all choices
  std::vector<GenerationRequest> requests;
  std::size_t place = 0;  // of the prompt
  std::size_t values = 0;
  for (std::vector<TokenId>& prompt : prompts) {
    const std::int32_t second = call.second_begins.empty() ? 0 : call.second_begins[place];
    ++place;
    const Result<void> fits = check_length({prompt.size(), model.context_length, answer}, voice, field);
    if (!fits) return fits.error();
    if (call.pooling == Pooling::kEach) values += prompt.size() * static_cast<std::size_t>(std::max<std::int64_t>(1, model.vectors.width));
    if (values > kMaxVectorValues)
      return invalid_argument(fmt::format("the vectors of all tokens have more than {} numbers", kMaxVectorValues), field);
    if (scored >= 0) scores += prompt.size() * static_cast<std::size_t>(call.candidates) * (static_cast<std::size_t>(scored) + 1);
    if (scores > kMaxPromptScores)
      return invalid_argument(fmt::format("more than {} log-probabilities of prompts are asked for", kMaxPromptScores), "n");
    for (std::int32_t i = 0; i < call.candidates; ++i) {
      GenerationRequest& request = requests.emplace_back(request_of(call, prompt, model.context_length));
      const std::size_t choice = requests.size() - 1;
      request.second_text = second;
      request.adapter = model.adapter;
      request.media = call.media;
      request.images = call.pixels;
      if (i > 0 && !call.stream) request.prompt_logprobs = -1;  // the first candidate's are those of all
      request.id = choice_id(id, choice, total);
      request.sampling.seed = seed;
      request.sampling.choice = static_cast<std::uint32_t>(choice);
    }
  }
  return requests;
}

std::string choice_id(const std::string& answer_id, std::size_t choice, std::size_t choices) {
  return choices > 1 ? fmt::format("{}/{}", answer_id, choice) : answer_id;
}

std::string answer_id(const std::string& choice_id) { return choice_id.substr(0, choice_id.find('/')); }

}  // namespace braid::net
