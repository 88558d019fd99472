#pragma once

#include <algorithm>
#include <cstddef>
#include <initializer_list>
#include <iterator>
#include <memory>
#include <type_traits>
#include <utility>
#include <vector>

namespace plait {

// A vector of plain values that needs no memory of its own for up to N of them: for lists that are
// mostly short and copied often. Iterators are invalid after it was moved from, or has grown.
template <typename T, std::size_t N>
class ShortList {
  static_assert(std::is_trivially_copyable_v<T> && std::is_default_constructible_v<T>);

 public:
  using value_type = T;
  using iterator = T*;
  using const_iterator = const T*;

  ShortList() = default;
  ShortList(std::initializer_list<T> values) { assign(values.begin(), values.end()); }
  ShortList(std::size_t count, T value) { assign(count, value); }
  ShortList(const std::vector<T>& values) { assign(values.begin(), values.end()); }
  ShortList(const ShortList& other) { assign(other.begin(), other.end()); }
  ShortList(ShortList&& other) noexcept { take(other); }
  ShortList& operator=(const ShortList& other) {
    if (this != &other) assign(other.begin(), other.end());
    return *this;
  }
  ShortList& operator=(ShortList&& other) noexcept {
    if (this != &other) take(other);
    return *this;
  }
  ~ShortList() = default;

  T* data() { return long_ ? long_.get() : short_; }
  const T* data() const { return long_ ? long_.get() : short_; }
  std::size_t size() const { return size_; }
  bool empty() const { return size_ == 0; }
  T* begin() { return data(); }
  T* end() { return data() + size_; }
  const T* begin() const { return data(); }
  const T* end() const { return data() + size_; }
  T& operator[](std::size_t i) { return data()[i]; }
  const T& operator[](std::size_t i) const { return data()[i]; }
  T& front() { return *begin(); }
  const T& front() const { return *begin(); }
  const T& back() const { return *(end() - 1); }

  void clear() { size_ = 0; }
  void resize(std::size_t size) {
    const std::size_t before = size_;
    make_room(size);
    if (size > before) std::fill(data() + before, data() + size, T{});
    size_ = size;
  }
  void assign(std::size_t count, T value) {
    size_ = 0;
    make_room(count);
    std::fill_n(data(), count, value);
    size_ = count;
  }
  // Not of its own values.
  template <std::forward_iterator It>
  void assign(It first, It last) {
    size_ = 0;
    insert(data(), first, last);
  }
  template <std::forward_iterator It>
  void insert(const T* at, It first, It last) {
    const std::size_t before = at - data();
    const std::size_t count = std::distance(first, last);
    make_room(size_ + count);
    std::move_backward(begin() + before, end(), end() + count);
    std::copy(first, last, begin() + before);
    size_ += count;
  }
  void push_back(T value) { insert(end(), &value, &value + 1); }
  void erase(T* first, T* last) {
    std::move(last, end(), first);
    size_ -= last - first;
  }

  friend bool operator==(const ShortList& a, const ShortList& b) {
    return std::ranges::equal(a, b);
  }

 private:
  void make_room(std::size_t size) {
    if (size <= room_) return;
    const std::size_t room = std::max(size, 2 * room_);
    std::unique_ptr<T[]> more(new T[room]);
    std::copy(begin(), end(), more.get());
    long_ = std::move(more);
    room_ = room;
  }
  void take(ShortList& other) {
    long_ = std::move(other.long_);
    room_ = std::exchange(other.room_, N);
    size_ = std::exchange(other.size_, 0);
    if (!long_) std::copy_n(other.short_, size_, short_);
  }

  std::unique_ptr<T[]> long_;  // where there are more than N
  std::size_t size_ = 0;
  std::size_t room_ = N;
  T short_[N];
};

}  // namespace plait
