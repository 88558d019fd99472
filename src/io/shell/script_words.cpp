#include "io/shell/script_words.h"

#include <algorithm>
#include <utility>

#include "io/shell/script_tokens.h"

namespace plait {
namespace {

constexpr std::size_t kLongest = 65'536;    // characters of all words of one
constexpr long long kMostElements = 1'000;  // of an array, that are set one by one

bool is_space(char c) { return c == ' ' || c == '\t' || c == '\n' || c == '\r'; }
bool is_name_part(char c) {
  return is_variable_name(std::string_view(&c, 1)) || (c >= '0' && c <= '9');
}

std::string joined(const std::vector<std::string>& words) {
  std::string out;
  for (const std::string& word : words) {
    if (&word != &words.front()) out += ' ';
    out += word;
  }
  return out;
}

// Values of what stands after a dollar sign; nothing where they are not known.
struct Reference {
  std::optional<std::vector<std::string>> values{};
  bool each = false;  // "$@": words of their own even in quotes
};

class Expander {
 public:
  Expander(ScriptVariables& variables, bool splits) : variables_(variables), splits_(splits) {}

  void run(const std::string& raw, bool quoted) {
    for (std::size_t at = 0; at < raw.size();) {
      if (size_ > kLongest) throw ScriptFault{0, "a word grows too long"};
      at = step(raw, at, quoted);
    }
  }

  std::vector<std::string> words() {
    end_word();
    return std::move(words_);
  }

 private:
  void add(std::string_view text) {
    current_ += text;
    size_ += text.size();
    open_ = true;
  }
  void end_word() {
    if (open_) words_.push_back(std::exchange(current_, ""));
    open_ = false;
  }
  void add_value(std::string_view text, bool quoted) {
    if (quoted || !splits_) return add(text);
    for (const char c : text) {
      if (is_space(c))
        end_word();
      else
        add(std::string_view(&c, 1));
    }
  }

  std::size_t step(const std::string& raw, std::size_t at, bool quoted) {
    const char c = raw[at];
    if (c == '\\') {
      const char next = at + 1 < raw.size() ? raw[at + 1] : '\n';
      const bool kept = quoted && std::string_view("$`\"\\\n").find(next) == std::string_view::npos;
      if (kept) add("\\");
      if (next != '\n') add(std::string_view(&next, 1));
      return at + 2;
    }
    if (c == '\'' && !quoted) {
      const std::size_t end = end_of_nested(raw, at);
      add(std::string_view(raw).substr(at + 1, end - at - 2));
      return end;
    }
    if (c == '"' && !quoted) {
      const std::size_t end = end_of_nested(raw, at);
      // "$@" of nothing is no word at all.
      const bool alone = end - at == 4 && raw.compare(at + 1, 2, "$@") == 0;
      const bool list = end - at > 6 && raw.compare(end - 5, 4, "[@]}") == 0;
      if (!alone && !list) add("");
      run(raw.substr(at + 1, end - at - 2), true);
      return end;
    }
    if (c == '`') {
      const std::size_t end = end_of_nested(raw, at);
      const std::string inside = raw.substr(at + 1, end - at - 2);
      const std::size_t first = inside.find_first_not_of(" \t");
      if (first == inside.npos || inside[first] == '#') return end;
      if (const auto text = printed(inside))
        add_value(*text, quoted);
      else
        add(not_run(inside));
      return end;
    }
    if (c == '$') return dollar(raw, at, quoted);
    add(std::string_view(&c, 1));
    return at + 1;
  }

