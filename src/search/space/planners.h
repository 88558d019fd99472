#pragma once

#include "search/space/search.h"

namespace plait {

// One function for each planner, in a file of its own: those that other parts of the search call.
// registry.cpp declares the others and lists all.
SearchResult search_automatically(const SearchContext& context);
SearchResult search_like_amp(const SearchContext& context);
SearchResult search_like_fasop(const SearchContext& context);
SearchResult search_like_metis(const SearchContext& context);
SearchResult search_exhaustively(const SearchContext& context);

}  // namespace plait
