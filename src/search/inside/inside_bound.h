#pragma once

#include "base/units.h"
#include "search/inside/stage_insides.h"
#include "search/space/search.h"

namespace plait {

// Whether the bound below holds for every plan of the search, and is not too dear: on few devices
// of one type, for a program that has 1F1B alone, whose replicas have equal shares and keep
// everything.
bool may_bound_insides(const SearchContext& context);

// A step that no plan undercuts, whatever the degrees, cuts and recompute of its ops; at most
// `enough`. With x_s the time of stage s for one of m micro-batches, and k the stages from s on, a
// step takes at least (step_paths.h)
//
//   (m - k + 1) x_s + the x of the stages before + twice those of the stages after   where k < m
//   m x_s + the x of the stages before
//   (m - 1) / 2 x_s + the x of all stages
//
// and so the mean of one of these over all stages, weighted with their devices, which is a sum over
// stages of x_s with weights that follow from the devices and stages behind s. As no stage has more
// bytes than room, the sum may be higher by
//
//   price * devices of s * (bytes that s keeps - room)
//
// for any price. Both are sums over ops, of which each takes the way that is cheapest by that sum,
// so that a dynamic program over ops, devices used and stages gives the least of all pipelines. The
// bound is concave in the price. It leaves out what does not add up: changes of degrees, inputs of
// runs of recompute, the largest working set, hand-overs, and what follows the pipeline, but for
// the optimizer of a plan of one stage.
Seconds least_step_inside(const SearchContext& context, Seconds enough);

}  // namespace plait