  std::size_t dollar(const std::string& raw, std::size_t at, bool quoted) {
    const char next = at + 1 < raw.size() ? raw[at + 1] : '\0';
    std::size_t end = at + 1;
    Reference found;
    if (next == '(') {
      end = end_of_nested(raw, at);
      const std::string inside = raw.substr(at + 2, end - at - 3);
      if (inside.starts_with('(') && inside.ends_with(')')) {
        if (const auto value = arithmetic(inside.substr(1, inside.size() - 2), variables_))
          found.values = {std::to_string(*value)};
      }
      if (!found.values)
        if (auto text = printed(inside)) found.values = {std::move(*text)};
      if (!found.values) {
        add(not_run(inside));
        return end;
      }
    } else if (next == '{') {
      end = end_of_nested(raw, at);
      found = braced(raw.substr(at + 2, end - at - 3));
    } else if (next == '@' || next == '*' || next == '#' || (next >= '0' && next <= '9')) {
      end = at + 2;
      found = named(std::string(1, next));
    } else if (is_variable_name(std::string_view(&next, 1))) {
      while (end < raw.size() && is_name_part(raw[end])) ++end;
      found = named(raw.substr(at + 1, end - at - 1));
    } else if (next == '\'' && !quoted) {
      return at + 1;  // $'..' is nearly '..'
    }
    if (!found.values) {
      add(std::string_view(raw).substr(at, end - at));
      return end;
    }
    if (!found.each) {
      add_value(joined(*found.values), quoted);
      return end;
    }
    for (std::size_t i = 0; i < found.values->size(); ++i) {
      if (i > 0) end_word();
      if (quoted) add("");
      add_value((*found.values)[i], quoted);
    }
    return end;
  }

  static std::string not_run(const std::string& commands) {
    return "$(" + commands.substr(0, commands.find_first_of(" \t\n")) + "..)";
  }
  std::optional<std::string> printed(const std::string& commands) {
    return variables_.printed_by ? variables_.printed_by(commands) : std::nullopt;
  }

  Reference named(const std::string& name) const {
    const auto& arguments = variables_.arguments;
    if (name == "@" || name == "*") return {arguments, name == "@"};
    if (!name.empty() && (name[0] == '#' || (name[0] >= '0' && name[0] <= '9'))) {
      if (name == "0" && !variables_.script.empty()) return {std::vector{variables_.script}};
      if (!variables_.arguments_known) return {};
      if (name == "#") return {std::vector{std::to_string(arguments.size())}};
      const std::size_t number = name.size() > 3 ? 1000 : std::stoul(name);
      if (number == 0) return {};
      return {std::vector{number <= arguments.size() ? arguments[number - 1] : std::string()}};
    }
    const auto at = variables_.values.find(name);
    if (at == variables_.values.end()) return {};
    if (at->second.size() > 1) return {std::vector{at->second.front()}};
    return {at->second};
  }

  // Of "NAME", "NAME[@]", "#NAME[@]", "NAME:-default" and their relatives.
  Reference braced(const std::string& inside) {
    if (inside.starts_with('!')) return indirect(inside.substr(1));
    const bool counts = inside.size() > 1 && inside[0] == '#';
    std::size_t end = counts ? 1 : 0;
    if (end < inside.size() && (inside[end] == '@' || inside[end] == '*'))
      ++end;
    else
      while (end < inside.size() && is_name_part(inside[end])) ++end;
    const std::string name = inside.substr(counts ? 1 : 0, end - (counts ? 1 : 0));
    Reference found = named(name);
    if (end < inside.size() && inside[end] == '[') {
      const std::size_t close = inside.find(']', end);
      if (close == inside.npos) return {};
      found = element(name, inside.substr(end + 1, close - end - 1));
      end = close + 1;
    }
    if (counts) {
      if (!found.values || end != inside.size()) return {};
      const std::size_t count = found.each ? found.values->size() : joined(*found.values).size();
      return {std::vector{std::to_string(count)}};
    }
    return end == inside.size() ? found : with_default(name, found, inside.substr(end));
  }

  // ${!NAME}: of the variable that NAME names; ${!NAME[@]}: the keys of a table.
  Reference indirect(const std::string& inside) {
    const auto table = variables_.tables.find(inside.substr(0, inside.find('[')));
    if (table != variables_.tables.end() && inside.ends_with("[@]")) {
      Reference keys{std::vector<std::string>{}, true};
      for (const auto& [key, value] : table->second) keys.values->push_back(key);
      return keys;
    }
    const Reference name = named(inside);
    return name.values && is_variable_name(joined(*name.values)) ? named(joined(*name.values))
                                                                 : Reference{};
  }

  Reference element(const std::string& name, const std::string& index) {
    if (const auto table = variables_.tables.find(name); table != variables_.tables.end())
      return element_of(table->second, index);
    const auto at = variables_.values.find(name);
    if (at == variables_.values.end()) return {};
    if (index == "@" || index == "*") return {at->second, index == "@"};
    const auto number = arithmetic(index, variables_);
    if (!number || *number < 0) return {};
    const bool there = static_cast<std::size_t>(*number) < at->second.size();
    return {std::vector{there ? at->second[*number] : std::string()}};
  }

