// Lets one coroutine at a time go on, in the order in which they came.
#pragma once

#include "braid/signal.h"

#include <algorithm>
#include <boost/asio/awaitable.hpp>
#include <deque>
#include <memory>
#include <utility>

namespace braid::app {

// Loop only. Who waits or has a turn may outlive it.
class Turns {
 public:
  class Turn;

  // Returns when it is the caller's turn, which lasts as long as what is returned.
  boost::asio::awaitable<Turn> take() const;

 private:
  struct Line {
    std::deque<Signal*> waiting;  // the first one has been told when nobody has the turn
    bool is_taken = false;
  };
  // A place in the line: given up by a coroutine that is destroyed while it waits.
  class Place {
   public:
    explicit Place(std::shared_ptr<Line> line) : line_(std::move(line)) { line_->waiting.push_back(&called); }
    ~Place() {
      std::erase(line_->waiting, &called);
      call_next(*line_);
    }
    Place(const Place&) = delete;
    Place& operator=(const Place&) = delete;
    bool is_first() const { return !line_->is_taken && line_->waiting.front() == &called; }

    Signal called;

   private:
    const std::shared_ptr<Line> line_;
  };
  static void call_next(const Line& line) {
    if (!line.is_taken && !line.waiting.empty()) line.waiting.front()->notify();
  }

  const std::shared_ptr<Line> line_ = std::make_shared<Line>();
};

class Turns::Turn {
 public:
  explicit Turn(std::shared_ptr<Line> line) : line_(std::move(line)) { line_->is_taken = true; }
  ~Turn() {
    if (line_ == nullptr) return;
    line_->is_taken = false;
    call_next(*line_);
  }
  Turn(Turn&& other) noexcept = default;
  Turn& operator=(Turn&&) = delete;

 private:
  std::shared_ptr<Line> line_;
};

inline boost::asio::awaitable<Turns::Turn> Turns::take() const {
  const std::shared_ptr<Line> line = line_;  // it may outlive what it is of
  Place place(line);
  while (!place.is_first()) co_await place.called.wait();
  co_return Turn(line);
}

}  // namespace braid::app
