#pragma once

namespace plait {

// What a number in another system's file is multiplied by.
inline constexpr double kMillisecond = 1e-3;
inline constexpr double kMicrosecond = 1e-6;
inline constexpr double kMebibyte = 0x1p20;

}  // namespace plait
