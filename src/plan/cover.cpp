#include "plan/cover.h"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "plan/names.h"

namespace plait {
namespace {

// "unit 3" or "units 3 to 5", for the half-open range.
std::string units_text(int begin, int end) {
  return end - begin == 1 ? fmt::format("unit {}", begin)
                          : fmt::format("units {} to {}", begin, end - 1);
}

class CoverCheck {
 public:
  CoverCheck(const Problem& problem, const Plan& plan, bool chunks_are_sound,
             std::vector<Violation>& found)
      : problem_(problem), plan_(plan), chunks_are_sound_(chunks_are_sound), found_(found) {}

  void run() {
    if (has_bad_units()) return;
    std::vector<std::pair<int, int>> owner(problem_.model.units.size(), {-1, -1});
    bool once = true;
    for (int s = 0; s < plan_.stage_count(); ++s) {
      for (int i = 0; i < std::ssize(plan_.stages[s].spans); ++i) {
        const UnitRange units = plan_.stages[s].spans[i].units;
        int taken = -1;  // the first unit that another span has already
        for (int u = units.begin; u < units.end; ++u) {
          if (owner[u].first < 0)
            owner[u] = {s, i};
          else if (taken < 0)
            taken = u;
        }
        if (taken < 0) continue;
        report(span_place(s, i, "units"),
               fmt::format("unit {} is already in stages[{}].spans[{}]", taken, owner[taken].first,
                           owner[taken].second));
        once = false;
      }
    }
    for (int u = 0; u < std::ssize(owner); ++u) {
      if (owner[u].first >= 0) continue;
      int end = u;
      while (end < std::ssize(owner) && owner[end].first < 0) ++end;
      report("stages",
             units_text(u, end) + (end - u == 1 ? " is in no stage" : " are in no stage"));
      once = false;
      u = end;
    }
    if (once && chunks_are_sound_) check_order();
  }

 private:
  void report(std::string where, std::string what) {
    found_.push_back({.where = std::move(where), .what = std::move(what)});
  }

  bool has_bad_units() const {
    const auto bad = [&](const Span& span) {
      return span.units.begin < 0 || span.units.begin >= span.units.end ||
             span.units.end > problem_.model.unit_count();
    };
    return std::ranges::any_of(
        plan_.stages, [&](const Stage& stage) { return std::ranges::any_of(stage.spans, bad); });
  }

  void check_order() {
    struct Chunk {
      int position;
      int stage;
      int span;  // its first
      UnitRange units;
    };
    std::vector<Chunk> chunks;
    for (int s = 0; s < plan_.stage_count(); ++s) {
      const std::vector<Span>& spans = plan_.stages[s].spans;
      for (int i = 0; i < std::ssize(spans); ++i) {
        if (i > 0 && spans[i].chunk == spans[i - 1].chunk) {
          chunks.back().units.end = spans[i].units.end;
        } else {
          const int position =
              chunk_position(plan_.schedule, plan_.stage_count(), s, spans[i].chunk);
          chunks.push_back({position, s, i, spans[i].units});
        }
      }
    }
    std::ranges::sort(chunks, {}, &Chunk::position);
    int next = 0;
    for (const Chunk& chunk : chunks) {
      if (chunk.units.begin != next)
        return report(span_place(chunk.stage, chunk.span, "units"),
                      fmt::format("must begin at unit {} in the order of schedule {}, begins at {}",
                                  next, name_of(plan_.schedule), chunk.units.begin));
      next = chunk.units.end;
    }
  }

  const Problem& problem_;
  const Plan& plan_;
  bool chunks_are_sound_;
  std::vector<Violation>& found_;
};

}  // namespace

std::string span_place(int stage, int span, const char* field) {
  return fmt::format("stages[{}].spans[{}].{}", stage, span, field);
}

void report_cover(const Problem& problem, const Plan& plan, bool chunks_are_sound,
                  std::vector<Violation>& found) {
  CoverCheck(problem, plan, chunks_are_sound, found).run();
}

}  // namespace plait
