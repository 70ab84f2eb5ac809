// What can stand still for a while.
#pragma once

namespace braid {

// Loop only.
class Pausable {
 public:
  virtual ~Pausable() = default;

  // No step begins from now on, and those that are out end. What is accepted waits.
  virtual void pause() = 0;
  virtual void resume() = 0;
  virtual bool is_paused() const = 0;
};

}  // namespace braid
