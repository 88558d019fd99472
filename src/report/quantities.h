#pragma once

#include <string>

#include "base/units.h"

namespace plait {

// Quantities as people read them, in the unit that suits their size.
std::string in_words(Seconds time);    // "12.34 s", "8.10 ms", "45.2 us"; "0" for none
std::string long_time(Seconds time);   // "45.0 s", "12.34 h", "12.34 days"
std::string in_words(Bytes size);      // "12.34 GiB", "1.5 TiB"
std::string in_words(Usd amount);      // "$0.0123", "$12.30"
std::string in_gibibytes(Bytes size);  // "12.3", for columns headed GiB
std::string percent(double fraction);  // 0.412 -> "41.2 %"
// 0.05 -> "5.0 % slower", -0.05 -> "5.0 % faster", 3 -> "4.0 times slower", where slower and faster
// are the words given.
std::string change(double fraction, const std::string& more, const std::string& less);

std::string grouped(double count);      // 6738415616 -> "6,738,415,616"
std::string abbreviated(double count);  // 6738415616 -> "6.74 B"

// 1 -> "1 node", 2 -> "2 nodes".
std::string counted(double count, const std::string& noun);

}  // namespace plait
