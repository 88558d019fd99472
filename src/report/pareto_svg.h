#pragma once

#include <string>
#include <vector>

namespace plait {

struct ChartPoint {
  double x = 0;
  double y = 0;
  bool front = false;  // joined by a line and named; the others are small and grey
  std::string label;
};

struct Chart {
  std::string title;
  std::string x_title;
  std::string y_title;
  std::vector<ChartPoint> points;  // finite and not negative; those of the front ascending in x
};

// A scatter chart as a whole SVG file, without any script or font of its own. Both axes begin at 0.
// Every point shows its label when pointed at; on the front they are written beside it as well.
std::string chart_svg(const Chart& chart);

}  // namespace plait
