// Generation for a person at a terminal: one loaded model, one answer at a time, through the engine that serves clients.
#pragma once

#include "app/chat/chat_partner.h"
#include "app/chat/printed_answer.h"
#include "app/loaded_model.h"
#include "app/options.h"
#include "braid/media_span.h"
#include "braid/pixels.h"
#include "braid/result.h"
#include "braid/served_model.h"
#include "braid/value.h"
#include "net/generation/stop_window.h"
#include "net/wish/wish.h"
#include "sched/compute_strand.h"
#include "sched/scheduler.h"
#include "sched/seeing_engine.h"

#include <boost/asio/awaitable.hpp>
#include <boost/asio/io_context.hpp>
#include <cstdint>
#include <memory>
#include <string>
#include <vector>

namespace braid::app {

// One sequence at a time: the model is loaded with room for no more.
inline constexpr BatchOptions kSingleUser = {.max_batch = 1};

class Conversation final : public ChatPartner {
 public:
  // `loaded` and `options` outlive it.
  Conversation(const LoadedModel& loaded, const RunOptions& options);
  ~Conversation() override;
  Conversation(const Conversation&) = delete;
  Conversation& operator=(const Conversation&) = delete;

  std::string name() const override { return loaded_.id; }
  Result<void> check_parameter(const std::string& name, const Value& value) const override;
  // A model without a chat template continues the last message instead.
  Result<std::string> answer(const ChatState& state) override;

 private:
  struct Prompt {
    std::vector<TokenId> tokens;
    std::vector<MediaSpan> media = {};
    std::vector<SharedPixels> images = {};
  };
  Result<Prompt> prompt_for(const ChatState& state) const;
  Result<Prompt> prompt_with_images(ValueList messages) const;
  ServedModel model() const;
  Result<net::Wish> wish_for(const ServedModel& model, ValueDict parameters) const;
  boost::asio::awaitable<Result<void>> stream(TokenSource& tokens, const bool& interrupted, net::StopWindow& stops, PrintedAnswer& printed);
  Result<void> run_loop(TokenSource& tokens, net::StopWindow& stops, PrintedAnswer& printed);

  const LoadedModel& loaded_;
  const RunOptions& options_;
  std::uint64_t seed_;
  boost::asio::io_context loop_{1};
  sched::ComputeStrand strand_;
  sched::Scheduler scheduler_;
  std::unique_ptr<sched::SeeingEngine> seeing_;  // in front of it; null: the model reads text alone
};

}  // namespace braid::app
