#include "report/pareto_svg.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "base/printable.h"

namespace plait {
namespace {

constexpr double kWidth = 860;
constexpr double kHeight = 540;
constexpr double kLeft = 78;
constexpr double kRight = 30;
constexpr double kTop = 52;
constexpr double kBottom = 60;
constexpr double kLabelHeight = 13;

std::string escaped(const std::string& text) {
  std::string out;
  for (const char c : printable(text)) {
    if (c == '<')
      out += "&lt;";
    else if (c == '>')
      out += "&gt;";
    else if (c == '&')
      out += "&amp;";
    else if (c == '"')
      out += "&quot;";
    else
      out += c;
  }
  return out;
}

// Steps of 1, 2 or 5 times a power of ten, at most 8 of them up to `most`.
double tick_step(double most) {
  const double rough = most / 8;
  const double power = std::pow(10, std::floor(std::log10(rough)));
  for (const double factor : {1.0, 2.0, 5.0})
    if (factor * power >= rough) return factor * power;
  return 10 * power;
}

struct Axis {
  double most = 1;  // where the axis ends
  double step = 1;
  double pixels = 1;

  Axis(double largest, double length) : pixels(length) {
    if (!(largest > 0)) largest = 1;
    step = tick_step(largest);
    most = std::ceil(largest / step * (1 - 1e-12)) * step;
  }
  double at(double value) const { return value / most * pixels; }
};

std::string text_at(double x, double y, const std::string& anchor, const std::string& text,
                    const std::string& more = "") {
  return fmt::format("<text x=\"{:.1f}\" y=\"{:.1f}\" text-anchor=\"{}\"{}>{}</text>\n", x, y,
                     anchor, more, escaped(text));
}

std::string frame(const Chart& chart, const Axis& x, const Axis& y) {
  const double floor = kHeight - kBottom;
  std::string out = text_at(kLeft, 28, "start", chart.title, " font-size=\"16\" fill=\"#111\"");
  for (int i = 0; i * x.step <= x.most * (1 + 1e-9); ++i) {
    const double px = kLeft + x.at(i * x.step);
    out += fmt::format("<path d=\"M{0:.1f} {1} V{2}\" stroke=\"#e4e4e4\"/>\n", px, kTop, floor);
    out += text_at(px, floor + 18, "middle", fmt::format("{:.6g}", i * x.step));
  }
  for (int i = 0; i * y.step <= y.most * (1 + 1e-9); ++i) {
    const double py = floor - y.at(i * y.step);
    out += fmt::format("<path d=\"M{} {:.1f} H{}\" stroke=\"#e4e4e4\"/>\n", kLeft, py,
                       kWidth - kRight);
    out += text_at(kLeft - 8, py + 4, "end", fmt::format("{:.6g}", i * y.step));
  }
  out += text_at(kLeft + x.pixels / 2, kHeight - 16, "middle", chart.x_title);
  out += fmt::format("<text transform=\"translate(20 {:.1f}) rotate(-90)\" text-anchor=\"middle\">",
                     floor - y.pixels / 2);
  return out + escaped(chart.y_title) + "</text>\n";
}

std::string dot(double x, double y, double radius, const char* fill, const std::string& label) {
  return fmt::format(
      "<circle cx=\"{:.1f}\" cy=\"{:.1f}\" r=\"{}\" fill=\"{}\"><title>{}</title>"
      "</circle>\n",
      x, y, radius, fill, escaped(label));
}

}  // namespace

std::string chart_svg(const Chart& chart) {
  double most_x = 0;
  double most_y = 0;
  for (const ChartPoint& point : chart.points) {
    most_x = std::max(most_x, point.x);
    most_y = std::max(most_y, point.y);
  }
  const Axis x(most_x, kWidth - kLeft - kRight);
  const Axis y(most_y, kHeight - kTop - kBottom);
  const auto px = [&](const ChartPoint& p) { return kLeft + x.at(p.x); };
  const auto py = [&](const ChartPoint& p) { return kHeight - kBottom - y.at(p.y); };
  std::string out = fmt::format(
      "<svg xmlns=\"http://www.w3.org/2000/svg\" viewBox=\"0 0 {0} {1}\" width=\"{0}\" "
      "height=\"{1}\" font-family=\"sans-serif\" font-size=\"12\" fill=\"#444\">\n"
      "<rect width=\"{0}\" height=\"{1}\" fill=\"#fff\"/>\n",
      kWidth, kHeight);
  out += frame(chart, x, y);
  std::string line;
  std::string dots;
  std::string labels;
  double last_x = -1e9;
  double last_y = -1e9;
  for (const ChartPoint& p : chart.points) {
    if (!p.front) {
      out += dot(px(p), py(p), 3, "#b9c0c8", p.label);
      continue;
    }
    line += fmt::format("{}{:.1f} {:.1f}", line.empty() ? "M" : " L", px(p), py(p));
    dots += dot(px(p), py(p), 4.5, "#1f5fbf", p.label);
    // A label that would lie on the one before is left to the pointer.
    if (px(p) - last_x < 60 && std::abs(py(p) - last_y) < kLabelHeight) continue;
    last_x = px(p);
    last_y = py(p);
    const bool near_end = px(p) > kLeft + 0.75 * x.pixels;
    labels += text_at(px(p) + (near_end ? -8 : 8), py(p) - 8, near_end ? "end" : "start", p.label,
                      " font-size=\"11\"");
  }
  if (!line.empty())
    out += fmt::format("<path d=\"{}\" fill=\"none\" stroke=\"#1f5fbf\" stroke-width=\"1.5\"/>\n",
                       line);
  return out + dots + labels + "</svg>\n";
}

}  // namespace plait
