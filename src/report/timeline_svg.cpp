#include "report/timeline_svg.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <vector>

#include "report/quantities.h"

namespace plait {
namespace {

constexpr double kNamesEnd = 74;    // where names of stages end and time begins
constexpr double kStepWidth = 900;  // of the whole step
constexpr double kRowHeight = 22;
constexpr double kFirstRow = 26;
constexpr int kMostRows = 64;

struct Kind {
  const char* name;
  const char* colour;
};
constexpr std::array<Kind, 5> kKinds{{{"forward", "#4c8eda"},
                                      {"backward", "#e0a03c"},
                                      {"weight gradient", "#b56fc4"},
                                      {"gradients", "#5aa469"},
                                      {"update", "#8a8f98"}}};

struct Box {
  int kind = 0;
  Seconds begin;
  Seconds end;
};

std::vector<Box> boxes_of(int stage, const Estimate& estimate, const Trace& trace) {
  std::vector<Box> boxes;
  for (const Event& event : trace.events)
    if (event.stage == stage)
      boxes.push_back({static_cast<int>(event.task.kind), event.begin, event.end});
  const StageCost& cost = estimate.stages[stage];
  const Seconds end = trace.stage_end[stage];
  const Seconds summed = end + cost.gradient_sync + cost.tied_sync;
  if (summed > end) boxes.push_back({3, end, summed});
  if (cost.optimizer > Seconds(0)) boxes.push_back({4, summed, summed + cost.optimizer});
  return boxes;
}

// Neighbours of one kind that are less than half a pixel apart and two pixels wide become one.
std::vector<Box> merged(const std::vector<Box>& boxes, Seconds pixel) {
  std::vector<Box> out;
  for (const Box& box : boxes) {
    const bool narrow = box.end - box.begin < 2 * pixel;
    if (!out.empty() && narrow && out.back().kind == box.kind &&
        box.begin - out.back().end < 0.5 * pixel)
      out.back().end = box.end;
    else if (narrow && !out.empty() && box.end - out.back().begin < pixel)
      out.back().end = box.end;  // several kinds within one pixel
    else
      out.push_back(box);
  }
  return out;
}

std::string row_svg(const std::vector<Box>& boxes, Seconds whole, double y) {
  std::string out;
  for (const Box& box : boxes)
    out += fmt::format(
        "<rect x=\"{:.2f}\" y=\"{:.0f}\" width=\"{:.2f}\" height=\"{:.0f}\" fill=\"{}\"/>\n",
        kNamesEnd + kStepWidth * (box.begin / whole), y,
        std::max(0.3, kStepWidth * ((box.end - box.begin) / whole)), kRowHeight - 4,
        kKinds[static_cast<std::size_t>(box.kind)].colour);
  return out;
}

std::string key_svg(const std::array<bool, kKinds.size()>& used) {
  std::string out;
  double x = kNamesEnd;
  for (std::size_t i = 0; i < kKinds.size(); ++i) {
    if (!used[i]) continue;
    out += fmt::format(
        "<rect x=\"{0:.0f}\" y=\"6\" width=\"11\" height=\"11\" fill=\"{1}\"/><text x=\"{2:.0f}\" "
        "y=\"16\">{3}</text>\n",
        x, kKinds[i].colour, x + 16, kKinds[i].name);
    x += 130;
  }
  return out;
}

}  // namespace

std::string timeline_svg(const Plan& plan, const Estimate& estimate, const Trace& trace) {
  std::vector<int> shown;
  const int stages = plan.stage_count();
  for (int s = 0; s < stages; ++s)
    if (stages <= kMostRows || s < kMostRows / 2 || s >= stages - kMostRows / 2) shown.push_back(s);
  Seconds whole;
  std::vector<std::vector<Box>> rows;
  for (const int stage : shown) {
    rows.push_back(boxes_of(stage, estimate, trace));
    for (const Box& box : rows.back()) whole = std::max(whole, box.end);
  }
  if (!(whole > Seconds(0))) whole = Seconds(1);
  std::string body;
  std::array<bool, kKinds.size()> used{};
  double y = kFirstRow;
  for (std::size_t i = 0; i < rows.size(); ++i, y += kRowHeight) {
    body += fmt::format("<text x=\"{:.0f}\" y=\"{:.0f}\" text-anchor=\"end\">stage {}</text>\n",
                        kNamesEnd - 8, y + kRowHeight - 9, shown[i] + 1);
    for (const Box& box : rows[i]) used[static_cast<std::size_t>(box.kind)] = true;
    body += row_svg(merged(rows[i], (1 / kStepWidth) * whole), whole, y);
  }
  return fmt::format(
      "<svg xmlns=\"http://www.w3.org/2000/svg\" width=\"{0:.0f}\" height=\"{1:.0f}\" "
      "viewBox=\"0 0 {0:.0f} {1:.0f}\" font-family=\"sans-serif\" font-size=\"12\" "
      "fill=\"#444\">\n{2}{3}<text x=\"{4:.0f}\" y=\"{5:.0f}\" text-anchor=\"end\">{6}</text>\n"
      "</svg>\n",
      kNamesEnd + kStepWidth + 16, y + 24, key_svg(used), body, kNamesEnd + kStepWidth, y + 14,
      in_words(whole));
}

}  // namespace plait
