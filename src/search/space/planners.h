#pragma once

#include "search/space/search.h"

namespace plait {

// The planners that `auto` asks as well. One function for each planner, in a file of its own;
// registry.cpp lists them, and declares those that are asked by nobody else.
SearchResult search_like_amp(const SearchContext& context);
SearchResult search_like_fasop(const SearchContext& context);
SearchResult search_like_metis(const SearchContext& context);
SearchResult search_like_aceso(const SearchContext& context);
SearchResult search_exhaustively(const SearchContext& context);

}  // namespace plait
