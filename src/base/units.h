#pragma once

#include <compare>

namespace plait {

// A physical quantity: one double tagged with its exponents of seconds, bytes, flops and dollars.
// Bytes / BytesPerSecond is Seconds; Bytes + Seconds does not compile.
// Always SI inside (s, B, flop, USD); prefixes exist only in literals, file keys and printing.
template <int Time, int Data, int Work, int Money>
struct Quantity {
  double value = 0;

  constexpr Quantity() = default;
  constexpr explicit Quantity(double v) : value(v) {}

  constexpr Quantity& operator+=(Quantity o) {
    value += o.value;
    return *this;
  }
  constexpr Quantity& operator-=(Quantity o) {
    value -= o.value;
    return *this;
  }

  friend constexpr Quantity operator+(Quantity a, Quantity b) {
    return Quantity(a.value + b.value);
  }
  friend constexpr Quantity operator-(Quantity a, Quantity b) {
    return Quantity(a.value - b.value);
  }
  friend constexpr Quantity operator*(Quantity a, double k) { return Quantity(a.value * k); }
  friend constexpr Quantity operator*(double k, Quantity a) { return Quantity(a.value * k); }
  friend constexpr Quantity operator/(Quantity a, double k) { return Quantity(a.value / k); }
  friend constexpr double operator/(Quantity a, Quantity b) { return a.value / b.value; }
  friend constexpr auto operator<=>(Quantity, Quantity) = default;
  // By way of <=>, these and std::max take twice as many instructions.
  friend constexpr bool operator<(Quantity a, Quantity b) { return a.value < b.value; }
  friend constexpr bool operator>(Quantity a, Quantity b) { return a.value > b.value; }
  friend constexpr bool operator<=(Quantity a, Quantity b) { return a.value <= b.value; }
  friend constexpr bool operator>=(Quantity a, Quantity b) { return a.value >= b.value; }
};

template <int T1, int D1, int W1, int M1, int T2, int D2, int W2, int M2>
constexpr auto operator*(Quantity<T1, D1, W1, M1> a, Quantity<T2, D2, W2, M2> b) {
  return Quantity<T1 + T2, D1 + D2, W1 + W2, M1 + M2>(a.value * b.value);
}

template <int T1, int D1, int W1, int M1, int T2, int D2, int W2, int M2>
constexpr auto operator/(Quantity<T1, D1, W1, M1> a, Quantity<T2, D2, W2, M2> b) {
  return Quantity<T1 - T2, D1 - D2, W1 - W2, M1 - M2>(a.value / b.value);
}

using Seconds = Quantity<1, 0, 0, 0>;
using Bytes = Quantity<0, 1, 0, 0>;  // exact up to 2^53 B = 9 PB
using Flops = Quantity<0, 0, 1, 0>;
using Usd = Quantity<0, 0, 0, 1>;
using BytesPerSecond = Quantity<-1, 1, 0, 0>;
using FlopsPerSecond = Quantity<-1, 0, 1, 0>;
using UsdPerSecond = Quantity<-1, 0, 0, 1>;

inline constexpr double kSecondsPerHour = 3600;

namespace literals {
constexpr Seconds operator""_s(long double v) { return Seconds(static_cast<double>(v)); }
constexpr Seconds operator""_us(long double v) { return Seconds(static_cast<double>(v) * 1e-6); }
constexpr Bytes operator""_GiB(unsigned long long v) {
  return Bytes(static_cast<double>(v) * 0x1p30);
}
constexpr Bytes operator""_MiB(unsigned long long v) {
  return Bytes(static_cast<double>(v) * 0x1p20);
}
constexpr BytesPerSecond operator""_GBps(unsigned long long v) {
  return BytesPerSecond(static_cast<double>(v) * 1e9);
}
constexpr FlopsPerSecond operator""_Tflops(unsigned long long v) {
  return FlopsPerSecond(static_cast<double>(v) * 1e12);
}
}  // namespace literals

}  // namespace plait
