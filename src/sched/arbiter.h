// Whose turn it is on the compute strand, where several engines share it.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <vector>

namespace braid::sched {

// Equal strand time for all who want it: the next turn is that of who has had least. No clock of its own: it knows how long steps took,
// and takes one that is out to take as long as its engine's last. Who has had nothing to do gets no credit for that.
class Arbiter {
 public:
  using Member = std::size_t;

  // `goes_between`: its steps are small enough for a pause between two layers of another's.
  Member join(bool goes_between = false);
  void leave(Member member);  // may be handed out again

  // Until its step begins or it withdraws, because it has none to post after all.
  void want(Member member);
  void withdraw(Member member);

  // Of those who want a turn, who is to have it; nullopt: nobody wants one.
  std::optional<Member> next() const;

  // Whether the member may go between two layers of a step that is out: it goes there, and nobody else who is active has had less.
  bool may_go_between(Member member) const;
  // Of those who want a turn, one that may; nullopt: nobody does.
  std::optional<Member> next_between() const;

  void begin(Member member);                // of a step, in the order of posting
  void end(Member member, double seconds);  // of the oldest one

  // That want a turn, or have steps out and have not said since that nothing follows.
  std::int32_t active() const;

 private:
  struct Share {
    bool is_member = true;
    bool goes_between = false;
    bool is_active = false;
    bool wants = false;
    std::uint32_t out = 0;      // steps
    double had = 0.0;           // seconds
    double last_seconds = 0.0;  // of its last step
    double with_those_out() const { return had + out * last_seconds; }
  };

  std::vector<Share> shares_;
  double now_ = 0.0;  // what who had the last turn had had before it: who comes anew begins there
};

}  // namespace braid::sched
