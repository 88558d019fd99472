#pragma once

#include <span>
#include <vector>

#include "search/uniform/layouts/uniform_layouts.h"

namespace plait {

// Layouts that wait to be evaluated, in the order in which they are.
class LayoutQueue {
 public:
  // `most`: of how many plans are costed with the usual work.
  LayoutQueue(std::vector<UniformLayout> layouts, double most);

  // The next ones; none once all others have bounds that are not below what is wanted, or as many
  // were costed as that much work allows, relative to the usual.
  std::span<const UniformLayout> next(double work, Seconds wanted);
  void count(double costed) { costed_ += costed; }

  double most() const { return most_; }
  std::span<const UniformLayout> all() const { return layouts_; }
  std::span<const UniformLayout> rest() const { return std::span(layouts_).subspan(next_); }
  Seconds bound() const;  // of the rest; infinite if there is none

 private:
  void lead_by_degrees();
  void sort_rest();

  std::vector<UniformLayout> layouts_;
  double most_;
  double costed_ = 0;
  std::size_t next_ = 0;
  std::size_t leaders_ = 0;
};

}  // namespace plait
