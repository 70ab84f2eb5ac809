#pragma once

namespace braid::app {

inline constexpr const char* kVersion = BRAID_VERSION;  // set by CMake from project(VERSION)

}  // namespace braid::app
