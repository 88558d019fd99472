#include "report/pareto_svg.h"

#include <gtest/gtest.h>

namespace plait {
namespace {

TEST(ParetoSvg, EscapesTextAndDrawsTheFront) {
  const std::string svg = chart_svg(
      {"a < b & c", "x", "y", {{1, 2, false, "grey"}, {1, 1, true, "A"}, {2, 0.5, true, "B"}}});
  EXPECT_NE(svg.find("a &lt; b &amp; c"), svg.npos);
  EXPECT_NE(svg.find("<title>grey</title>"), svg.npos);
  // The axes end at 2: points at 1 are half way, at 78 + 752 / 2 and 480 - 428 / 2.
  EXPECT_NE(svg.find("d=\"M454.0 266.0 L830.0 373.0\""), svg.npos);
  EXPECT_TRUE(svg.ends_with("</svg>\n"));
}

TEST(ParetoSvg, AnEmptyChartIsAChart) {
  EXPECT_TRUE(chart_svg({"t", "x", "y", {}}).ends_with("</svg>\n"));
  EXPECT_TRUE(chart_svg({"t", "x", "y", {{0, 0, true, "zero"}}}).ends_with("</svg>\n"));
}

}  // namespace
}  // namespace plait
