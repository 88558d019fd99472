#pragma once

#include "search/space/search.h"

namespace plait {

// One function for each planner, in a file of its own; registry.cpp lists them.
SearchResult search_automatically(const SearchContext& context);
SearchResult search_like_amp(const SearchContext& context);
SearchResult search_like_fasop(const SearchContext& context);
SearchResult search_like_metis(const SearchContext& context);
SearchResult search_like_aceso(const SearchContext& context);
SearchResult search_exhaustively(const SearchContext& context);

}  // namespace plait