  Reference element_of(const std::map<std::string, std::string>& table, const std::string& index) {
    if (index == "@" || index == "*") {
      Reference all{std::vector<std::string>{}, index == "@"};
      for (const auto& [key, value] : table) all.values->push_back(value);
      return all;
    }
    const std::string key = expand_text(index, variables_);
    if (has_unknown(key)) return {};
    const auto at = table.find(key);
    return {std::vector{at == table.end() ? std::string() : at->second}};
  }

  Reference with_default(const std::string& name, Reference found, std::string rest) {
    const bool empty_too = rest.starts_with(':');
    const std::size_t at = empty_too ? 1 : 0;
    const char kind = at < rest.size() ? rest[at] : '\0';
    if (kind == '\0' || std::string_view("-=+?").find(kind) == std::string_view::npos) {
      if (!found.values || found.values->size() > 1) return {};
      auto changed = changed_value(joined(*found.values), rest, variables_);
      return changed ? Reference{std::vector{std::move(*changed)}} : Reference{};
    }
    rest.erase(0, at);
    const bool there = found.values && !(empty_too && joined(*found.values).empty());
    if (kind == '+') {
      if (!there) return {std::vector{std::string()}};
    } else if (there || kind == '?') {
      return found;
    }
    if (++depth_ > 20) throw ScriptFault{0, "too many defaults stand in each other"};
    Expander inner(variables_, false);
    inner.depth_ = depth_;
    // Quotes in a default are removed inside quotes, too: "${X:-"a b"}".
    inner.run(rest.substr(1), false);
    --depth_;
    std::vector<std::string> value{joined(inner.words())};
    if (kind == '=' && is_variable_name(name)) variables_.values[name] = value;
    return {value};
  }

  ScriptVariables& variables_;
  bool splits_;
  int depth_ = 0;
  std::size_t size_ = 0;
  std::string current_;
  bool open_ = false;
  std::vector<std::string> words_;
};

}  // namespace

std::vector<std::string> expand_words(const std::string& raw, ScriptVariables& variables) {
  Expander expander(variables, true);
  expander.run(raw, false);
  return expander.words();
}

std::string expand_text(const std::string& raw, ScriptVariables& variables, bool quoted) {
  Expander expander(variables, false);
  expander.run(raw, quoted);
  return joined(expander.words());
}

std::string_view assigned_name(std::string_view word) {
  std::size_t end = 0;
  while (end < word.size() && is_variable_name(word.substr(0, end + 1))) ++end;
  const std::string_view name = word.substr(0, end);
  if (end < word.size() && word[end] == '[')
    end = std::min(word.find(']', end), word.size() - 1) + 1;
  if (word.substr(end).starts_with('+')) ++end;
  return end < word.size() && word[end] == '=' ? name : std::string_view();
}

const std::string& assign_element(const std::string& name, const std::string& index,
                                  std::string value, bool adds, ScriptVariables& variables) {
  long long number = -1;
  if (!variables.tables.contains(name)) number = arithmetic(index, variables).value_or(-1);
  std::vector<std::string>& values = variables.values[name];
  const bool listed = number >= 0 && number < kMostElements;
  if (listed && values.size() <= static_cast<std::size_t>(number)) values.resize(number + 1);
  std::string& element =
      listed ? values[number] : variables.tables[name][expand_text(index, variables)];
  element = adds ? element + value : std::move(value);
  return element;
}

const std::string& assign(const std::string& word, ScriptVariables& variables) {
  const std::string name(assigned_name(word));
  const std::size_t equals = word.find('=', name.size());
  std::string value = expand_text(word.substr(equals + 1), variables);
  const bool adds = word[equals - 1] == '+';
  if (word[name.size()] == '[') {
    const std::string index = word.substr(name.size() + 1, word.find(']') - name.size() - 1);
    return assign_element(name, index, std::move(value), adds, variables);
  }
  std::vector<std::string>& values = variables.values[name];
  if (adds && !values.empty()) value = values.front() + value;
  values = {std::move(value)};
  return values.back();
}

bool has_unknown(std::string_view text) { return text.find('$') != text.npos; }

}  // namespace plait
