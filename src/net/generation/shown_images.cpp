#include "net/generation/shown_images.h"

#include "net/generation/prompts.h"

#include <algorithm>
#include <cstdint>
#include <fmt/format.h>
#include <utility>

namespace braid::net {
namespace {

constexpr std::string_view kPlace = "\x02image\x03";  // in no sane message, and handed on by templates as words

// The numbers of the images that the chat shows, in its order: of a conversation without its oldest turns, not all.
std::vector<std::size_t> shown_in(const ChatPrompt& chat) {
  std::vector<std::size_t> numbers;
  for (const Value& message : *chat.messages.get_if<ValueList>()) {
    const Value* content = message.find("content");
    const auto* parts = content != nullptr ? content->get_if<ValueList>() : nullptr;
    for (std::size_t i = 0; parts != nullptr && i < parts->size(); ++i) {
      const Value* number = (*parts)[i].find("number");
      if (const auto* place = number != nullptr ? number->get_if<std::int64_t>() : nullptr)
        numbers.push_back(static_cast<std::size_t>(*place));
    }
  }
  return numbers;
}

// For a template that takes texts alone.
void write_images_as_text(ChatPrompt& chat) {
  for (Value& message : *chat.messages.get_if<ValueList>()) {
    auto* members = message.get_if<ValueDict>();
    Value* content = members != nullptr ? find_member(*members, "content") : nullptr;
    const auto* parts = content != nullptr ? content->get_if<ValueList>() : nullptr;
    if (parts == nullptr) continue;
    std::string text;
    for (const Value& part : *parts) {
      const Value* words = part.find("text");
      if (!text.empty()) text += '\n';
      text += words != nullptr ? *words->get_if<std::string>() : std::string(kPlace);
    }
    *content = std::move(text);
  }
}

// Where a placeholder stands that no client has written.
std::vector<std::size_t> find_places(const RenderedChat& chat, std::string_view placeholder) {
  std::vector<std::size_t> places;
  for (std::size_t at = chat.text.find(placeholder); at != std::string::npos; at = chat.text.find(placeholder, at + placeholder.size()))
    if (!std::ranges::binary_search(chat.literal, at)) places.push_back(at);
  return places;
}

// nullopt: the template has not written as many placeholders as there are images.
std::optional<RenderedChat> with_images(const RenderedChat& chat, std::string_view placeholder, const std::vector<std::size_t>& shown,
                                        const std::vector<ReadImage>& images) {
  const std::vector<std::size_t> places = find_places(chat, placeholder);
  if (places.size() != shown.size()) return std::nullopt;
  RenderedChat out;
  std::size_t begin = 0;
  std::size_t literal = 0;
  const auto copy_up_to = [&](std::size_t end) {
    for (; literal < chat.literal.size() && chat.literal[literal] < end; ++literal)
      out.literal.push_back(out.text.size() + chat.literal[literal] - begin);
    out.text.append(chat.text, begin, end - begin);
  };
  for (std::size_t i = 0; i < places.size(); ++i) {
    copy_up_to(places[i]);
    out.text += images[shown[i]].text;
    begin = places[i] + placeholder.size();
  }
  copy_up_to(chat.text.size());
  return out;
}

}  // namespace

Error cannot_see(const ServedModel& model, const GenerationCall& call, const std::vector<std::string>& seeing) {
  const std::string path = call.images.empty() ? std::string() : call.images.front().path;
  if (seeing.empty())
    return invalid_argument(fmt::format("'{}' is an image, and the model '{}' reads text alone; so do all models here", path, model.id),
                            path);
  return invalid_argument(fmt::format("'{}' is an image, and the model '{}' reads text alone; {} here: {}", path, model.id,
                                      seeing.size() == 1 ? "one that sees is" : "those that see are", fmt::join(seeing, ", ")),
                          path);
}

Result<void> read_images(const ServedModel& model, GenerationCall& call) {
  if (model.images == nullptr && !call.images.empty()) return cannot_see(model, call, {});
  std::int64_t vectors = 0;
  for (std::size_t i = call.read.size(); i < call.images.size(); ++i) {
    wish::ShownImage& image = call.images[i];
    if (image.file.empty())
      return invalid_argument(fmt::format("'{}' is not fetched for this: give the image as a data: URL", image.path), image.path);
    Result<ReadImage> read = model.images->read(image.file, {image.detail, static_cast<std::int32_t>(i), call.images.size() == 1});
    if (!read) {
      Error error = read.error();
      error.message = fmt::format("'{}': {}", image.path, error.message);
      error.param = image.path;
      return error;
    }
    image.file = std::string();
    vectors += read->pixels->vectors;
    if (vectors >= model.context_length)
      return Error{
          ErrorCode::kContextLength,
          fmt::format("the first {} images alone take {} tokens, and the model's context has {}", i + 1, vectors, model.context_length),
          image.path};
    call.read.push_back(std::move(*read));
  }
  return {};
}

Result<RenderedChat> render_with_images(const ServedModel& model, const GenerationCall& call) {
  const auto& chat = std::get<ChatPrompt>(call.prompt);
  const std::vector<std::size_t> shown = shown_in(chat);
  if (model.codec->template_source(chat).find("image") != std::string_view::npos) {
    ChatPrompt parts = chat;
    const Result<RenderedChat> rendered = render_chat(*model.codec, parts);
    if (rendered)
      if (std::optional<RenderedChat> whole = with_images(*rendered, model.images->placeholder(), shown, call.read))
        return std::move(*whole);
  }
  ChatPrompt text = chat;
  write_images_as_text(text);
  const Result<RenderedChat> rendered = render_chat(*model.codec, text);
  if (!rendered) return rendered.error();
  if (std::optional<RenderedChat> whole = with_images(*rendered, kPlace, shown, call.read)) return std::move(*whole);
  return invalid_argument("the model's chat template does not show all images of the conversation", std::string(call.prompt_field));
}

Result<void> place_images(const ServedModel& model, GenerationCall& call, const std::vector<TokenId>& tokens) {
  call.media.clear();
  call.pixels.clear();
  for (const std::size_t number : shown_in(std::get<ChatPrompt>(call.prompt))) call.pixels.push_back(call.read[number].pixels);
  const TokenId mark = model.images->vector_token();
  std::size_t image = 0;    // whose vectors come next
  std::int32_t offset = 0;  // of the next among them
  bool goes_on = false;     // the token before was one of the same image
  for (std::size_t at = 0; at < tokens.size(); ++at) {
    if (tokens[at] != mark) {
      goes_on = false;
      continue;
    }
    if (image == call.pixels.size())
      return invalid_argument("the prompt has more marks of images than images", std::string(call.prompt_field));
    const Pixels& pixels = *call.pixels[image];
    if (goes_on) {
      ++call.media.back().count;
    } else {
      constexpr std::uint64_t kSpread = 0x9E3779B97F4A7C15;
      call.media.push_back(
          {static_cast<std::int32_t>(at), 1, {pixels.digest[0] + kSpread * static_cast<std::uint64_t>(offset), pixels.digest[1]}});
    }
    goes_on = ++offset < pixels.vectors;
    if (goes_on) continue;
    ++image;
    offset = 0;
  }
  if (image == call.pixels.size()) return {};
  return invalid_argument("the prompt lacks marks of images: the model's tokenizer has changed them", std::string(call.prompt_field));
}

bool wants_parts(std::string_view source) {
  const auto has = [source](std::string_view words) { return source.find(words) != std::string_view::npos; };
  if (!has("image") || (!has("'type'") && !has("\"type\"") && !has(".type"))) return false;
  return !has("is string") && !has("is not string") && !has("is iterable") && !has("is mapping") && !has("is sequence");
}

void write_contents_as_parts(ChatPrompt& chat) {
  auto* messages = chat.messages.get_if<ValueList>();
  if (messages == nullptr) return;
  for (Value& message : *messages) {
    auto* members = message.get_if<ValueDict>();
    Value* content = members != nullptr ? find_member(*members, "content") : nullptr;
    const auto* text = content != nullptr ? content->get_if<std::string>() : nullptr;
    if (text == nullptr) continue;
    Value part = ValueDict{{"type", "text"}, {"text", *text}};
    *content = text->empty() ? Value(ValueList{}) : Value(ValueList{std::move(part)});
  }
}

}  // namespace braid::net
